"""Results of the statistics of readings: change points, phases, subsessions, fits."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import codec
from benchrigor.model.estimate import Estimate
from benchrigor.model.machine import Pace
from benchrigor.model.metric import Metric
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import Reason, Round, Selection, readings_of, without_margins
from benchrigor.model.series import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoints(OneLine):
    """The places in a series at which its distribution changes.

    Parameters
    ----------
    indices
        First indices of new segments, ascending; empty without a change.
    n
        Length of the series.
    level
        Chance of any false change point in a series without change; None if the detector
        makes no promise.
    inflation
        Long-run over marginal variance of the readings' ranks, at least 1: the factor by which
        autocorrelation inflates apparent shifts.
    early, late
        Readings at the start and at the end that differ in level from their neighbours, but are
        too few to call a change.
    """

    indices: tuple[int, ...]
    n: int
    level: float | None
    inflation: float
    early: int = 0
    late: int = 0

    @property
    def borders(self) -> tuple[int, ...]:
        """0, the change points, and n: the borders of all segments."""
        return (0, *self.indices, self.n)

    def within(self, start: int, stop: int) -> ChangePoints:
        """Return the change points inside a part of the series, counted from its start."""
        return replace(
            self,
            indices=tuple(index - start for index in self.indices if start < index < stop),
            n=stop - start,
            early=max(self.early - start, 0),
            late=max(self.late - (self.n - stop), 0),
        )


class Kind(enum.StrEnum):
    """How the readings of a metric arise: the unit of inference, and the unit of counting."""

    noun: str
    counted: str

    def __new__(cls, value: str, noun: str, counted: str = "reading") -> Kind:
        """Return it with its words."""
        kind = str.__new__(cls, value)
        kind._value_, kind.noun, kind.counted = value, noun, counted
        return kind

    UNIT_READINGS = "unit readings", "reading"  # Many per round, continuing one series
    INVOCATIONS = "invocations", "invocation"  # Many per round; each has its own warm-up
    PIECES = "pieces", "piece"  # Many per round, in parts of one run that may lie minutes apart
    READINGS = "readings", "reading"  # One per round
    WORK = "work amounts", "round", "round"  # A pair of work amount and duration per round


class PhaseLabel(enum.StrEnum):
    """The role of a phase in a run."""

    WARM_UP = "warm-up"
    STABLE = "stable"
    COOL_DOWN = "cool-down"
    OTHER = "other"


class PhaseReason(enum.StrEnum):
    """Why a series has a stable phase, or does not have one."""

    STABLE = "stable"
    AS_ASKED = "cut as asked"
    WHOLE = "taken whole"
    LONGEST_SEGMENT = "longest segment"
    CHANGING_PACE = "the pace changed"
    SLOW_NOISE = "slow noise"
    NO_DOMINANT_SEGMENT = "no dominant segment"
    TREND = "trend"
    STILL_MOVING = "still moving at the end"
    RANDOM_WALK = "random walk"
    FEW_EFFECTIVE = "too few effective readings"
    NOT_STABLE_INSIDE = "not stable inside"


_REASONS = {
    PhaseLabel.WARM_UP: Reason.WARM_UP,
    PhaseLabel.STABLE: Reason.MARGIN,
    PhaseLabel.COOL_DOWN: Reason.COOL_DOWN,
    PhaseLabel.OTHER: Reason.OTHER_LEVEL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(OneLine):
    """Successive readings of one distribution: ``start <= i < stop``."""

    start: int
    stop: int
    label: PhaseLabel
    median: float

    @property
    def n(self) -> int:
        """Number of readings."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class StablePhase(OneLine):
    """The stable phase of a series, or the reason why the series has none.

    Parameters
    ----------
    start, stop
        Half open; both None without a stable phase.
    reason
        One of `PhaseReason`.
    phases
        All phases in order, with their labels.
    change_points
        The raw change points, before neighbours that differ immaterially were joined.
    notices
        Notices for the reader, also if there is a stable phase.
    """

    start: int | None
    stop: int | None
    reason: PhaseReason
    phases: tuple[Phase, ...]
    change_points: ChangePoints
    notices: tuple[Notice, ...] = ()

    @property
    def n(self) -> int:
        """Number of readings in the stable phase; 0 without one."""
        return 0 if self.start is None or self.stop is None else self.stop - self.start

    @property
    def is_judged(self) -> bool:
        """Whether a test says that it is stable, or is not, unlike a part taken as asked."""
        return self.reason not in (PhaseReason.AS_ASKED, PhaseReason.LONGEST_SEGMENT)

    @property
    def measured(self) -> slice | None:
        """The readings to measure: without the margins next to cuts that were found."""
        if self.start is None or self.stop is None:
            return None
        if not self.is_judged or self.reason is PhaseReason.WHOLE:
            return slice(self.start, self.stop)
        return without_margins(self.start, self.stop, self.change_points.n)

    @property
    def is_inside(self) -> npt.NDArray[np.bool_]:
        """Which readings of the series are in the stable phase."""
        places = np.arange(self.change_points.n)
        return (places >= (self.start or 0)) & (places < (self.stop or 0))

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """Why each reading of the series counts, or does not."""
        reasons = np.full(self.change_points.n, int(Reason.UNSTEADY), dtype=np.int8)
        measured = self.measured
        for part in self.phases:
            why = Reason.CUT if self.reason is PhaseReason.AS_ASKED else _REASONS[part.label]
            is_whole = self.reason is PhaseReason.WHOLE and not self.notices
            if why is Reason.WARM_UP and (part.n == 1 or is_whole):
                why = Reason.COLD  # no change point sets a single reading apart
            if measured is not None or part.label in (PhaseLabel.WARM_UP, PhaseLabel.COOL_DOWN):
                reasons[part.start : part.stop] = why
        if measured is not None:
            reasons[self.start : self.stop] = (
                Reason.MARGIN
            )  # of any level, if it is a mean over time
            reasons[measured] = Reason.KEPT
        return reasons

    def of_whole(self, whole: ChangePoints, start: int) -> StablePhase:
        """Return the phases of a part of a series by their places in the whole one."""
        return replace(
            self,
            start=None if self.start is None else self.start + start,
            stop=None if self.stop is None else self.stop + start,
            phases=tuple(
                replace(part, start=part.start + start, stop=part.stop + start)
                for part in self.phases
            ),
            change_points=whole,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subsessions(OneLine):
    """Adjacent readings merged until neighbours are (nearly) uncorrelated.

    Parameters
    ----------
    size
        Readings per subsession; None if no size up to n/3 brings the autocorrelation within
        ``limit``.
    means
        Means of the subsessions, shape (h,); empty if size is None.
    autocorrelation
        Lag-1 autocorrelation of ``means`` (of the readings themselves when size is None).
    dropped
        Readings left over at the end.
    limit
        Bound on the absolute autocorrelation.
    """

    size: int | None
    means: Floats
    autocorrelation: float
    dropped: int
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(OneLine):
    """A value around which readings gather: their median, and their share of all, in (0, 1]."""

    value: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(OneLine):
    """Summary of readings that allow no estimate: figures without an interval.

    Parameters
    ----------
    n
        Number of readings, 1 or more, including readings that an estimate would leave out.
    calls
        Number of measured calls: more than ``n`` if a reading is the mean of several calls.
    least, p10, median, mean, greatest
        In the unit of the readings. All five are equal if there is one reading.
    levels
        Up to five values around which the readings gather, ascending, with their shares, which add
        up to 1. They are the levels of the phases, with similar levels merged, or else the modes.

    Examples
    --------
    >>> from benchrigor import stats
    >>> readings = [1.0, 1.01] * 150 + [2.0, 2.01] * 100
    >>> observed = stats.observe(readings, [stats.find_stable_phase(readings)])
    >>> observed.n, observed.least, observed.greatest
    (500, 1.0, 2.01)
    >>> [(round(mode.value, 3), mode.share) for mode in observed.levels]
    [(1.005, 0.6), (2.005, 0.4)]
    """

    n: int
    calls: int
    least: float
    p10: float
    median: float
    mean: float
    greatest: float
    levels: tuple[Mode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFit(OneLine):
    """The level of a series and its standard error.

    Parameters
    ----------
    level
        The mean, or the level after the transient, in the readings' unit.
    transients
        Time constants, in readings, of the exponential transients that were fitted with the level;
        empty for the plain mean.
    variance
        Marginal variance of the residuals.
    long_run_variance
        n times the variance of the mean of n readings, for large n.
    order
        Order of the autoregressive model; 0 if the readings (or merged ones) count as
        uncorrelated.
    batch
        Readings averaged into one before the model was fitted, or merged; 1 for none.
    degrees_of_freedom
        Degrees of freedom of the long-run variance, by the delta method.
    skewness
        Skewness of the batches that the interval was corrected for.
    standard_error
        Standard error of the level.
    method
        "long-run-variance", by an autoregressive model; or "subsessions", by merging adjacent
        readings.
    """

    level: float
    n: int
    transients: tuple[float, ...]
    variance: float
    long_run_variance: float
    order: int
    batch: int
    degrees_of_freedom: float
    skewness: float
    standard_error: float
    method: str = "long-run-variance"

    @property
    def inflation(self) -> float:
        """Long-run over marginal variance; 1 for uncorrelated readings."""
        return self.long_run_variance / self.variance if self.variance > 0.0 else 1.0

    @property
    def n_effective(self) -> float:
        """Effective sample size, at most n."""
        return self.n / max(self.inflation, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit(OneLine):
    """The variance components of a program's readings.

    Parameters
    ----------
    level
        Mean of the invocations' levels, in the readings' unit.
    between
        Variance of the invocations' true levels, in squared units; 0 if the variance inside the
        invocations explains all the spread.
    within
        Variance that a single reading of an invocation contributes, in squared units: the mean
        long-run variance, so that a level of n readings has variance within/n. If the warm-up was
        cut, it includes the variance from fitting transients along with the level.
    invocations
        Number of invocations that contributed.
    readings
        Harmonic mean of the number of readings used per invocation.
    """

    level: float
    between: float
    within: float
    invocations: int
    readings: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WpsFit(OneLine):
    """The line duration = overhead + work / speed, through rounds of various work amounts.

    Parameters
    ----------
    speed
        Work per second of the stable phase. The ends of its interval are the reciprocals of the
        ends for ``slope``, so it is not symmetric. None if the slope is too uncertain.
    overhead
        Seconds that setup, warm-up and cool-down add to a round; negative if the warm-up is faster
        than the stable phase.
    slope
        Seconds per unit of work.
    n
        Rounds fitted.
    naive_speed
        All work over all time, which counts the overhead as work.
    prediction_error
        Leave-one-out error: root mean square over all rounds, each predicted by a line fitted
        without it, relative to the mean duration.
    bend
        Growth of the time per unit of work from the smallest to the largest amount, as a share
        of the slope: 0 if duration is linear in work. None with fewer than four amounts or
        five rounds.
    growth
        Exponent p of duration = overhead + c * work^p: 1 if duration is linear in work. None if it
        is unknown.
    shape
        Name of that growth: "linear", "n log n", "quadratic"; or "other".
    outliers
        Indices of the rounds, among those fitted, that lie far from the line.
    inflation
        Factor by which autocorrelation raises the variance of the slope, 1 or more.
    merged
        Adjacent rounds that form a subsession, with method "subsessions"; else 1.
    """

    speed: Estimate | None
    overhead: Estimate
    slope: Estimate
    n: int
    naive_speed: float
    prediction_error: float
    bend: Estimate | None = None
    growth: Estimate | None = None
    shape: str | None = None
    outliers: tuple[int, ...] = ()
    inflation: float = 1.0
    merged: int = 1
    notices: tuple[Notice, ...] = ()


_NOTABLE = 0.01  # share of the time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disturbed(OneLine):
    """Readings that do not count, because delay was measured during them.

    Parameters
    ----------
    n, left_out
        Number of all readings, and of the readings that do not count.
    lost
        Share of the time of all readings that was spent waiting for a processor.
    starts, stops
        Spans of successive readings that count, shape (k,). They are indices into the readings of
        all rounds that count; with work amounts, into these rounds. A span that stands for similar
        disturbed readings occurs twice or more, so that long readings keep their share.
    estimate
        Estimate from all readings, waiting included; None unless the delay `matters`, and if the
        readings allow no number.
    stopped
        The part of ``lost`` during which the process was stopped.

    Examples
    --------
    >>> Disturbed(n=5, left_out=2, lost=0.3, starts=[0, 4], stops=[2, 5]).indices
    array([0, 1, 4])
    """

    n: int
    left_out: int
    lost: float
    starts: Ints
    stops: Ints
    estimate: Estimate | None = None
    stopped: float = 0.0

    def __post_init__(self) -> None:
        for name in ("starts", "stops"):
            indices = np.asarray(getattr(self, name), dtype=np.int64)
            indices.flags.writeable = False
            object.__setattr__(self, name, indices)

    @property
    def matters(self) -> bool:
        """Whether the lost share is large enough to show next to the number."""
        return self.lost >= _NOTABLE

    @property
    def indices(self) -> Ints:
        """Indices of the readings that count, in order."""
        sizes = self.stops - self.starts
        after = np.cumsum(sizes)
        return np.repeat(self.stops - after, sizes) + np.arange(int(sizes.sum()))

    def sizes(self, rounds: Sequence[int]) -> list[int]:
        """Return the number of readings that count, per round, from the number of its readings."""
        borders = np.searchsorted(self.indices, np.cumsum([0, *rounds])).tolist()
        return [stop - start for start, stop in pairwise(borders)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysis(OneLine):
    """The analysis of one metric, with every intermediate result.

    Parameters
    ----------
    kind
        Origin of the readings.
    n
        Readings so far, without the disturbed ones that are left out.
    n_kept
        Readings inside the stable phases.
    phases
        Stable phase of every series that was cut: one for continuous rounds, one per restarted
        round; empty if no series was cut.
    subsessions
        Subsessions of the kept readings, which show their autocorrelation; None if there are too
        few readings.
    fits
        Levels of the series that contributed.
    estimate
        The estimate; None if the readings allow no number.
    required
        Total number of readings that the target needs; None without a forecast.
    notices
        Notices for the reader, including the estimate's.
    typical, floor
        Median and tenth percentile of the kept readings (the ninetieth percentile of rates, for
        which more is better); None if there are too few readings.
    modes
        Values around which the kept readings gather; empty if the analysis did not search for them.
    split
        Variance components between invocations and readings; None for quantiles, and if fewer than
        two invocations count.
    wps
        The line through pairs of work amount and duration; None for readings, and if there are
        too few pairs.
    left_out
        Indices of the rounds that do not count, for pairs of work amount and duration.
    levels
        Means or quantiles of the pieces of a run; None for a piece that does not count.
    observed
        Summary of the readings without an estimate, else None. For pairs of work amount and
        duration, it summarises work over duration.
    pace
        Pace of the machine during the readings that count; None without enough references.
    at_full_pace
        Estimate of a time or speed at the full speed of the machine, as wide as runs differ; None
        without a pace.
    disturbed
        Readings that were left out because of delay, and the estimate of all readings; None if no
        reading was left out.
    selection
        Which readings count, and why the others do not: of the rounds that count, and with work
        amounts of the rounds themselves. None before a run's end, and in older records.
    """

    metric: Metric
    kind: Kind
    n: int
    n_kept: int = 0
    phases: tuple[StablePhase, ...] = ()
    subsessions: Subsessions | None = None
    fits: tuple[LevelFit, ...] = ()
    estimate: Estimate | None = None
    required: int | None = None
    notices: tuple[Notice, ...] = ()
    typical: Estimate | None = None
    floor: Estimate | None = None
    modes: tuple[Mode, ...] = ()
    split: VarianceSplit | None = None
    wps: WpsFit | None = None
    left_out: tuple[int, ...] = ()
    levels: tuple[float | None, ...] = ()
    observed: Observed | None = None
    pace: Pace | None = None
    at_full_pace: Estimate | None = None
    disturbed: Disturbed | None = None
    selection: Selection | None = None

    @property
    def headline(self) -> Estimate | None:
        """The figure that the line of a run leads with: at full speed if known, else measured."""
        return self.at_full_pace or self.estimate

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis as plain dicts, lists, strings and numbers, with its headline."""
        return {**codec.encode(self), "headline": codec.encode(self.headline)}

    def _line(self) -> str:
        why = "".join(f": {notice.sentence}" for notice in self.notices[:1])
        shown = f"no number{why}" if self.estimate is None else repr(self.estimate)
        name, unit = self.metric.name, self.metric.unit
        return f"{name}{f' in {unit}' if unit else ''}: {shown}"

    @property
    def taken(self) -> int:
        """Readings so far, disturbed ones included."""
        return self.n if self.disturbed is None else self.disturbed.n

    @property
    def is_combined(self) -> bool:
        """Whether its number is of the levels of several units, not of readings."""
        return self.kind.noun not in ("reading", "round")

    def statistic(self, asked: str) -> str:
        """Return which statistic it is of, if this one was asked for; a line has none."""
        return "" if self.kind is Kind.WORK else asked

    def readings_of(self, finished: Round) -> Floats | None:
        """Return the readings of a round: of various work its amount over its duration, if any."""
        if self.kind is not Kind.WORK:
            return readings_of(finished, self.metric.name)
        work, took_s = finished.plan.work, finished.duration_s
        if work is None or finished.cut:
            return None
        return np.array([work / took_s] if took_s > 0.0 else [])

    def series_sizes(self, by_round: Sequence[int]) -> list[int]:
        """Return how many readings each series has that was cut, from their numbers by round.

        These include disturbed readings, and the series do not.
        """
        sizes = [*by_round] if self.kind is Kind.INVOCATIONS else [sum(by_round)]
        if self.disturbed is not None:
            sizes = self.disturbed.sizes(sizes)
        if len(self.phases) > 1 and len(sizes) == 1:  # the pieces of a run
            return [phase.change_points.n for phase in self.phases]
        return sizes

    def select(self, by_round: Sequence[int]) -> Selection | None:
        """Return which readings count, from the phases and the disturbed ones.

        ``by_round`` has the numbers of readings, disturbed ones included. None if they are not
        those that were analysed, and if only notices say which rounds count.
        """
        n = sum(by_round)
        if self.left_out or n != self.taken:
            return None
        whys = np.concatenate([np.zeros(0, dtype=np.int8), *self._reasons(by_round)])
        if self.disturbed is None:
            return Selection.of(whys, whys == Reason.KEPT) if whys.size == n else None
        chosen = self.disturbed.indices
        if whys.size != chosen.size:
            return None
        reasons = np.full(n, int(Reason.DISTURBED), dtype=np.int8)
        reasons[chosen[::-1]] = whys[::-1]
        counts = np.bincount(chosen[whys == Reason.KEPT], minlength=n)
        reasons[counts > 0] = Reason.KEPT
        return Selection.of(reasons, counts)

    def _reasons(self, by_round: Sequence[int]) -> Iterator[npt.NDArray[np.int8]]:
        """Yield by series why its readings count, or do not."""
        phases = iter(self.phases)
        for size in self.series_sizes(by_round):
            phase = next(phases, None) if size else None  # a round that was cut may be empty
            why = Reason.KEPT if self.n_kept else Reason.UNSTEADY
            yield np.full(size, int(why), dtype=np.int8) if phase is None else phase.reasons
