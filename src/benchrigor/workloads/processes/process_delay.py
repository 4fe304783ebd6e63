"""Measured delay of a command, and the share of its work with known delay."""

from __future__ import annotations

from benchrigor.clocks import processors
from benchrigor.model import Delays
from benchrigor.protocols import Recorder
from benchrigor.stats.series.undisturbed import STOPPED

# Unmeasured processes do not matter if they ran for up to this share of the time.
_NEGLIGIBLE = 0.01


def record_process(
    recorder: Recorder,
    lost_ns: int,
    known_ns: int,
    *,
    elapsed_s: float,
    cpu_s: float,
    together_ns: int = 0,
    stopped_s: float = 0.0,
) -> None:
    """Record the delay of a round's process, with the known share of its processor time.

    The delay leaves enough time for the work on all processors. While the process was stopped, it
    neither worked nor waited for a processor.
    """
    lost_s = min(lost_ns / 1e9, max(elapsed_s - cpu_s / processors(), 0.0))
    unseen_s = max(cpu_s - known_ns / 1e9 - _NEGLIGIBLE * elapsed_s, 0.0)
    known = 1.0 - unseen_s / cpu_s if unseen_s else 1.0
    seconds = {"run queue": [lost_s]}
    if stopped_s:
        seconds[STOPPED] = [min(stopped_s, max(elapsed_s - cpu_s - lost_s, 0.0))]
    recorder.delays(
        Delays(stops=[1], seconds=seconds, duration_s=[elapsed_s], known=[known], busy=[cpu_s])
    )
    if together_ns:
        recorder.fact("waited_together_s", together_ns / 1e9)
