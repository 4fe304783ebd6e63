"""What interleaved readings say so far: cut to what is steady, then compared pair by pair."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    Analysis,
    Code,
    Comparison,
    Estimate,
    Floats,
    Kind,
    Metric,
    Notice,
    Severity,
    Verdict,
)
from benchrigor.model.headline import percent
from benchrigor.session.rules import STABLE_SHARE, Floor
from benchrigor.stats.comparison import compare
from benchrigor.stats.levels import FEWEST, too_few
from benchrigor.stats.trimming import MATERIALITY, SHORT, measured_phase, trimmed
from benchrigor.units import Direction

__all__ = [
    "RATIO",
    "How",
    "PairLook",
    "as_analysis",
    "judge_pairs",
    "not_converged",
    "noted",
    "required_pairs",
]

RATIO = Metric(name="ratio")
"""What is measured: candidate over baseline, pairs being its readings."""

_TIMES = 2.0
"""From this ratio on a change is told in times rather than in per cent of the baseline."""
_HOPELESS = 1e6
"""Beyond a million times the width wanted a prediction means nothing but "very many"."""
_FEWEST_CUT = 20
"""No change point can be found in fewer pairs."""
_SETTLING = 3
"""Beside a moving level no transient can be fitted, so this part (a third) of such pairs is left
out: with an unseen warm-up in one side 0.87 to 0.98 of intervals held the truth, against 0.61 to
0.97 of those that leave out nothing (500 and 1125 pairs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How pairs are to be judged.

    Parameters
    ----------
    statistic, confidence, margin, direction
        As for `benchrigor.stats.comparison.compare`.
    target
        Half-width of the ratio wanted.
    """

    statistic: str
    confidence: float
    margin: float
    direction: Direction
    target: float

    def wanted(self, ratio: float) -> float:
        """Return the half-width wanted at a ratio: in proportion to it where it counts times."""
        return self.target * max(1.0, ratio / _TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLook:
    """What ``n`` pairs came to.

    Parameters
    ----------
    comparison
        Holds no number where the pairs allow none.
    n
        Pairs told.
    kept
        Pairs in the stable phase; all where there are too few to look for one.
    """

    comparison: Comparison
    n: int
    kept: int


def judge_pairs(first: Floats, second: Floats, how: How) -> PairLook:
    """Compare what is steady of the pairs.

    Parameters
    ----------
    first, second
        Baseline and candidate, shape (n,) each, in the order in which they were taken.
    how
        What is wanted.

    Returns
    -------
    PairLook
        Of the pairs that are stable in both series. Where those are less than 0.8 of all, as
        when the machine gets faster or slower under both, and more pairs are steady in their
        ratio: of those, and a Notice says so.
    """
    n = first.size
    standing = _tried(first, second, how, n, trim=n >= _FEWEST_CUT)
    if n >= _FEWEST_CUT and standing.kept < STABLE_SHARE * n:
        ratios = _by_ratio(first, second, how)
        if ratios.kept > standing.kept:
            standing = ratios
    short = (_short_run(n),) if n < SHORT and standing.comparison.ratio is not None else ()
    return replace(standing, comparison=noted(standing.comparison, after=short))


def required_pairs(standing: PairLook, how: How, floor: Floor) -> int | None:
    """Predict how many pairs in all the width wanted takes; None where there is no ratio."""
    ratio = standing.comparison.ratio
    if ratio is None:
        return None
    shrink = ratio.half_width / how.wanted(ratio.value)
    factor = max(min(shrink, _HOPELESS) ** 2, floor.effective / ratio.n_effective)
    needed_to_keep = (standing.n - standing.kept) / (1.0 - STABLE_SHARE)
    return math.ceil(max(standing.n * factor, needed_to_keep, floor.first_check))


def as_analysis(standing: PairLook, required: int | None) -> Analysis:
    """Say the same in the words of a session, for stop rules and displays of progress."""
    return Analysis(
        metric=RATIO,
        kind=Kind.UNIT_READINGS,
        n=standing.n,
        n_kept=standing.kept,
        estimate=standing.comparison.ratio,
        required=required,
        notices=standing.comparison.notices,
    )


def not_converged(comparison: Comparison, how: How) -> tuple[Notice, ...]:
    """Mark a ratio that was not brought to its target; nothing where there is no ratio."""
    if comparison.ratio is None:
        return ()
    half_width, wanted = comparison.ratio.half_width, how.wanted(comparison.ratio.value)
    sentence = "Ended before the evidence asked for was there."
    if half_width > wanted:
        sentence = (
            f"Ended with the ratio known to {percent(half_width)} of the baseline, "
            f"wanted {percent(wanted)}."
        )
    notice = Notice(
        code=Code.NOT_CONVERGED,
        severity=Severity.WARNING,
        sentence=sentence,
        evidence={"half_width": half_width, "wanted": wanted},
    )
    return (notice,)


def noted(
    comparison: Comparison, *, before: tuple[Notice, ...] = (), after: tuple[Notice, ...] = ()
) -> Comparison:
    """Add notices to a comparison, and to what it says of both sides together."""

    def added(estimate: Estimate | None) -> Estimate | None:
        if estimate is None:
            return None
        return replace(estimate, notices=(*before, *estimate.notices, *after))

    return replace(
        comparison,
        ratio=added(comparison.ratio),
        difference=added(comparison.difference),
        notices=(*before, *comparison.notices, *after),
    )


def _tried(first: Floats, second: Floats, how: How, n: int, *, trim: bool) -> PairLook:
    """Compare the pairs; with ``trim`` those that are stable in both series."""
    try:
        if n < FEWEST:
            raise NotEstimable(too_few(n, FEWEST))  # noqa: TRY301  # answered like all refusals
        found = compare(
            first,
            second,
            statistic=how.statistic,
            confidence=how.confidence,
            margin=how.margin,
            direction=how.direction,
            paired=True,
            trim=trim,
        )
    except NotEstimable as error:
        return PairLook(comparison=_nothing(how, error.notice), n=n, kept=0)
    kept = n if found.difference is None else found.difference.n
    return PairLook(comparison=found, n=n, kept=kept)


def _by_ratio(first: Floats, second: Floats, how: How) -> PairLook:
    """Compare the pairs whose ratio is steady, whatever moves both sides alike."""
    n = first.size
    lowest = min(float(first.min()), float(second.min()))
    if lowest <= 0.0:
        return PairLook(comparison=_nothing(how, None), n=n, kept=0)
    phase = measured_phase(second / first, min(MATERIALITY, how.target / 4.0))
    if phase.start is None:
        return PairLook(comparison=_nothing(how, phase.notices[0]), n=n, kept=0)
    one, two = (trimmed(each, phase) for each in (first, second))
    settled = one.size // _SETTLING
    standing = _tried(one[settled:], two[settled:], how, n, trim=False)
    if standing.kept == 0:
        return standing
    return PairLook(comparison=noted(standing.comparison, after=(_MOVING,)), n=n, kept=phase.n)


_MOVING = Notice(
    code=Code.NO_STABLE_PHASE,
    severity=Severity.WARNING,
    sentence=(
        "Baseline and candidate have no stable phase together, but their ratio has one: it is "
        "what is known, rather than the times themselves."
    ),
)


def _short_run(n: int) -> Notice:
    return Notice(
        code=Code.SHORT_RUN,
        severity=Severity.WARNING,
        sentence=f"{n} pairs: below {SHORT}, a warm-up may stay unseen and bias their ratio.",
        evidence={"n": n, "wanted": SHORT},
    )


def _nothing(how: How, notice: object) -> Comparison:
    """Return a comparison without any number."""
    return Comparison(
        statistic=how.statistic,
        direction=how.direction,
        margin=how.margin,
        confidence=how.confidence,
        paired=True,
        unit="pair",
        baseline=None,
        candidate=None,
        ratio=None,
        difference=None,
        p_value=None,
        p_beyond=1.0,
        verdict=Verdict.UNDECIDED,
        notices=(notice,) if isinstance(notice, Notice) else (),
    )
