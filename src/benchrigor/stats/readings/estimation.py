"""From readings to an estimate: cut, fit, combine.

`Session`, `estimate_mean`, `estimate_quantile`, `estimate_invocations` and `compare` all end here,
so the same readings give the same number through each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice, StablePhase
from benchrigor.model.analysis import LevelFit, PhaseReason
from benchrigor.model.notice import Severity, one_each
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.edm import name_averaging
from benchrigor.stats.phases.trimming import trimmed
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.series.level import BLOCKS, MIN_FOR_VARIANCE
from benchrigor.stats.statistics.statistic import Fitting, Several, Statistic

# Phases that count whole, as they are: nothing is fitted along with their level.
_AS_THEY_ARE = {PhaseReason.SLOW_NOISE, PhaseReason.LONGEST_SEGMENT}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimation:
    """An estimate with its intermediate results, or the Notices that say why there is none."""

    estimate: Estimate | None = None
    notices: tuple[Notice, ...] = ()
    phases: tuple[StablePhase, ...] = ()
    fits: tuple[LevelFit, ...] = ()
    values: tuple[float | None, ...] = ()  # of each invocation or piece; None if it allows none
    levels: tuple[float | None, ...] = ()  # of each piece
    n_kept: int = 0  # readings that are left

    def estimate_or_raise(self) -> Estimate:
        """Return the estimate, or raise NotEstimable with the last refusal."""
        if self.estimate is None:
            refusals = [notice for notice in self.notices if notice.severity is Severity.REFUSAL]
            raise NotEstimable(refusals[-1])
        return self.estimate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """Readings as they are cut, and the statistic that is estimated of them."""

    readings: Readings
    phases: tuple[StablePhase, ...]
    statistic: Statistic

    @classmethod
    def of(cls, readings: Readings, phases: tuple[StablePhase, ...]) -> Cut:
        """Return the readings cut by these phases, with the statistic that is asked for."""
        return cls(readings=readings, phases=phases, statistic=readings.statistic)

    @property
    def kept(self) -> tuple[Floats | None, ...]:
        """Series as they are cut, the whole ones without phases; None without a stable phase."""
        return _keep(self.readings.series, self.phases)

    @property
    def weights(self) -> Floats | None:
        """Weights of the readings of a single series that are left."""
        weights = self.readings.weights
        return None if weights is None else _keep((weights,), self.phases)[0]

    def fitting(self, transients: tuple[float, ...]) -> Fitting:
        """Return how levels are fitted: in blocks, or with these transients, as the phases ask."""
        options, reasons = self.readings.options, {phase.reason for phase in self.phases}
        in_blocks = PhaseReason.CHANGING_PACE in reasons
        is_moving = self.readings.is_searched and not reasons & _AS_THEY_ARE
        return Fitting(
            confidence=options.confidence,
            method=BLOCKS if in_blocks else options.method,
            autocorrelation_limit=options.autocorrelation_limit,
            transients=transients if is_moving and not in_blocks else (),
            shortest=0 if is_moving else MIN_FOR_VARIANCE,
        )


def estimate(readings: Readings) -> Estimation:
    """Cut, fit and combine readings."""
    unit = readings.unit
    if (why := unit.refusal(readings)) is not None:
        n = sum(values.size for values in readings.series) if readings.statistic.refusal else 0
        return Estimation(notices=(why, *_of_batches(readings, readings.statistic)), n_kept=n)
    phases = readings.phases or (unit.cut(readings) if readings.searched else ())
    estimation = estimate_cut(Cut.of(readings, phases))
    notices = _once((*_phase_notices(phases), *estimation.notices))
    rejected, count = estimation.values.count(None), len(estimation.values)
    if rejected < count or not notices:  # otherwise they say why none counts
        notices = (*rejected_notices(rejected, count), *notices)
    if estimation.estimate is not None:
        notices += unit.tell(readings, phases)
    if readings.takes_longest and estimation.estimate is not None:
        longest = max(values.size for values in readings.series)
        method = name_averaging(estimation.estimate.method, longest)
        estimation = replace(estimation, estimate=replace(estimation.estimate, method=method))
    return replace(_add_notices(estimation, one_each(notices)), phases=phases)


def _add_notices(estimation: Estimation, notices: tuple[Notice, ...]) -> Estimation:
    """Put the notices on the estimation and on its estimate."""
    estimate = estimation.estimate and replace(estimation.estimate, notices=notices)
    return replace(estimation, estimate=estimate, notices=notices)


def _once(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Keep the first Notice of each code."""
    first: dict[Code, Notice] = {}
    for notice in notices:
        first.setdefault(notice.code, notice)
    return tuple(first.values())


def _keep(series: Sequence[Floats], phases: Sequence[StablePhase]) -> tuple[Floats | None, ...]:
    """Return the series as they are cut, or the whole ones if no phases were looked for."""
    if not phases:
        return tuple(series)
    return tuple(
        None if phase.start is None else trimmed(values, phase)
        for values, phase in zip(series, phases, strict=True)
    )


def _phase_notices(phases: Sequence[StablePhase]) -> tuple[Notice, ...]:
    """Return the notices of the first phase that is measured, or else of the first one."""
    measured = [phase for phase in phases if phase.n >= MIN_FOR_VARIANCE]
    return next((phase.notices for phase in (*measured, *phases)), ())


def estimate_cut(cut: Cut) -> Estimation:
    """Estimate the statistic of readings that are cut."""
    estimation = cut.readings.unit.combine(cut)
    notices = estimation.notices
    if estimation.estimate is not None:
        notices = (*notices, *_of_batches(cut.readings, cut.statistic))
    n_kept = sum(series.size for series in cut.kept if series is not None)
    return replace(_add_notices(estimation, notices), n_kept=n_kept)


def combine_one(cut: Cut, fitting: Fitting) -> Estimation:
    """Estimate the statistic of a single series."""
    (series,) = cut.kept
    fits: tuple[LevelFit, ...] = ()
    if series is None:
        return Estimation()
    try:
        estimate, fits = cut.statistic.of_series(series, fitting, cut.weights)
        estimate = cut.readings.number(estimate)
    except NotEstimable as error:
        return Estimation(fits=fits, notices=(notice_of(error),))
    return Estimation(estimate=estimate, fits=fits, notices=estimate.notices)


def combine_several(cut: Cut, fitting: Fitting) -> Estimation:
    """Estimate the statistic of each series, and combine their values."""
    fits: list[LevelFit] = []
    values: list[float | None] = []
    refusals: list[Notice] = []
    for series in cut.kept:
        value = None
        try:
            if series is not None:
                value, found = cut.statistic.of_each(series, fitting)
                fits += found
        except NotEstimable as error:
            refusals.append(notice_of(error))
        values.append(value)
    estimation = Estimation(fits=tuple(fits), values=tuple(values))
    counted = [
        (series, value)
        for series, value in zip(cut.kept, values, strict=True)
        if series is not None and value is not None
    ]
    if not counted:
        return replace(estimation, notices=tuple(refusals[:1]))
    several = Several(
        series=[series for series, _ in counted],
        values=[value for _, value in counted],
        fits=estimation.fits,
        fitting=fitting,
        unit=cut.readings.unit.noun,
    )
    try:
        estimate = cut.readings.number(cut.statistic.of_several(several))
    except NotEstimable as error:
        return replace(estimation, notices=(notice_of(error),))
    return replace(estimation, estimate=estimate, notices=estimate.notices)


def rejected_notices(rejected: int, total: int) -> tuple[Notice, ...]:
    """Say how many invocations do not count; if none does, the refusal of their phases tells."""
    if rejected in {0, total}:
        return ()
    sentence = f"{rejected} of {total} rounds have no stable phase and do not count."
    return (Notice.warning(Code.ROUNDS_REJECTED, sentence, rejected=rejected, rounds=total),)


def _of_batches(readings: Readings, statistic: Statistic) -> tuple[Notice, ...]:
    """Warn of a quantile, or the least, of readings that are averages."""
    is_single = statistic.q is not None or statistic.refusal is not None
    return (warn_of_batches(readings.batch),) if is_single and readings.batch > 1 else ()


def warn_of_batches(calls: int) -> Notice:
    """Warn of quantiles of averages."""
    sentence = (
        f"Each reading averages {calls} calls: quantiles of averages lie nearer to the mean than "
        "those of single calls."
    )
    return Notice.warning(Code.BATCHED, sentence, calls=calls)


def notice_of(error: NotEstimable) -> Notice:
    """Return the Notice of the error."""
    assert isinstance(error.notice, Notice)  # noqa: S101  # for the type checker: errors lie below
    return error.notice
