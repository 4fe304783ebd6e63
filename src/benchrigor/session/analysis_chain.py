"""From readings to an Analysis: a chain of plain functions over immutable data.

Each step takes the material and the analysis so far, and returns a fuller analysis. `look` makes
what a running session needs to decide; `report` adds what only people read.
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
    StablePhase,
    WpsFit,
    quantile_named,
)
from benchrigor.protocols import Detector
from benchrigor.session.stop_rules import (
    HOPELESS,
    Floor,
    caution,
    floor_for,
    needed_for_share,
    wanted_half_width,
)
from benchrigor.stats import fit_wps, merge_subsessions
from benchrigor.stats.estimators.estimation import (
    Policy,
    estimate,
    estimate_kept,
    keep,
    notice_of,
    trim,
)
from benchrigor.stats.estimators.multimodality import find_modes, merge_near_modes
from benchrigor.stats.estimators.variance_components import split_variance
from benchrigor.stats.phases.trimming import measured_phase, moved_on
from benchrigor.stats.wps.work_line import check_fit
from benchrigor.units import Direction

_MODES = 0.01
"""Chance of taking one mode for several."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """The readings of one metric, and how to analyse them."""

    metric: Metric
    options: Options
    kind: Kind
    series: tuple[Floats, ...]
    """One series for continuous rounds, one per restarted round; for rounds of various work their
    amounts, and their durations in seconds."""
    phases: tuple[StablePhase, ...] = ()
    """Stable phases of restarted rounds by the user's detector."""
    detector: Detector | None = None
    batch: int = 1
    """Calls that each reading averages."""
    recorded: bool = False
    """Whether no reading will follow, so that the last ones may be a cool-down."""
    left_out: tuple[int, ...] = ()
    """Indices of the rounds of various work that do not count."""
    notices: tuple[Notice, ...] = ()

    @property
    def policy(self) -> Policy:
        """Which statistic is estimated, and by which method."""
        return Policy(
            kind=self.kind,
            q=quantile_named(self.options.statistic),
            confidence=self.options.confidence,
            trim=True,
            method=self.options.method,
            harmonic=self.metric.averaging == "harmonic",
            batch=self.batch,
        )

    @property
    def floor(self) -> Floor:
        """The evidence needed before the metric may count as satisfied."""
        return floor_for(self.options, by_round=self.kind != Kind.UNIT_READINGS)


Step = Callable[[Material, Analysis], Analysis]


def look(material: Material) -> Analysis:
    """Estimate the statistic, and predict how many readings the target takes."""
    by_work = material.kind is Kind.WORK
    series = material.series[:1] if by_work else material.series
    analysis = Analysis(
        metric=material.metric,
        kind=material.kind,
        n=sum(each.size for each in series),
        notices=material.notices,
    )
    return _run(WORK_LOOK if by_work else LOOK, material, analysis)


def report(material: Material, looked: Analysis | None = None) -> Analysis:
    """Add to a look at the same material what only people read."""
    details = WORK_DETAILS if material.kind is Kind.WORK else DETAILS
    return _run(details, material, looked or look(material))


def _run(steps: Iterable[Step], material: Material, analysis: Analysis) -> Analysis:
    for step in steps:
        analysis = step(material, analysis)
    return analysis


def cut(series: Floats, policy: Policy, detector: Detector | None) -> tuple[StablePhase, ...]:
    """Find the stable phase of one series, by the user's detector if there is one."""
    if detector is None:
        return trim((series,), policy)
    try:
        points = detector(series)
    except Exception as error:
        raise DetectorFailed(
            f"detector {detector!r} raised {error!r} on {series.size} readings"
        ) from error
    if not isinstance(points, ChangePoints):
        raise DetectorFailed(f"detector {detector!r} returned {points!r}, expected ChangePoints")
    try:
        if policy.kind is Kind.INVOCATIONS:
            return (measured_phase(series, policy.confidence, points),)
        return trim((series,), policy, points)
    except InvalidInput as error:
        raise DetectorFailed(f"detector {detector!r}: {error}") from error


def estimate_statistic(material: Material, analysis: Analysis) -> Analysis:
    """Trim, fit and combine the readings."""
    phases = material.phases or None
    if phases is None and material.kind is not Kind.INVOCATIONS:
        phases = cut(material.series[0], material.policy, material.detector)
    estimation = estimate(material.series, material.policy, phases)
    moved = _moved_on(material, analysis.n, estimation.phases)
    notices = (*analysis.notices, *estimation.notices, *moved)
    return replace(
        analysis,
        phases=estimation.phases,
        fits=estimation.fits,
        n_kept=sum(series.size for series in estimation.kept if series is not None),
        estimate=estimation.estimate and replace(estimation.estimate, notices=notices),
        notices=notices,
    )


def _moved_on(material: Material, n: int, phases: tuple[StablePhase, ...]) -> tuple[Notice, ...]:
    """Warn where the readings of a running session have left the stable phase."""
    if material.kind is not Kind.UNIT_READINGS or material.recorded:
        return ()
    after = [n - each.stop for each in phases if each.stop is not None and each.stop < n]
    return moved_on(after[-1]) if after else ()


def predict_readings(material: Material, analysis: Analysis) -> Analysis:
    """Predict how many readings in all the target takes."""
    known = analysis.estimate
    if known is None:
        return analysis
    wanted = wanted_half_width(known, analysis.metric, material.options)
    if not wanted > 0.0:
        return analysis
    units = known.n if material.kind in (Kind.INVOCATIONS, Kind.WORK) else analysis.n
    ratio = min(known.half_width * caution(analysis) / wanted, HOPELESS)
    factor = max(ratio**2, material.floor.effective / known.n_effective)
    needed = max(units * factor, material.floor.first_check)
    if material.kind == Kind.UNIT_READINGS:
        needed = max(needed, needed_for_share(analysis))
    if material.kind is Kind.WORK:  # rounds that were left out are not repeated
        needed += analysis.n - units
    else:
        needed *= analysis.n / units
    return replace(analysis, required=int(needed + 1.0 - 1e-9))


def _kept(material: Material, analysis: Analysis) -> tuple[Floats, ...]:
    kept = keep(material.series, analysis.phases)
    return tuple(series for series in kept if series is not None)


def merge_kept(material: Material, analysis: Analysis) -> Analysis:
    """Merge the kept readings into subsessions, to show their autocorrelation."""
    kept = _kept(material, analysis)
    if material.kind == Kind.INVOCATIONS or not kept:
        return analysis
    return replace(analysis, subsessions=merge_subsessions(kept[0]))


def describe(material: Material, analysis: Analysis) -> Analysis:
    """Add the median, the floor, and the modes or the variance components."""
    kept = _kept(material, analysis)
    if analysis.estimate is None or not kept:
        return analysis
    best = 0.9 if material.metric.direction is Direction.HIGHER else 0.1
    typical, floor = (
        estimate_kept(
            keep(material.series, analysis.phases), replace(material.policy, q=q)
        ).estimate
        for q in (0.5, best)
    )
    analysis = replace(analysis, typical=typical, floor=floor)
    if material.kind == Kind.INVOCATIONS:
        fits = analysis.fits
        return replace(analysis, split=split_variance(fits) if len(fits) > 1 else None)
    modes = merge_near_modes(find_modes(kept[0], _MODES))
    several = _several_modes(modes) if quantile_named(material.options.statistic) is None else ()
    return replace(analysis, modes=modes, notices=(*analysis.notices, *several))


def _several_modes(modes: tuple[Mode, ...]) -> tuple[Notice, ...]:
    if len(modes) < 2:
        return ()
    sentence = f"The readings have {len(modes)} modes; the mean may be near none of them."
    return (Notice.note(Code.SEVERAL_MODES, sentence, modes=len(modes)),)


def fit_line(material: Material, analysis: Analysis) -> Analysis:
    """Fit the line through work amount and duration of the rounds that count."""
    work, duration_s = _counted(material)
    analysis = replace(analysis, n_kept=work.size, left_out=material.left_out)
    if work.size == 0:
        none = Notice.refusal(Code.TOO_FEW_READINGS, "0 rounds count, expected at least 3.", n=0)
        return replace(analysis, notices=(none, *analysis.notices))
    try:
        fit = fit_wps(work, duration_s, confidence=material.options.confidence, checks=False)
    except NotEstimable as error:
        return replace(analysis, notices=(*analysis.notices, notice_of(error)))
    return _with_fit(fit, material, analysis)


def check_line(material: Material, analysis: Analysis) -> Analysis:
    """Check whether duration is linear in work, which takes more time than the fit."""
    if analysis.wps is None:
        return analysis
    return _with_fit(check_fit(analysis.wps, *_counted(material)), material, analysis)


def _counted(material: Material) -> tuple[Floats, Floats]:
    work, duration_s = (np.delete(each, list(material.left_out)) for each in material.series)
    return work, duration_s


def _with_fit(fit: WpsFit, material: Material, analysis: Analysis) -> Analysis:
    notices = (*fit.notices, *material.notices)
    speed = fit.speed and replace(fit.speed, notices=notices)
    return replace(analysis, wps=fit, estimate=speed, notices=notices)


LOOK: tuple[Step, ...] = (estimate_statistic, predict_readings)
DETAILS: tuple[Step, ...] = (describe, merge_kept)
WORK_LOOK: tuple[Step, ...] = (fit_line, predict_readings)
WORK_DETAILS: tuple[Step, ...] = (check_line,)
