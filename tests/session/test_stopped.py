"""Runs during which the process was stopped: the readings do not count, and the light says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.session.telling import codes, number, told

import benchrigor as br
from benchrigor.model import Code, Delays, RoundPlan
from benchrigor.testing import FakeClock

STOP_S, N = 3.0, 40  # readings in each round


def worked(rng: np.random.Generator, *, gaps: Any = (), sleep_s: float = 0.0) -> dict[str, Any]:
    """Make readings of 2 ms, a group each; ``gaps`` are seconds by place that nobody counts."""
    busy = 2e-3 * rng.normal(1.0, 0.02, N)
    values = busy + sleep_s * rng.normal(1.0, 0.02, N)
    for place, gap_s in dict(gaps).items():
        values[place] += gap_s
    still = {"run queue": np.zeros(N)}
    return {
        "elapsed_ns": round(1e9 * values.sum()),
        "unit_readings": {"time": values},
        "delays": Delays(stops=range(1, N + 1), seconds=still, duration_s=values, busy=busy),
    }


def run_of_stops(
    gaps: Any, *, in_round: int = 1, sleep_s: float = 0.0, **options: Any
) -> br.RunRecord:
    rng = np.random.default_rng(20260101)
    return told(
        br.Session(br.Options(target=1e-6, max_rounds=3, **options), seed=1),
        lambda plan: worked(rng, gaps=gaps if plan.index == in_round else (), sleep_s=sleep_s),
    )


@pytest.mark.parametrize("in_round", [0, 1, 2])
def test_a_stop_is_left_out_and_turns_the_light(in_round: int) -> None:
    record = run_of_stops({7: STOP_S}, in_round=in_round)
    light, disturbed = record.interference, record.analyses[0].disturbed
    assert number(record).value == pytest.approx(2e-3, rel=0.01)
    assert light is not None
    assert light.light == "red"
    assert light.delays["stopped"] == pytest.approx(light.measured_percent)
    (said,) = (each for each in record.session_notices if each.code is Code.STOPPED)
    assert said.evidence["stopped_s"] == pytest.approx(STOP_S, rel=0.01)
    assert disturbed is not None
    assert disturbed.left_out == 1


def test_it_is_left_out_where_hardly_any_reading_is_undisturbed() -> None:
    given = worked(np.random.default_rng(1), gaps={7: STOP_S})
    seconds = given["unit_readings"]["time"] + 1e-3
    waits = {"run queue": np.full(N, 1e-3)}
    delays = replace(given["delays"], seconds=waits, duration_s=seconds)
    record = told(
        br.Session(br.Options(target=1e-6, max_rounds=1), seed=1),
        lambda _: {"elapsed_ns": 10**10, "unit_readings": {"time": seconds}, "delays": delays},
    )
    assert number(record).value == pytest.approx(3e-3, rel=0.01)
    (said,) = (each for each in record.notices if each.code is Code.HARDLY_UNDISTURBED)
    assert said.evidence["lost"] == pytest.approx(1 / 3, rel=0.02)  # of what counts, not the stop


def test_who_keeps_disturbed_readings_keeps_it_and_is_told() -> None:
    record = run_of_stops({7: STOP_S}, disturbed="keep", trim="none")
    assert record.analyses[0].disturbed is None
    assert Code.STOPPED in codes(record)


@pytest.mark.parametrize(
    ("gaps", "sleep_s", "in_round"),
    [
        ({}, 0.0, 1),
        ({}, 0.3, 1),  # it sleeps in every reading
        ({7: STOP_S}, 1e-3, 1),  # what blocks may wait for anything
        (dict.fromkeys(range(5, 10), 0.5), 0.0, 1),  # again and again
        ({7: 3.0, 8: 1.0, 9: 0.4, 11: 0.2}, 0.0, 1),  # of all lengths
        ({7: 0.15}, 0.0, 1),  # too short
        ({0: STOP_S}, 0.0, 0),  # a cold start
    ],
)
def test_waiting_of_its_own_is_no_stop(
    gaps: dict[int, float], sleep_s: float, in_round: int
) -> None:
    record = run_of_stops(gaps, sleep_s=sleep_s, in_round=in_round)
    assert record.interference is not None
    assert "stopped" not in record.interference.delays
    assert in_round == 0 or record.analyses[0].disturbed is None


def of_commands(waits_s: dict[int, float]) -> br.RunRecord:
    """Tell twelve commands of 0.3 s, some of which wait."""
    rng = np.random.default_rng(1)

    def give(plan: RoundPlan) -> dict[str, Any]:
        busy_s = float(0.3 * rng.normal(1.0, 0.02))
        wall_s = busy_s + float(rng.uniform(0.0, 0.01)) + waits_s.get(plan.index, 0.0)
        delays = Delays(stops=[1], seconds={"run queue": [0.0]}, duration_s=[wall_s], busy=[busy_s])
        return {"elapsed_ns": int(1e9 * wall_s), "readings": {"time": wall_s}, "delays": delays}

    options = br.Options(rounds="restarted", target=1e-6, max_rounds=12)
    return told(br.Session(options, seed=1), give)


def test_a_command_that_was_stopped_is_told_by_the_others() -> None:
    found = of_commands({4: STOP_S})
    light, disturbed = found.interference, found.analyses[0].disturbed
    assert light is not None
    assert light.duration_s * light.delays["stopped"] == pytest.approx(100 * STOP_S, rel=0.02)
    assert disturbed is not None
    assert disturbed.left_out == 1
    waiting = of_commands(dict.fromkeys(range(12), 0.2)).interference
    assert waiting is not None
    assert "stopped" not in waiting.delays


PROGRAM = """
import os, signal, subprocess, sys, time

CALLS = []
GO_ON = "import os, sys, time; time.sleep(1); os.kill(int(sys.argv[1]), 18)"

def stop():
    argv = [sys.executable, "-I", "-S", "-c", GO_ON, str(os.getpid())]
    subprocess.Popen(argv, start_new_session=True)
    os.kill(os.getpid(), signal.SIGSTOP)

def work():
    CALLS.append(1)
    if len(CALLS) == 60:
        stop()
    sum(range(50_000))

def nap():
    CALLS.append(1)
    if len(CALLS) == 60:
        stop()
    time.sleep(0.002)

def steady():
    time.sleep(0.002)

if __name__ == "__main__":
    with open(sys.argv[1], "a") as file:
        file.write("x")
    if os.path.getsize(sys.argv[1]) == 4:
        stop()
    time.sleep(0.05)
"""


@pytest.mark.skipif(
    getattr(signal, "SIGCONT", None) != 18 or not Path("/proc/self/schedstat").exists(),
    reason="no such signal, or nothing counts delay",
)
@pytest.mark.parametrize("what", ["work", "nap", "command", "ab"])
def test_a_real_stop_is_left_out(tmp_path: Path, what: str) -> None:
    """On a busy machine all readings have delay, and all but this one count."""
    (tmp_path / "stopping.py").write_text(PROGRAM)
    command = [sys.executable, "-S", "stopping.py", "count"]
    words = {
        "command": ["run", "--no-store", "--max-rounds", "12", "--", *command],
        "ab": ["ab", "stopping:steady", "stopping:nap"],
    }.get(what, ["run", "--in-process", "--no-store", f"stopping:{what}"])
    words[1:1] = ["--budget", "120" if what == "command" else "3", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "benchrigor", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    found = json.loads(done.stdout)
    if what == "ab":
        assert 0.7 < found["comparison"]["ratio"]["value"] < 1.5  # of all pairs 2.5
        return
    assert found["interference"]["delays"]["stopped"] > 0.0
    lost_s = found["interference"]["duration_s"] * found["interference"]["delays"]["stopped"] / 100
    assert 0.7 < lost_s < 4.0
    disturbed = found["analyses"][0]["disturbed"]
    assert disturbed["left_out"] >= 1
    assert disturbed["stopped"] > 0.0


def test_a_pair_of_processes_counts_only_if_neither_was_stopped(clock: FakeClock) -> None:
    """The candidate's third process is stopped for so long that the mean would be far off."""
    told_of = Delays(
        stops=[1],
        seconds={"run queue": [0.0], "stopped": [STOP_S]},
        duration_s=[STOP_S + 0.01],
        busy=[0.01],
    )

    class Steady:
        fresh_process = True

        def __init__(self, name: str) -> None:
            self.name, self.runs = name, 0

        def run(self, plan: RoundPlan, recorder: Any) -> None:
            self.runs += 1
            is_stopped = self.name == "candidate" and self.runs == 3
            taken_s = 0.01 + 1e-5 * (self.runs % 5) + STOP_S * is_stopped
            clock.advance(round(1e9 * taken_s))
            recorder.reading("time", taken_s)
            if is_stopped:
                recorder.delays(told_of)

    sides = Steady("baseline"), Steady("candidate")
    compared = br.measure_pair(*sides, budget_s=6.0, seed=1, target=1e-6, clock=clock)
    assert compared.ratio is not None
    assert compared.ratio.value == pytest.approx(1.0, abs=0.01)
    assert codes(compared).count(Code.STOPPED) == 1
