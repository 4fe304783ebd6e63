"""From readings to an Analysis: a list of plain functions over immutable data.

Each step takes the material and the analysis so far and returns a fuller analysis. `CHECK` is
what a running session needs to judge where it stands; `REPORT` adds what only people look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import (
    Analysis,
    ChangePoints,
    Code,
    Floats,
    Kind,
    Metric,
    Notice,
    Options,
    Severity,
    StablePhase,
)
from benchrigor.protocols import Detector
from benchrigor.session.rules import Floor, floor_for, wanted_half_width
from benchrigor.stats import (
    combine_levels,
    estimate_level,
    find_stable_phase,
    fit_level,
    merge_subsessions,
    rejected_notices,
    trimmed,
)
from benchrigor.stats.levels import FEW, FEWEST
from benchrigor.stats.steadiness import TRANSIENTS
from benchrigor.stats.trimming import MATERIALITY, SHORT, bearable_phase

__all__ = [
    "CHECK",
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
        One series for continuous rounds, one per round for restarted ones.
    phases
        The stable phases of ``series`` where they are known already (restarted rounds, which
        never change once they are told); empty where they are to be found.
    detector
        None for the built-in one.
    """

    metric: Metric
    options: Options
    kind: Kind
    series: tuple[Floats, ...]
    phases: tuple[StablePhase, ...] = ()
    detector: Detector | None = None

    @property
    def floor(self) -> Floor:
        """The evidence asked for before the metric may count as satisfied."""
        return floor_for(self.options, by_round=self.kind != Kind.UNIT_READINGS)


Step = Callable[[Material, Analysis], Analysis]


def analyse(material: Material, steps: Iterable[Step]) -> Analysis:
    """Run the steps over the material, from an empty analysis on."""
    analysis = Analysis(
        metric=material.metric,
        kind=material.kind,
        n=sum(series.size for series in material.series),
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
    return find_stable_phase(series, materiality=materiality, change_points=points)


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
    phases = material.phases or tuple(
        cut(series, material.options, material.detector) for series in material.series
    )
    kept = sum(phase.n for phase in phases)
    return replace(analysis, phases=phases, n_kept=kept, notices=_refusals(material, phases))


def _refusals(material: Material, phases: tuple[StablePhase, ...]) -> tuple[Notice, ...]:
    if material.kind is Kind.INVOCATIONS:
        return rejected_notices(sum(phase.n < FEWEST for phase in phases), len(phases))
    return tuple(notice for phase in phases for notice in phase.notices)


def estimate(material: Material, analysis: Analysis) -> Analysis:
    """Estimate the level of what was kept."""
    fits = []
    refusals: list[Notice] = []
    for kept in _kept(material, analysis):
        try:
            fits.append(fit_level(kept, transients=_transients(material)))
        except NotEstimable as error:
            refusals.append(_notice_of(error))
    if not fits:
        return replace(analysis, notices=(*analysis.notices, *refusals[:1]))
    confidence = material.options.confidence
    if material.kind == Kind.INVOCATIONS:
        found = combine_levels(tuple(fits), confidence)
    else:
        found = estimate_level(fits[0], confidence)
    notices = (*analysis.notices, *found.notices, *_short_run(material, analysis))
    return replace(
        analysis,
        fits=tuple(fits),
        n_kept=sum(fit.n for fit in fits),
        estimate=replace(found, notices=notices),
        notices=notices,
    )


def _notice_of(error: NotEstimable) -> Notice:
    assert isinstance(error.notice, Notice)  # noqa: S101  # for the type checker: errors lie below
    return error.notice


def _transients(material: Material) -> tuple[float, ...]:
    return () if material.kind == Kind.READINGS else TRANSIENTS


def _kept(material: Material, analysis: Analysis) -> tuple[Floats, ...]:
    if not analysis.phases:
        return material.series
    pairs = zip(material.series, analysis.phases, strict=True)
    return tuple(trimmed(series, phase) for series, phase in pairs if phase.start is not None)


def _short_run(material: Material, analysis: Analysis) -> tuple[Notice, ...]:
    if material.kind != Kind.UNIT_READINGS or analysis.n >= SHORT:
        return ()
    notice = Notice(
        code=Code.SHORT_RUN,
        severity=Severity.WARNING,
        sentence=f"{analysis.n} readings: below {SHORT}, a warm-up may stay unseen and bias them.",
        evidence={"n": analysis.n, "wanted": SHORT},
    )
    return (notice,)


def foresee(material: Material, analysis: Analysis) -> Analysis:
    """Predict how many readings in all the target takes."""
    found = analysis.estimate
    if found is None:
        return analysis
    wanted = wanted_half_width(found, analysis.metric, material.options)
    if not wanted > 0.0:
        return analysis
    units = len(analysis.fits) if material.kind == Kind.INVOCATIONS else analysis.n
    ratio = min(found.half_width / wanted, _HOPELESS)
    factor = max(ratio**2, material.floor.effective / found.n_effective)
    needed = max(units * factor, material.floor.first_check)
    per_unit = analysis.n / units
    return replace(analysis, required=int(needed * per_unit + 1.0 - 1e-9))


def picture(material: Material, analysis: Analysis) -> Analysis:
    """Merge the kept readings into subsessions, for the picture of their autocorrelation."""
    kept = _kept(material, analysis)
    if material.kind == Kind.INVOCATIONS or not kept:
        return analysis
    return replace(analysis, subsessions=merge_subsessions(kept[0]))


CHECK: tuple[Step, ...] = (cut_phases, estimate, foresee)
REPORT: tuple[Step, ...] = (*CHECK, picture)
