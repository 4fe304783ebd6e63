"""Goals and limits of a session."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import as_share, attempt, checked, is_number, refuse, wrong_together
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.settings import SETTINGS
from benchrigor.units import statistic_of

Work = float | tuple[float, float | None] | None
Trim = str | float | tuple[float, float]


class _Usual(float):
    """The default target: the same number as one that somebody asked for, and yet not asked for."""


USUAL_TARGET = _Usual(0.02)
# Factor on the time budget: after two readings, none begins that would end later.
LATEST = 1.1
SHORTEST_PIECE_S = 0.05  # a shorter one is mostly caches that are cold after a pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OneLine):
    """The goals and limits of a session; plain, serialisable values.

    Parameters
    ----------
    target
        Relative half-width that every required metric must reach: 0.02 or "2%". None if only
        absolute widths (see `Metric`) count. All shares may be given as percentages. The default
        ends a run, but nobody asked for it: a run that does not reach it misses nothing.
    confidence
        Nominal coverage of the intervals, in (0, 1).
    statistic
        "mean", "median", a percentile such as "p10" or "p99", "trimmed 10%" (any percentage below
        50), or "min", which has no interval.
    budget_readings, budget_s
        Maximum number of readings, and maximum wall time of the rounds in seconds (``math.inf``
        for no limit).
    min_seconds
        Minimum time span of the readings in seconds, 0 or more: a result of one moment is often
        chance. It counts only in `Session.run` on the wall clock.
    rounds
        "auto": restarted if rounds are fresh processes, as with commands, else continuous.
        "continuous": all rounds form one series, and phases are found on the whole series.
        "restarted": a round is an invocation with its own warm-up; all are cut the same way, and
        the variance between rounds is part of the interval.
    analysis
        "readings": the readings of the rounds. "wps": the line through their work amounts and
        durations (work per second). "auto": wps when ``work`` is a range, else readings. If such
        rounds also give unit readings, both are analysed, and the readings decide.
    method
        "long-run-variance", whose intervals cover; or "subsessions" (means only): adjacent
        readings (or rounds of various work) are merged until neighbours hardly correlate, then
        Student's t applies to the merged values. "merged-subsessions" is for various work alone:
        the line goes through the merged pairs of work and duration, as published.
    autocorrelation_limit
        Largest absolute correlation of neighbouring subsessions, in (0, 1).
    trim
        Readings to leave out of a series: "auto" keeps the stable phase; "none" keeps all; a share
        (0.1) is left out at both ends, a pair ((0.1, 0.05)) at the start and at the end.
    detector
        Change-point detector: "ranks" (built in); "edm" (E-Divisive with medians), whose longest
        segment is measured whole if it holds more than half of the readings, as published; or
        "pelt" of ruptures with the penalty of `session.Session`, which reduces a long series
        to 2048 means.
    preset
        Evidence that the session needs: "quick" (first look at 200 readings, effective sample
        size 50), "normal" (500, 100; the default) or "strict" (1000, 200). Two successive looks
        must agree.
    work
        Work amount of all rounds, or the range ``(low, high)`` of amounts; amounts are whole
        numbers if both ends are. ``low`` may be 0, and ``high`` may be None for no largest amount.
        With "wps", None means ``(0, None)``.
    work_order
        "bisecting": amounts at 1/2, 1/4, 3/4, 1/8 ... of the range; or "random".
    quick_s, quick_rounds
        Duration in seconds, and number of rounds, of a first rough answer by rounds of various
        work; they set the length of the longest round. 10 rounds is the minimum.
    short_round_s
        Rounds of various work shorter than this are kept, but not analysed.
    min_rounds, max_rounds
        Minimum and maximum number of rounds.
    red_rounds
        Treatment of a round that lost more than 15 % of its time to interference: "keep"; or
        "repeat" keeps it in the record but not in the analysis, and makes one more for it.
    disturbed
        Treatment of readings during which the kernel counted delay: "leave-out" (if enough other
        readings remain) or "keep".
    pieces
        Number of equally long parts of a continuous session; their levels are the units of
        inference. Between parts the program may wait, or measure something else
        (`Session.pieces`): only parts that are minutes apart show how the pace of the machine
        changes. Pauses do not count as time. A session needs 4 parts to be satisfied.
    reference
        Whether to time fixed work on the wall clock, alternating with the readings. It shows the
        pace of the machine, and takes 3 % of the time, with commands up to 5 %.
    target_given
        Whether somebody asked for the target although it is the default; for any other target it
        does not matter. None if it follows from the arguments.

    Raises
    ------
    InvalidInput
        Naming every option that is out of range.

    Examples
    --------
    >>> Options(target=0.01).budget_s
    10.0
    >>> Options(target=0.0)
    Traceback (most recent call last):
    ...
    benchrigor.errors.InvalidInput: target is 0.0, expected more than 0
    """

    target: float | None = USUAL_TARGET
    confidence: float = 0.95
    statistic: str = "mean"
    budget_readings: int | None = None
    budget_s: float = 10.0
    min_seconds: float = 1.0
    rounds: str = "auto"
    analysis: str = "auto"
    method: str = "long-run-variance"
    autocorrelation_limit: float = 0.1
    trim: Trim = "auto"
    detector: str = "ranks"
    preset: str | None = None
    work: Work = None
    work_order: str = "bisecting"
    quick_s: float = 60.0
    quick_rounds: int = 50
    short_round_s: float = 0.01
    min_rounds: int = 1
    max_rounds: int | None = None
    red_rounds: str = "keep"
    disturbed: str = "leave-out"
    reference: bool = True
    pieces: int = 1
    target_given: bool | None = None

    # Choices of earlier versions, and what stands for them where a stored run names one.
    _retired: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "detector": {"binseg": "ranks", "kernel": "ranks"},
        "red_rounds": {"drop": "repeat"},
    }

    def __post_init__(self) -> None:
        problems: list[str] = []
        is_usual = self.target == USUAL_TARGET and isinstance(self.target, _Usual)
        for field in fields(self):
            n = len(problems)
            check = _OWN_CHECKS.get(field.name) or partial(
                checked, field.name, SETTINGS[field.name]
            )
            value = attempt(problems, check, getattr(self, field.name))
            # What does not fit must not clash with others, too.
            object.__setattr__(self, field.name, value if len(problems) == n else field.default)
        refuse(problems, wrong_together(self, _CLASHES))
        if self.target_given is None:
            is_asked = self.target == USUAL_TARGET and not is_usual
            object.__setattr__(self, "target_given", is_asked)

    @property
    def asked(self) -> float | None:
        """The target if somebody asked for it; None if it is the default."""
        return self.target if self.target_given or self.target != USUAL_TARGET else None

    @property
    def piece_s(self) -> float:
        """Seconds of measuring per piece."""
        return self.budget_s / self.pieces

    @property
    def cut_shares(self) -> tuple[float, float] | None:
        """Shares to cut at both ends of a series; None to search for the stable phase."""
        if isinstance(self.trim, tuple):
            return self.trim
        return (0.0, 0.0) if self.trim == "none" else None

    @property
    def work_range(self) -> tuple[float, float | None] | None:
        """The range of work amounts; None if all rounds are the same."""
        if isinstance(self.work, tuple):
            return self.work
        return (0, None) if self.analysis == "wps" else None


_MEANS = "long-run-variance"  # the method that asks nothing of other options
# What does not go together, and how to say so.
_CLASHES: tuple[tuple[Callable[[Options], bool], str], ...] = (
    (
        lambda its: its.max_rounds is not None and its.min_rounds > its.max_rounds,
        "min_rounds is {0.min_rounds}, but max_rounds is {0.max_rounds}, expected no less",
    ),
    (
        lambda its: its.method != _MEANS and its.statistic != "mean",
        "statistic is {0.statistic!r}, expected 'mean': subsessions merge means",
    ),
    (
        lambda its: its.statistic == "min" and its.trim != "auto",
        "trim is {0.trim!r}, but statistic is 'min': a minimum is of all readings",
    ),
    (
        lambda its: its.statistic == "min" and its.asked is not None,
        "target is {0.target!r}, but statistic is 'min': a minimum has no interval",
    ),
    (
        lambda its: its.detector != "ranks" and its.trim != "auto",
        "detector is {0.detector!r}, but trim is {0.trim!r}: there nothing is looked for",
    ),
    (
        lambda its: (its.detector != "ranks", its.trim, its.analysis) == (True, "auto", "wps"),
        "detector is {0.detector!r}, but analysis is 'wps': there nothing is looked for",
    ),
    (
        lambda its: its.analysis == "wps" and isinstance(its.work, int | float),
        "work is {0.work!r}, expected a range (low, high): analysis 'wps' compares amounts",
    ),
    (
        lambda its: its.analysis == "readings" and its.work_range is not None,
        "work is {0.work!r}, expected one amount: analysis 'readings' needs rounds of one amount",
    ),
    (
        lambda its: its.method == "merged-subsessions" and its.work_range is None,
        "method is {0.method!r}, but work is {0.work!r}: it merges rounds of various work",
    ),
    (
        lambda its: its.analysis == "wps" and its.trim != "auto",
        "trim is {0.trim!r}, expected 'auto': analysis 'wps' cuts no readings",
    ),
    (
        lambda its: its.analysis == "wps" and its.statistic != "mean",
        "statistic is {0.statistic!r}, expected 'mean': a line has no quantiles",
    ),
    (
        lambda its: its.pieces > 1 and its.rounds == "restarted",
        "pieces is {0.pieces}, but rounds are restarted: each is an invocation, and no piece is "
        "needed",
    ),
    (
        lambda its: its.pieces > 1 and its.work_range is not None,
        "pieces is {0.pieces}, but work amounts vary: the line through them has rounds, and no "
        "pieces",
    ),
    (
        lambda its: its.pieces > 1 and its.method != _MEANS,
        "pieces is {0.pieces}, but method is {0.method!r}: the interval comes from the pieces' "
        "levels",
    ),
    (
        lambda its: its.pieces > 1 and not SHORTEST_PIECE_S <= its.piece_s < math.inf,
        f"pieces is {{0.pieces}}, but budget_s is {{0.budget_s:g}}, expected {SHORTEST_PIECE_S:g} "
        "s at least for each piece, and an end",
    ),
)


def check_trim(trim: object) -> Trim:
    """Check "auto", "none", or shares to cut; return a share per end.

    Examples
    --------
    >>> check_trim(0.1)
    (0.1, 0.1)
    """
    if isinstance(trim, str) and trim in ("auto", "none"):
        return trim
    is_pair = isinstance(trim, Sequence) and not isinstance(trim, str | bytes)
    both: Sequence[object] = trim if is_pair else (trim, trim)  # type: ignore[assignment]
    ends = [as_share(end) for end in both]
    shares = tuple(float(share) for share in ends if is_number(share) and 0.0 <= share < 1.0)
    if len(ends) != 2 or len(shares) != 2 or not sum(shares) < 1.0:
        raise InvalidInput(
            f"trim is {short(trim)}, expected 'auto', 'none', or a share to cut at each end, or "
            "a pair of them, 0 or more and less than 1 together"
        )
    return shares[0], shares[1]


_LARGEST = 1e300  # Sums and differences of amounts up to here are finite


def check_work(work: object) -> Work:
    """Check an amount of work, a range of amounts ``(low, high)``, or None; return plain numbers.

    Whole numbers stay whole. A range begins at 0 or more; without an end (None, or infinity) it
    has no largest amount.

    Examples
    --------
    >>> check_work((0, 10**12))
    (0, 1000000000000)
    >>> check_work((5.0, 1.0))
    Traceback (most recent call last):
    ...
    benchrigor.errors.InvalidInput: work is (5.0, 1.0), expected a range that ends above its \
beginning, at 1e300 at most
    """
    if work is None:
        return None
    if isinstance(work, Sequence) and not isinstance(work, str | bytes):
        return _checked_range(tuple(work))
    amount = _plain(work)
    if amount is None or not 0.0 < amount <= _LARGEST:
        raise _wrong_work(work)
    return amount


def _checked_range(ends: tuple[object, ...]) -> tuple[float, float | None]:
    if len(ends) != 2:
        raise _wrong_work(ends)
    open_ended = ends[1] is None or ends[1] == math.inf
    low, high = _plain(ends[0]), None if open_ended else _plain(ends[1])
    if low is None or not 0 <= low <= _LARGEST or not (open_ended or high is not None):
        raise _wrong_work(ends)
    if high is not None and not low < high <= _LARGEST:
        raise _wrong_work(ends, "a range that ends above its beginning, at 1e300 at most")
    return low, high


def _wrong_work(
    work: object, expected: str = "an amount above 0, a range (low, high), or None"
) -> InvalidInput:
    return InvalidInput(f"work is {short(work)}, expected {expected}")


def _plain(amount: object) -> float | None:
    """Return an int or a float of Python's own; None if the value is not a number."""
    if not is_number(amount):
        return None
    if isinstance(amount, Integral):
        return int(amount)
    return None if math.isnan(amount) else float(amount)


def _check_statistic(statistic: Any) -> Any:
    try:
        statistic_of(statistic)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    return statistic


_OWN_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "statistic": _check_statistic,
    "trim": check_trim,
    "work": check_work,
}
