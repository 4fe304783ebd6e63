"""The cut of restarted rounds: the one that all have in common, or each its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchrigor.model import ChangePoints, Code, Notice, StablePhase
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.notice import Severity
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES, detect_changes
from benchrigor.stats.phases.common_warm_up import CommonCut, common_phases, stable_between
from benchrigor.stats.phases.trimming import beyond_noise, measured_phase
from benchrigor.stats.series.level import MIN_FOR_VARIANCE
from benchrigor.stats.series.long_run_variance import batch_means
from benchrigor.stats.series.remembered import remembered
from benchrigor.stats.statistics.statistic import Policy

_BY_CHANCE, _FEW = 0.1, 2  # about one in fifty steady rounds seems to change
# Neither warm-ups nor cool-downs are looked for in the middle. If more than one round does change
# there, and more than an eighth of those that change, it is the machine that changes.
_MIDDLE, _MOST_IN_MIDDLE = (0.5, 0.75), 0.125
_MOST_POINTS = 2_048  # of a round; a longer one is averaged to means of neighbours


def cut_rounds(series: Sequence[Floats], policy: Policy) -> tuple[StablePhase, ...]:
    """Cut all invocations alike, or each by itself if only that leaves most of them.

    On a busy machine the start of every round is faster, which is not a warm-up of the workload.
    """
    common = common_phases(series, policy)
    if len(common) == 1:
        return common
    if any(phase.start is not None for phase in common):
        return _cut_changing_rounds(series, common, policy)
    own = tuple(measured_phase(readings, policy) for readings in series)
    if 2 * sum(phase.n >= MIN_FOR_VARIANCE for phase in own) <= len(own):
        return common
    sentence = "The rounds have no steady state in common: each is cut by itself."
    warning = replace(common[0].notices[0], severity=Severity.WARNING, sentence=sentence)
    return tuple(
        replace(phase, notices=(warning,)) if phase.start is not None else phase for phase in own
    )


def _cut_changing_rounds(
    series: Sequence[Floats], common: tuple[StablePhase, ...], policy: Policy
) -> tuple[StablePhase, ...]:
    """Cut rounds by themselves that change inside the common cut, if more do than by chance.

    Half of the rounds may have a cool-down, or each a warm-up of its own length. Where rounds
    change in their middle too, the machine changes its pace, which is part of the mean.
    """
    changes = [_changes(readings, cut) for readings, cut in zip(series, common, strict=True)]
    low, high = _MIDDLE
    in_middle = sum(any(low < place < high for place in places) for places in changes)
    own = {
        index: phase
        for index, (readings, places, cut) in enumerate(zip(series, changes, common, strict=True))
        if places and (phase := _own_phase(readings, cut, policy)) is not None
    }
    if len(own) <= max(_BY_CHANCE * len(series), _FEW) or in_middle > max(
        _MOST_IN_MIDDLE * len(own), 1
    ):
        return common
    sentence = (
        f"{len(own)} of {len(series)} rounds change inside what the common cut leaves of them: "
        "these are cut one by one."
    )
    note = Notice.note(Code.CUT_ONE_BY_ONE, sentence, rounds=len(own))
    phases = (own.get(index, cut) for index, cut in enumerate(common))
    return tuple(replace(phase, notices=(*phase.notices, note)) for phase in phases)


def _own_phase(readings: Floats, cut: StablePhase, policy: Policy) -> StablePhase | None:
    """Cut a round by itself, or else what the common cut leaves of it; None if neither is stable.

    A warm-up of its own may leave no phase of the whole that holds most readings.
    """
    own = measured_phase(readings, policy)
    if own.reason is PhaseReason.STABLE:
        return own
    inside = measured_phase(readings[cut.start : cut.stop], policy)
    if inside.start is None or inside.stop is None or inside.reason is not PhaseReason.STABLE:
        return None
    before, n = cut.start or 0, readings.size
    shorter = CommonCut(
        start=before + inside.start, end=n - before - inside.stop, level=inside.change_points.level
    )
    return stable_between(readings, shorter)


def _changes(readings: Floats, cut: StablePhase) -> list[float]:
    """Return where a round changes beyond slow noise inside a cut, as shares of the round."""
    inside = readings[cut.start : cut.stop]
    batch = -(-inside.size // _MOST_POINTS)
    means = batch_means(inside, batch)
    if means.size < MIN_FOR_CHANGES:
        return []
    points = _points_beyond_noise(means)
    ends = [points.early] * bool(points.early) + [means.size - points.late] * bool(points.late)
    places = [*points.indices, *ends]
    return [(batch * place + (cut.start or 0)) / readings.size for place in places]


@remembered
def _points_beyond_noise(means: Floats) -> ChangePoints:
    return beyond_noise(means, detect_changes(means))
