from __future__ import annotations

import os
import sys

import pytest

from benchrigor.clocks import WallClock
from benchrigor.machine.run_delay import RunDelay
from benchrigor.model import Delays, RoundPlan
from benchrigor.workloads import CommandWorkload, Pick, RoundRecorder
from benchrigor.workloads.command import record_delay
from benchrigor.workloads.processes.process_group import Ended

PLAN = RoundPlan(index=0)
MS = 1_000_000


def ended(lost_ns: int, known_ns: int, elapsed_s: float, cpu_s: float, **given: int) -> Ended:
    return Ended(
        code=0,
        elapsed_ns=round(1e9 * elapsed_s),
        user_s=cpu_s,
        system_s=0.0,
        switches=0,
        delay=(lost_ns, known_ns),
        **given,
    )


def delays_of(recorder: RoundRecorder) -> Delays:
    delays = recorder.finish(PLAN, elapsed_ns=0).delays
    assert delays is not None
    return delays


@pytest.mark.parametrize(
    ("known_ms", "cpu_ms", "known"),
    [
        pytest.param(500, 500, 1.0, id="all"),
        pytest.param(505, 500, 1.0, id="more, by rounding"),
        pytest.param(300, 510, 0.6078431, id="with the allowance for small helpers"),
        pytest.param(0, 9, 1.0, id="it slept"),
        pytest.param(0, 0, 1.0, id="it did nothing"),
        pytest.param(0, 1_000, 0.01, id="nothing"),
    ],
)
def test_what_is_known_is_a_share_of_the_processor_time(known_ms, cpu_ms, known) -> None:
    recorder = RoundRecorder()
    record_delay(ended(20 * MS, known_ms * MS, 1.0, cpu_ms / 1e3), recorder)
    assert delays_of(recorder).known == pytest.approx([known])
    assert delays_of(recorder).seconds["run queue"] == pytest.approx([0.02])


@pytest.mark.parametrize(
    ("cpu_s", "lost_s"), [(0.18, 0.04), (0.02, 0.1), (0.26, 0.0)], ids=["most", "little", "all"]
)
def test_no_delay_leaves_less_than_the_processor_time_by_the_processors(
    monkeypatch, cpu_s, lost_s
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    recorder = RoundRecorder()
    record_delay(ended(100 * MS, 180 * MS, 0.13, cpu_s, together_ns=150 * MS), recorder)
    assert delays_of(recorder).seconds["run queue"] == pytest.approx([lost_s])
    assert recorder.finish(PLAN, elapsed_ns=0).facts["waited_together_s"] == 0.15


@pytest.mark.skipif(not RunDelay().available, reason=RunDelay().reason)
def test_a_command_that_prints_readings_is_one_segment_of_its_own_wall_time() -> None:
    code = "for i in range(5): print(9.5)"
    workload = CommandWorkload(
        [sys.executable, "-S", "-c", code],
        picks=[Pick.parse("lat:s=regex:(.+)", unit_readings=True)],
        clock=WallClock(),
        meter=RunDelay(),
    )
    recorder = RoundRecorder()
    workload.run(PLAN, recorder)
    finished = recorder.finish(PLAN, elapsed_ns=0)
    assert finished.unit_readings["lat"].size == 5
    assert finished.delays is not None
    assert finished.delays.duration_s.tolist() == [finished.readings["time"]]
