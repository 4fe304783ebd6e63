"""The cut of restarted rounds: the one that all have in common, or each its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchrigor.model import Code, Floats, Notice, PhaseReason, Severity, StablePhase
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES, detect_changes
from benchrigor.stats.phases.common_warm_up import common_phases
from benchrigor.stats.phases.trimming import beyond_noise, measured_phase
from benchrigor.stats.series.level import MIN_FOR_VARIANCE
from benchrigor.stats.series.long_run_variance import batch_means

_BY_CHANCE, _FEW = 0.1, 2  # about one in fifty steady rounds seems to change
_MOST_POINTS = 2_048  # of a round; a longer one is averaged to means of neighbours


def cut_rounds(series: Sequence[Floats], confidence: float) -> tuple[StablePhase, ...]:
    """Cut all invocations alike, or each by itself if only that leaves most of them.

    On a busy machine the start of every round is faster, which is no warm-up of the workload.
    """
    common = common_phases(series, confidence)
    if len(common) == 1:
        return common
    if any(phase.start is not None for phase in common):
        return _cut_changing_rounds(series, common, confidence)
    own = tuple(measured_phase(readings, confidence) for readings in series)
    if 2 * sum(phase.n >= MIN_FOR_VARIANCE for phase in own) <= len(own):
        return common
    sentence = "The rounds have no steady state in common: each is cut by itself."
    warning = replace(common[0].notices[0], severity=Severity.WARNING, sentence=sentence)
    return tuple(
        replace(phase, notices=(warning,)) if phase.start is not None else phase for phase in own
    )


def _cut_changing_rounds(
    series: Sequence[Floats], common: tuple[StablePhase, ...], confidence: float
) -> tuple[StablePhase, ...]:
    """Cut rounds by themselves that change inside the common cut, if more do than by chance.

    Half of the rounds may have a cool-down, or each a warm-up of its own length.
    """
    own = {
        index: phase
        for index, (readings, cut) in enumerate(zip(series, common, strict=True))
        if _changes(readings[cut.start : cut.stop])
        and (phase := measured_phase(readings, confidence)).reason is PhaseReason.STABLE
    }
    if len(own) <= max(_BY_CHANCE * len(series), _FEW):
        return common
    sentence = (
        f"{len(own)} of {len(series)} rounds change inside the cut that all have in common: these "
        "are cut one by one."
    )
    note = Notice.note(Code.CUT_ONE_BY_ONE, sentence, rounds=len(own))
    phases = (own.get(index, cut) for index, cut in enumerate(common))
    return tuple(replace(phase, notices=(*phase.notices, note)) for phase in phases)


def _changes(series: Floats) -> bool:
    """Whether a round changes beyond slow noise, or has another level at an end."""
    means = batch_means(series, -(-series.size // _MOST_POINTS))
    if means.size < MIN_FOR_CHANGES:
        return False
    points = beyond_noise(means, detect_changes(means))
    return bool(points.indices or points.early or points.late)
