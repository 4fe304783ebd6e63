"""From readings to an Analysis: a list of plain functions over immutable data.

Each step takes the material and the analysis so far and returns a fuller analysis. `CHECK` is
what a running session needs to judge where it stands; `REPORT` adds what only people look at.
`LINE` and `LINE_REPORT` take their place for pairs of work amount and duration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import (
    Analysis,
    ChangePoints,
    Code,
    Floats,
    Kind,
    Metric,
    Mode,
    Notice,
    Options,
    Severity,
    StablePhase,
    quantile_named,
)
from benchrigor.protocols import Detector
from benchrigor.session.estimating import How, estimate_quantile_of, estimated, notice_of
from benchrigor.session.stop_rules import (
    Floor,
    caution,
    floor_for,
    needed_for_share,
    wanted_half_width,
)
from benchrigor.stats import fit_wps, merge_subsessions, rejected_notices, trimmed
from benchrigor.stats.estimators.multimodality import apart, modes_of
from benchrigor.stats.estimators.variance_components import split_of
from benchrigor.stats.phases.common_warm_up import common_phases
from benchrigor.stats.phases.trimming import (
    MATERIALITY,
    bearable_phase,
    measured_phase,
    moved_on,
    short_run,
)
from benchrigor.stats.series.level import FEW, FEWEST
from benchrigor.units import Direction

__all__ = [
    "CHECK",
    "LINE",
    "LINE_REPORT",
    "REPORT",
    "Material",
    "Step",
    "analyse",
    "cut",
]

_HOPELESS = 1e6
"""Beyond a million times the width wanted, a prediction has no meaning but "very many"."""
_FEWEST_UNITS = 20
"""No change point can be found in fewer readings, two segments of ten."""
_MODES = 0.01
"""Chance of taking one mode for several."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """The readings of one metric, and how they are to be judged.

    Parameters
    ----------
    metric, options
        As given to the session.
    kind
        How the readings come.
    series
        One series for continuous rounds, one per round for restarted ones; two for rounds of
        various work: their amounts, and their durations in seconds.
    phases
        The stable phases of ``series`` where they are known already (restarted rounds with a
        detector of one's own, each cut for itself); empty where they are to be found.
    detector
        None for the built-in one.
    batch
        Calls of which each reading is the average.
    complete
        Whether the series has come to its end, where a cool-down may be under way.
    left_out
        Of pairs of work amount and duration, the indices of those that do not count.
    notices
        What is known beforehand, and the reader must know.
    """

    metric: Metric
    options: Options
    kind: Kind
    series: tuple[Floats, ...]
    phases: tuple[StablePhase, ...] = ()
    detector: Detector | None = None
    batch: int = 1
    complete: bool = False
    left_out: tuple[int, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def how(self) -> How:
        """How its readings are to be estimated."""
        return How(
            metric=self.metric,
            options=self.options,
            kind=self.kind,
            batch=self.batch,
            complete=self.complete,
        )

    @property
    def floor(self) -> Floor:
        """The evidence asked for before the metric may count as satisfied."""
        return floor_for(self.options, by_round=self.kind != Kind.UNIT_READINGS)


Step = Callable[[Material, Analysis], Analysis]


def analyse(material: Material, steps: Iterable[Step]) -> Analysis:
    """Run the steps over the material, from an empty analysis on."""
    pairs = material.kind is Kind.WORK
    analysis = Analysis(
        metric=material.metric,
        kind=material.kind,
        n=material.series[0].size if pairs else sum(series.size for series in material.series),
        notices=material.notices,
    )
    for step in steps:
        analysis = step(material, analysis)
    return analysis


def cut(series: Floats, options: Options, detector: Detector | None) -> StablePhase:
    """Find the stable phase of one series, as a session sees it.

    Shifts of less than a quarter of the target do not end a phase, nor those of less than a
    quarter of the half-width where there is no target: the bias that they leave is small.

    Raises
    ------
    DetectorFailed
        When a detector of one's own raises, or gives no change points of the series.
    """
    if detector is None:
        return _phase(series, options, None)
    try:
        return _phase(series, options, _asked(detector, series))
    except InvalidInput as error:
        raise DetectorFailed(f"detector {detector!r}: {error}") from error


def _phase(series: Floats, options: Options, points: ChangePoints | None) -> StablePhase:
    if options.target is None:
        return bearable_phase(series, options.confidence, points)
    materiality = min(MATERIALITY, options.target / 4.0)
    return measured_phase(series, materiality, points)


def _asked(detector: Detector, series: Floats) -> ChangePoints:
    try:
        found = detector(series)
    except Exception as error:
        raise DetectorFailed(
            f"detector {detector!r} raised {error!r} on {series.size} readings"
        ) from error
    if not isinstance(found, ChangePoints):
        raise DetectorFailed(f"detector {detector!r} returned {found!r}, expected ChangePoints")
    return found


def cut_phases(material: Material, analysis: Analysis) -> Analysis:
    """Find the stable phase of each series; too few readings are taken as they are."""
    fewest = FEW if material.kind == Kind.READINGS else _FEWEST_UNITS
    if material.kind != Kind.INVOCATIONS and analysis.n < fewest:
        return replace(analysis, n_kept=analysis.n)
    phases = material.phases or _found_phases(material)
    kept = sum(phase.n for phase in phases)
    return replace(analysis, phases=phases, n_kept=kept, notices=_refusals(material, phases))


def _found_phases(material: Material) -> tuple[StablePhase, ...]:
    if not material.series:
        return ()
    if material.kind is Kind.INVOCATIONS:
        common = common_phases(material.series, confidence=material.options.confidence)
        if len(common) == 1 or any(phase.start is not None for phase in common):
            return common
        return _each_for_itself(material, common)
    return tuple(cut(series, material.options, material.detector) for series in material.series)


def _each_for_itself(
    material: Material, common: tuple[StablePhase, ...]
) -> tuple[StablePhase, ...]:
    """Cut rounds one by one that have no steady state in common, where most have one of their own.

    A busy machine favours the start of every round, which is no warm-up of the workload.
    """
    own = tuple(cut(series, material.options, None) for series in material.series)
    if 2 * sum(phase.n >= FEWEST for phase in own) <= len(own):
        return common
    sentence = "The rounds have no steady state in common: each was cut for itself."
    said = replace(common[0].notices[0], severity=Severity.WARNING, sentence=sentence)
    return tuple(
        replace(phase, notices=(said,)) if phase.start is not None else phase for phase in own
    )


def _refusals(material: Material, phases: tuple[StablePhase, ...]) -> tuple[Notice, ...]:
    if material.kind is Kind.INVOCATIONS and len(phases) > 1:
        rejected = [phase for phase in phases if phase.n < FEWEST]
        unsteady = rejected[0].notices if len(rejected) == len(phases) else ()
        kept = next((phase.notices for phase in phases if phase.start is not None), ())
        apart = tuple(each for each in kept if each.code is Code.NO_STABLE_PHASE)
        return (*rejected_notices(len(rejected), len(phases)), *unsteady, *apart)
    return tuple(notice for phase in phases for notice in phase.notices)


def estimate(material: Material, analysis: Analysis) -> Analysis:
    """Estimate what was asked for of what was kept."""
    found = estimated(material.how, _kept(material, analysis))
    if found.estimate is None:
        notices = (*analysis.notices, *found.refusals[:1])
        return replace(analysis, fits=found.fits, notices=notices)
    said = {notice.code for notice in analysis.notices}
    further = (*found.estimate.notices, *_cautions(material, analysis))
    notices = (*analysis.notices, *(each for each in further if each.code not in said))
    return replace(
        analysis,
        fits=found.fits,
        n_kept=sum(series.size for series in _kept(material, analysis)),
        estimate=replace(found.estimate, notices=notices),
        notices=notices,
    )


def _kept(material: Material, analysis: Analysis) -> tuple[Floats, ...]:
    if not analysis.phases:
        return material.series
    pairs = zip(material.series, analysis.phases, strict=True)
    return tuple(trimmed(series, phase) for series, phase in pairs if phase.start is not None)


def _cautions(material: Material, analysis: Analysis) -> tuple[Notice, ...]:
    """Say what makes a running series of readings weaker than it looks."""
    if material.kind != Kind.UNIT_READINGS:
        return ()
    ends = [phase.stop for phase in analysis.phases if phase.stop is not None]
    over = ends and ends[-1] < analysis.n and not material.complete
    return (*short_run(analysis.n), *(moved_on(analysis.n - ends[-1]) if over else ()))


def foresee(material: Material, analysis: Analysis) -> Analysis:
    """Predict how many readings in all the target takes."""
    found = analysis.estimate
    if found is None:
        return analysis
    wanted = wanted_half_width(found, analysis.metric, material.options)
    if not wanted > 0.0:
        return analysis
    units = found.n if material.kind in (Kind.INVOCATIONS, Kind.WORK) else analysis.n
    ratio = min(found.half_width * caution(analysis) / wanted, _HOPELESS)
    factor = max(ratio**2, material.floor.effective / found.n_effective)
    needed = max(units * factor, material.floor.first_check)
    if material.kind == Kind.UNIT_READINGS:
        needed = max(needed, needed_for_share(analysis))
    if material.kind is Kind.WORK:  # what was left out need not be run again
        needed += analysis.n - units
    else:
        needed *= analysis.n / units
    return replace(analysis, required=int(needed + 1.0 - 1e-9))


def picture(material: Material, analysis: Analysis) -> Analysis:
    """Merge the kept readings into subsessions, for the picture of their autocorrelation."""
    kept = _kept(material, analysis)
    if material.kind == Kind.INVOCATIONS or not kept:
        return analysis
    return replace(analysis, subsessions=merge_subsessions(kept[0]))


def describe(material: Material, analysis: Analysis) -> Analysis:
    """Say what is typical, what is the floor, and around which values the readings gather."""
    kept = _kept(material, analysis)
    if analysis.estimate is None or not kept:
        return analysis
    best = 0.9 if material.metric.direction is Direction.HIGHER else 0.1
    typical, floor = (estimate_quantile_of(material.how, kept, share) for share in (0.5, best))
    if material.kind == Kind.INVOCATIONS:
        split = split_of(analysis.fits) if len(analysis.fits) > 1 else None
        return replace(analysis, typical=typical.estimate, floor=floor.estimate, split=split)
    modes = apart(modes_of(kept[0], _MODES))
    several = _several_modes(modes) if quantile_named(material.options.statistic) is None else ()
    return replace(
        analysis,
        typical=typical.estimate,
        floor=floor.estimate,
        modes=modes,
        notices=(*analysis.notices, *several),
    )


def _several_modes(modes: tuple[Mode, ...]) -> tuple[Notice, ...]:
    if len(modes) < 2:
        return ()
    notice = Notice.note(
        Code.SEVERAL_MODES,
        f"The readings gather around {len(modes)} values; the mean need not be near any.",
        modes=len(modes),
    )
    return (notice,)


def fit_line(material: Material, analysis: Analysis) -> Analysis:
    """Fit the line through the pairs of work amount and duration that count."""
    return _fitted(material, analysis, checks=False)


def fit_and_check(material: Material, analysis: Analysis) -> Analysis:
    """Fit the line, and check whether it may be one: that takes most of the time."""
    return _fitted(material, analysis, checks=True)


def _none_counts() -> Notice:
    return Notice.refusal(Code.TOO_FEW_READINGS, "0 rounds count, expected at least 3.", n=0)


def _fitted(material: Material, analysis: Analysis, *, checks: bool) -> Analysis:
    counts = np.ones(analysis.n, dtype=bool)
    counts[list(material.left_out)] = False
    work, duration_s = (series[counts] for series in material.series)
    analysis = replace(analysis, n_kept=work.size, left_out=material.left_out)
    if work.size == 0:
        return replace(analysis, notices=(_none_counts(), *analysis.notices))
    try:
        fit = fit_wps(work, duration_s, confidence=material.options.confidence, checks=checks)
    except NotEstimable as error:
        return replace(analysis, notices=(*analysis.notices, notice_of(error)))
    notices = (*fit.notices, *analysis.notices)
    found = None if fit.speed is None else replace(fit.speed, notices=notices)
    return replace(analysis, wps=fit, estimate=found, notices=notices)


LINE: tuple[Step, ...] = (fit_line, foresee)
LINE_REPORT: tuple[Step, ...] = (fit_and_check, foresee)
CHECK: tuple[Step, ...] = (cut_phases, estimate, foresee)
REPORT: tuple[Step, ...] = (*CHECK, describe, picture)
