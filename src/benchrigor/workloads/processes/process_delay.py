"""Measured delay of a command, and how much of its work that is of."""

from __future__ import annotations

from benchrigor.model import Delays
from benchrigor.protocols import Recorder
from benchrigor.stats.series.undisturbed import STOPPED

# Processes that ran for a hundredth of the time do not matter, though nobody saw them.
_NEGLIGIBLE = 0.01


def record_process(
    recorder: Recorder,
    lost_ns: int,
    known_ns: int,
    *,
    elapsed_s: float,
    cpu_s: float,
    stopped_s: float = 0.0,
) -> None:
    """Record the delay of a round's process, by what is known of the processor time used.

    While it was stopped it neither worked nor waited for a processor.
    """
    unseen_s = max(cpu_s - known_ns / 1e9 - _NEGLIGIBLE * elapsed_s, 0.0)
    known = 1.0 - unseen_s / cpu_s if unseen_s else 1.0
    seconds = {"run queue": [min(lost_ns / 1e9, elapsed_s)]}
    if stopped_s:
        seconds[STOPPED] = [min(stopped_s, max(elapsed_s - cpu_s - lost_ns / 1e9, 0.0))]
    recorder.delays(
        Delays(
            stops=[1],
            seconds=seconds,
            duration_s=[elapsed_s],
            known=[known],
            busy=[cpu_s],
        )
    )
