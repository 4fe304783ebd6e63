"""From readings to an Analysis, step by step: every step adds to it.

`look` makes the part that a running session needs to decide; `report` adds the rest for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import (
    Analysis,
    ChangePoints,
    Code,
    Disturbed,
    Metric,
    Notice,
    Observed,
    Options,
    StablePhase,
    WpsFit,
)
from benchrigor.model.analysis import Kind, PhaseReason
from benchrigor.model.notice import is_of_modes, one_each
from benchrigor.model.selection import Reason, Selection
from benchrigor.model.series import LARGEST, Floats
from benchrigor.model.text import many
from benchrigor.protocols import Detector
from benchrigor.session.outcomes import in_units
from benchrigor.session.stop_rules import (
    early_size,
    few_rounds,
    min_evidence,
    needed_for_share,
    needed_for_width,
    wanted_half_width,
)
from benchrigor.settings import FEWEST_ROUNDS
from benchrigor.stats import fit_wps, merge_subsessions
from benchrigor.stats.changepoints.ruptures_adapter import (
    takes_longest,
)
from benchrigor.stats.estimators.estimation import (
    adapt,
    estimate,
    estimate_kept,
    keep,
    later_pieces,
    notice_of,
    trim,
)
from benchrigor.stats.estimators.multimodality import (
    find_modes,
    merge_near_modes,
    observe,
    tell_modes,
)
from benchrigor.stats.phases.trimming import measured_phase, moved_on
from benchrigor.stats.series.level import all_zero
from benchrigor.stats.series.subsessions import MERGED
from benchrigor.stats.series.undisturbed import (
    LEAST_SHARE,
    Groups,
    choose_undisturbed,
    hardly_any,
    hardly_any_of,
    together,
)
from benchrigor.stats.statistics.proportion import are_outcomes, are_shares
from benchrigor.stats.statistics.statistic import (
    Policy,
    Quantile,
    ReferencesAlong,
    Statistic,
    statistic_for,
)
from benchrigor.stats.statistics.variance_components import split_variance
from benchrigor.stats.wps.lack_of_fit import diagnose_further
from benchrigor.stats.wps.work_line import check_fit
from benchrigor.units import Direction, Quantity

_SEVERAL_MODES = 0.01  # chance of taking one mode for several


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """The readings of one metric, and how to analyse them."""

    metric: Metric
    options: Options
    kind: Kind
    series: tuple[Floats, ...]  # one per restarted round; of various work: amounts, durations in s
    phases: tuple[StablePhase, ...] = ()  # of restarted rounds, by the user's detector
    detector: Detector | None = None
    weights: Floats | None = None  # what single readings of rounds count in the mean
    batch: int = 1  # calls per reading
    busy_s: float = 0.0  # duration of the calls of all readings; 0 if readings are not durations
    is_forced: bool = False  # the session may end before its first full look
    narrow: bool = True  # an interval of a time or rate wider than its value is no number
    references: ReferencesAlong | None = None  # along a single series
    recorded: bool = False  # it ended by itself: the last readings may be a cool-down
    reasons: Any = None  # why rounds of various work count, or do not: all do
    beyond: tuple[int, ...] = ()  # indices of rounds that test the line at larger amounts
    notices: tuple[Notice, ...] = ()
    disturbed: Disturbed | None = None  # the selection that left readings out of the series
    whole: Material | None = None  # with the disturbed readings, if some were left out

    @property
    def left_out(self) -> tuple[int, ...]:
        """Indices of the rounds of various work that do not count."""
        return () if self.reasons is None else tuple(np.flatnonzero(self.reasons).tolist())

    @property
    def is_share(self) -> bool:
        """Whether readings are outcomes, or shares of trials; a bare number may prove to be one."""
        if self.metric.kind is None:
            return all(map(are_outcomes, self.series)) or (
                self.weights is not None and all(map(are_shares, self.series))
            )
        return self.metric.kind is Quantity.SHARE

    @property
    def is_harmonic(self) -> bool:
        """Whether a rate is averaged over equal amounts of work, not over the time of rounds."""
        if self.metric.averaging != "auto":
            return self.metric.averaging == "harmonic"
        unweighted = self.metric.kind is Quantity.RATE and self.weights is None
        return unweighted and not self.rates_of_0

    @property
    def rates_of_0(self) -> int:
        """Number of readings at or below 0, which rule out a harmonic mean."""
        if self.metric.kind is not Quantity.RATE or self.metric.averaging != "auto":
            return 0
        return sum(int((values < 1.0 / LARGEST).sum()) for values in self.series)

    @property
    def statistic(self) -> Statistic:
        """What is estimated; the speed of various work is a line of its own."""
        if self.kind is Kind.WORK:
            return statistic_for(self.options.statistic)
        asked, is_share = self.options.statistic, self.is_share
        return statistic_for(asked, share=is_share, harmonic=self.is_harmonic)

    @property
    def policy(self) -> Policy:
        """Which statistic is estimated, and by which method."""
        return Policy(
            kind=self.kind,
            statistic=self.statistic,
            confidence=self.options.confidence,
            trim=self.options.cut_shares or True,
            method=self.options.method,
            autocorrelation_limit=self.options.autocorrelation_limit,
            higher=self.metric.direction is Direction.HIGHER,
            batch=self.batch,
            narrow=self.narrow and self.metric.kind in (Quantity.TIME, Quantity.RATE),
            references=self.references,
            goes_on=not (self.recorded or self.kind is Kind.INVOCATIONS),
            detector=self.detector if takes_longest(self.detector) else None,
        )

    def by_time(self) -> Material:
        """Return it with rates averaged over time, unless their metric says otherwise."""
        if self.metric.averaging != "auto" or self.metric.kind is not Quantity.RATE:
            return self
        metric = replace(self.metric, averaging="arithmetic")
        sentence = "A reading of a rate is 0 or less: all are averaged over time (arithmetic)."
        notice = Notice.warning(Code.RATE_OF_0, sentence)
        return replace(self, metric=metric, weights=None, notices=(*self.notices, notice))


def leave_out_disturbed(material: Material, by_series: Sequence[Groups]) -> Material:
    """Leave the disturbed readings out of each series, by its groups, unless the options keep them.

    Of various work a group is a round. A restarted round in which hardly any reading is undisturbed
    keeps all of them.
    """
    if material.options.disturbed == "keep":
        return material
    by_series = [series.with_stops() for series in by_series]
    if not any(series.are_hit.any() for series in by_series):
        return material
    if material.kind is Kind.WORK:
        return _selected_rounds(material, by_series[0])
    chosen = [choose_undisturbed(series) for series in by_series]
    notices = one_each(hardly_any_of(notice for _, told in chosen for notice in told))
    told = replace(material, notices=(*material.notices, *notices))
    disturbed = together([groups for groups, _ in chosen], by_series)
    if disturbed is None:
        return told
    return replace(
        told,
        series=tuple(
            values if counted is None else values[counted.indices]
            for values, (counted, _) in zip(material.series, chosen, strict=True)
        ),
        weights=None if material.weights is None else material.weights[disturbed.indices],
        references=material.references and material.references.of(disturbed.indices),
        disturbed=disturbed,
        whole=material,
    )


def _selected_rounds(material: Material, rounds: Groups) -> Material:
    """Leave disturbed rounds of various work out if enough others remain for a line."""
    counts = np.ones(rounds.sizes.size, dtype=bool)
    counts[list(material.left_out)] = False
    hit = rounds.are_hit & counts
    left = np.flatnonzero(counts & ~hit)
    if not hit.any():
        return material
    if left.size < max(FEWEST_ROUNDS, LEAST_SHARE * counts.sum()):
        notice = hardly_any(left.size, int(counts.sum()), rounds.lost, "round")
        return replace(material, notices=(*material.notices, notice))
    reasons = np.where(counts, 0, material.reasons if material.left_out else 0)
    reasons[hit] = Reason.DISTURBED
    return replace(
        material,
        reasons=reasons,
        beyond=tuple(index for index in material.beyond if not rounds.are_hit[index]),
        disturbed=Disturbed(
            n=counts.size,
            left_out=int(hit.sum()),
            lost=rounds.lost,
            stopped=rounds.stopped,
            starts=left,
            stops=left + 1,
        ),
        whole=material,
    )


def look(material: Material) -> Analysis:
    """Estimate the statistic, and predict how many readings the target takes."""
    by_work = material.kind is Kind.WORK
    series = material.series[:1] if by_work else material.series
    analysis = Analysis(
        metric=material.metric,
        kind=material.kind,
        n=sum(values.size for values in series),
        notices=(*material.notices, *_taken_by_time(material)),
        disturbed=material.disturbed,
    )
    estimated = (fit_line if by_work else estimate_statistic)(material, analysis)
    return predict_readings(material, estimated)


def _taken_by_time(material: Material) -> tuple[Notice, ...]:
    """Warn of rates that are averaged over time because some are 0."""
    number = material.rates_of_0
    if not number or material.weights is not None or material.kind is Kind.WORK:
        return ()
    sentence = (
        f"{many(number, 'reading')} of {material.metric.name!r} "
        f"{'is' if number == 1 else 'are'} 0 or less, so all are taken for equal times, and their "
        "mean is arithmetic. Readings of equal work have a harmonic mean, where none is 0 or less."
    )
    return (Notice.warning(Code.RATE_OF_0, sentence, readings=number),)


def report(material: Material, looked: Analysis | None = None) -> Analysis:
    """Add to a look at the same material what only people read."""
    looked = looked or look(material)
    if material.kind is Kind.WORK:
        analysis = check_line(material, looked)
    else:
        analysis = describe(material, looked)
    if material.kind is not Kind.WORK:
        series = (material.whole or material).series
        analysis = replace(analysis, selection=analysis.select([row.size for row in series]))
    if material.whole is not None and analysis.disturbed and analysis.disturbed.matters:
        beside = replace(analysis.disturbed, estimate=look(material.whole).estimate)
        analysis = replace(analysis, disturbed=beside)
    if analysis.estimate is not None:
        return analysis
    return replace(analysis, observed=observed_of(material, analysis.phases))


def observed_of(material: Material, phases: tuple[StablePhase, ...] = ()) -> Observed | None:
    """Describe readings, or the speeds of rounds of various work; None without any."""
    series = np.concatenate(material.series)
    if material.kind is Kind.WORK:
        work, duration_s = (values[material.series[1] > 0.0] for values in material.series)
        series = work / duration_s
    return observe(series, phases, batch=material.batch) if series.size else None


def cut(series: Floats, policy: Policy, detector: Detector | None) -> tuple[StablePhase, ...]:
    """Cut one series into phases, by the user's detector if there is one; none is left out yet."""
    if detector is None or policy.detector is not None:
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
            return (measured_phase(series, policy, points),)
        return trim((series,), policy, points)
    except InvalidInput as error:
        raise DetectorFailed(f"detector {detector!r}: {error}") from error


def estimate_statistic(material: Material, analysis: Analysis) -> Analysis:
    """Trim, fit and combine the readings; times that are all 0 are not a measurement."""
    if material.metric.kind is Quantity.TIME and not any(row.any() for row in material.series):
        return replace(analysis, notices=(*analysis.notices, all_zero(analysis.n)))
    phases = material.phases or None
    if phases is None and material.kind is not Kind.INVOCATIONS:
        phases = cut(material.series[0], material.policy, material.detector)
        phases += later_pieces(material.series[1:], material.policy)
    estimation = estimate(material.series, material.policy, phases, material.weights)
    moved = _moved_on(material, analysis.n, estimation.phases)
    taken = material.metric, material.busy_s, analysis.n
    told = (in_units(notice, *taken) for notice in estimation.notices)
    notices = (*analysis.notices, *told, *moved)
    return replace(
        analysis,
        phases=estimation.phases,
        fits=estimation.fits,
        levels=estimation.values if material.kind is Kind.PIECES else (),
        n_kept=sum(series.size for series in estimation.kept if series is not None),
        estimate=estimation.estimate and replace(estimation.estimate, notices=notices),
        notices=notices,
    )


def _moved_on(material: Material, n: int, phases: tuple[StablePhase, ...]) -> tuple[Notice, ...]:
    """Warn if the readings of a running session have left the stable phase."""
    if material.kind is not Kind.UNIT_READINGS or material.recorded:
        return ()
    found = [phase for phase in phases if phase.is_judged]
    after = [
        n - phase.stop
        for phase in found
        if phase.stop is not None and phase.stop < n - phase.change_points.late
    ]
    return moved_on(after[-1]) if after else ()


def predict_readings(material: Material, analysis: Analysis) -> Analysis:
    """Predict how many readings in all the target takes."""
    known = analysis.estimate
    if known is None or any(phase.reason is PhaseReason.CHANGING_PACE for phase in analysis.phases):
        return analysis  # blocks of a changing pace differ, however many readings they hold
    if material.kind is Kind.PIECES:
        return analysis  # so do pieces
    wanted = wanted_half_width(known, analysis.metric, material.options)
    if not wanted > 0.0:
        return analysis
    least = min_evidence(material.options, material.kind)
    units = known.n if material.kind in (Kind.INVOCATIONS, Kind.WORK) else analysis.n
    excess = known.half_width / wanted
    if material.kind is not Kind.UNIT_READINGS:
        excess *= few_rounds(known)
    needed = needed_for_width(known, excess, units, least)
    if material.is_forced:
        needed = min(needed, early_size(excess, units, least))
    if material.kind is Kind.UNIT_READINGS:
        before = sum(
            phase.stop if phase.stop is not None and phase.stop < analysis.n else phase.start or 0
            for phase in analysis.phases
            if phase.is_judged
        )
        needed = max(needed, needed_for_share(before))
    if material.kind is Kind.WORK:  # rounds that were left out are not repeated
        needed += analysis.n - units
    else:  # disturbed readings have to be taken, too
        needed *= analysis.taken / units
    return replace(analysis, required=int(needed + 1.0 - 1e-9))


def describe(material: Material, analysis: Analysis) -> Analysis:
    """Add median, floor, and variance components, or subsessions and modes of a single series."""
    kept = keep(material.series, analysis.phases)
    values = next((series for series in kept if series is not None), None)
    if values is None:
        return analysis
    if material.kind not in (Kind.INVOCATIONS, Kind.PIECES):
        limit = material.options.autocorrelation_limit
        analysis = replace(analysis, subsessions=merge_subsessions(values, limit=limit))
    if analysis.estimate is None or not material.statistic.follows_pace:
        return analysis
    policy = adapt(material.policy, analysis.phases)
    best = 0.9 if material.metric.direction is Direction.HIGHER else 0.1
    typical, floor = (
        estimate_kept(kept, replace(policy, statistic=Quantile(q))).estimate for q in (0.5, best)
    )
    analysis = replace(analysis, typical=typical, floor=floor)
    if material.kind is Kind.INVOCATIONS:
        fits = analysis.fits
        return replace(analysis, split=split_variance(fits) if len(fits) > 1 else None)
    return tell_of_modes(material, analysis)


def tell_of_modes(material: Material, analysis: Analysis) -> Analysis:
    """Add the modes of a single series, and a Notice of several beside a mean."""
    is_one = material.kind in (Kind.READINGS, Kind.UNIT_READINGS)
    if not (is_one and material.statistic.follows_pace):
        return analysis
    (values,) = keep(material.series, analysis.phases)
    if values is None:
        return analysis
    modes = merge_near_modes(find_modes(values, _SEVERAL_MODES))
    analysis = replace(analysis, modes=modes)
    if len(modes) < 2 or material.statistic.q is not None:
        return analysis
    notice = tell_modes(values, modes, material.metric.unit)
    if not is_of_modes(notice):
        return replace(analysis, notices=(*analysis.notices, notice))
    notices = (notice, *analysis.notices)
    estimate = analysis.estimate and replace(analysis.estimate, notices=notices)
    return replace(analysis, notices=notices, estimate=estimate)


def fit_line(material: Material, analysis: Analysis) -> Analysis:
    """Fit the line through work amount and duration of the rounds that count."""
    (work, duration_s), options = _count(material), material.options
    reasons = np.zeros(analysis.n, dtype=np.int8) if material.reasons is None else material.reasons
    selection = Selection.of(reasons, (reasons == Reason.KEPT).astype(np.int64))
    analysis = replace(analysis, n_kept=work.size, left_out=material.left_out, selection=selection)
    if work.size == 0:
        none = Notice.refusal(Code.TOO_FEW_READINGS, "0 rounds count, expected at least 3.", n=0)
        return replace(analysis, notices=(none, *analysis.notices))
    try:
        fit = fit_wps(
            work,
            duration_s,
            confidence=options.confidence,
            method=options.method,
            autocorrelation_limit=options.autocorrelation_limit,
            checks=False,
        )
    except NotEstimable as error:
        return replace(analysis, notices=(*analysis.notices, notice_of(error)))
    return _with_fit(fit, material, analysis)


def check_line(material: Material, analysis: Analysis) -> Analysis:
    """Check whether duration is linear in work, which takes more time than the fit."""
    if analysis.wps is None:
        return analysis
    work, duration_s = _count(material)
    fit = check_fit(analysis.wps, work, duration_s)
    merged = duration_s - fit.overhead.value - fit.slope.value * work
    if material.options.method == MERGED:
        merged = duration_s / work
    subsessions = merge_subsessions(merged, limit=material.options.autocorrelation_limit)
    return replace(_with_fit(fit, material, analysis), subsessions=subsessions)


def _count(material: Material) -> tuple[Floats, Floats]:
    work, duration_s = (np.delete(values, list(material.left_out)) for values in material.series)
    return work, duration_s


def _with_fit(fit: WpsFit, material: Material, analysis: Analysis) -> Analysis:
    beyond = (values[list(material.beyond)] for values in material.series)
    notices = (*fit.notices, *diagnose_further(fit, *beyond), *material.notices)
    speed = fit.speed and replace(fit.speed, notices=notices)
    return replace(analysis, wps=fit, estimate=speed, notices=notices)
