"""From readings to an Analysis: a list of plain functions over immutable data.

Each step takes the material and the analysis so far and returns a fuller analysis. `CHECK` is
what a running session needs to decide; `DETAILS` add what only people look at. `LINE` and
`LINE_CHECKS` take their place for pairs of work amount and duration.
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
    quantile_named,
)
from benchrigor.protocols import Detector
from benchrigor.session.stop_rules import (
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
from benchrigor.stats.estimators.multimodality import apart, modes_of
from benchrigor.stats.estimators.variance_components import split_of
from benchrigor.stats.phases.trimming import measured_phase, moved_on
from benchrigor.units import Direction

_HOPELESS = 1e6
"""Beyond a million times the width wanted, a prediction has no meaning but "very many"."""
_MODES = 0.01
"""Chance of taking one mode for several."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """The readings of one metric, and how they are to be analysed."""

    metric: Metric
    options: Options
    kind: Kind
    series: tuple[Floats, ...]
    """One series for continuous rounds, one per round for restarted ones; two for rounds of
    various work: their amounts, and their durations in seconds."""
    phases: tuple[StablePhase, ...] = ()
    """Stable phases that are known already: of restarted rounds, by a detector of one's own."""
    detector: Detector | None = None
    batch: int = 1
    """Calls that each reading averages."""
    recorded: bool = False
    """Whether no reading will follow, so that what comes last may be a cool-down."""
    left_out: tuple[int, ...] = ()
    """Indices of the pairs of work amount and duration that do not count."""
    notices: tuple[Notice, ...] = ()

    @property
    def policy(self) -> Policy:
        """How its readings become an estimate."""
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


def analyse(
    material: Material, steps: Iterable[Step], analysis: Analysis | None = None
) -> Analysis:
    """Run the steps over the material, from an empty analysis or from where another one ended."""
    if analysis is None:
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


def cut(series: Floats, policy: Policy, detector: Detector | None) -> tuple[StablePhase, ...]:
    """Find the stable phase of one series, by a detector of one's own if there is one."""
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
    """Trim, fit and combine the readings into the statistic that is asked for."""
    phases = material.phases or None
    if phases is None and material.kind is not Kind.INVOCATIONS:
        phases = cut(material.series[0], material.policy, material.detector)
    found = estimate(material.series, material.policy, phases)
    notices = (*analysis.notices, *found.notices, *_moved_on(material, analysis.n, found.phases))
    return replace(
        analysis,
        phases=found.phases,
        fits=found.fits,
        n_kept=sum(series.size for series in found.kept if series is not None),
        estimate=found.estimate and replace(found.estimate, notices=notices),
        notices=notices,
    )


def _moved_on(material: Material, n: int, phases: tuple[StablePhase, ...]) -> tuple[Notice, ...]:
    """Warn where the readings of a running session have left the stable phase."""
    if material.kind is not Kind.UNIT_READINGS or material.recorded:
        return ()
    over = [n - each.stop for each in phases if each.stop is not None and each.stop < n]
    return moved_on(over[-1]) if over else ()


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


def _kept(material: Material, analysis: Analysis) -> tuple[Floats, ...]:
    kept = keep(material.series, analysis.phases)
    return tuple(series for series in kept if series is not None)


def merge_kept(material: Material, analysis: Analysis) -> Analysis:
    """Merge the kept readings into subsessions, for the picture of their autocorrelation."""
    kept = _kept(material, analysis)
    if material.kind == Kind.INVOCATIONS or not kept:
        return analysis
    return replace(analysis, subsessions=merge_subsessions(kept[0]))


def describe(material: Material, analysis: Analysis) -> Analysis:
    """Add the median, the floor, and the values around which the readings gather."""
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
        return replace(analysis, split=split_of(fits) if len(fits) > 1 else None)
    modes = apart(modes_of(kept[0], _MODES))
    several = _several_modes(modes) if quantile_named(material.options.statistic) is None else ()
    return replace(analysis, modes=modes, notices=(*analysis.notices, *several))


def _several_modes(modes: tuple[Mode, ...]) -> tuple[Notice, ...]:
    if len(modes) < 2:
        return ()
    sentence = f"The readings gather around {len(modes)} values; the mean need not be near any."
    return (Notice.note(Code.SEVERAL_MODES, sentence, modes=len(modes)),)


def fit_line(material: Material, analysis: Analysis) -> Analysis:
    """Fit the line through the pairs of work amount and duration that count."""
    return _fitted(material, analysis, checks=False)


def fit_and_check(material: Material, analysis: Analysis) -> Analysis:
    """Fit the line, and check whether it may be one: that takes most of the time."""
    return _fitted(material, analysis, checks=True)


def _fitted(material: Material, analysis: Analysis, *, checks: bool) -> Analysis:
    counts = np.ones(analysis.n, dtype=bool)
    counts[list(material.left_out)] = False
    work, duration_s = (series[counts] for series in material.series)
    analysis = replace(analysis, n_kept=work.size, left_out=material.left_out)
    if work.size == 0:
        none = Notice.refusal(Code.TOO_FEW_READINGS, "0 rounds count, expected at least 3.", n=0)
        return replace(analysis, notices=(none, *analysis.notices))
    try:
        fit = fit_wps(work, duration_s, confidence=material.options.confidence, checks=checks)
    except NotEstimable as error:
        return replace(analysis, notices=(*analysis.notices, notice_of(error)))
    notices = (*fit.notices, *analysis.notices)
    speed = None if fit.speed is None else replace(fit.speed, notices=notices)
    return replace(analysis, wps=fit, estimate=speed, notices=notices)


LINE: tuple[Step, ...] = (fit_line, foresee)
CHECK: tuple[Step, ...] = (estimate_statistic, foresee)
DETAILS: tuple[Step, ...] = (describe, merge_kept)
LINE_REPORT: tuple[Step, ...] = (fit_and_check, foresee)
