from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import benchrigor as br
from benchrigor.machine.delays import HostDelay
from benchrigor.model import Delays, Round, RoundPlan
from benchrigor.session.loop import add_host_delays
from benchrigor.testing import FakeClock

MS = 1_000_000


def a_round(*, waited_ms: tuple[float, ...], took_ms: tuple[float, ...]) -> Round:
    return Round(
        plan=RoundPlan(index=0, readings=len(took_ms)),
        elapsed_ns=round(MS * sum(took_ms)),
        unit_readings={"time": np.array(took_ms) / 1e3},
        delays=Delays(
            stops=range(1, len(took_ms) + 1), seconds={"run queue": np.array(waited_ms) / 1e3}
        ),
    )


def host(*, wall_ms: int = 0, **delay_ms: int) -> HostDelay:
    delay_ns = {source: each * MS for source, each in delay_ms.items()}
    return HostDelay(wall_ns=wall_ms * MS, delay_ns=delay_ns)


def lost_ms(finished: Round) -> dict[str, list[float]]:
    assert finished.delays is not None
    seconds = finished.delays.seconds
    return {name: pytest.approx((values * 1e3).tolist()) for name, values in seconds.items()}


def test_throttled_time_is_part_of_what_was_waited_in_the_run_queue() -> None:
    before = a_round(waited_ms=(0, 50, 10), took_ms=(4, 54, 14))
    assert lost_ms(add_host_delays(before, host(throttled=45, steal=0))) == {
        "run queue": [0, 5, 10],
        "throttled": [0, 45, 0],
        "steal": [0, 0, 0],
    }


def test_stolen_time_is_charged_to_the_stretch_with_most_room_and_beside_the_run_queue() -> None:
    before = a_round(waited_ms=(0, 0, 10), took_ms=(4, 34, 24))
    assert lost_ms(add_host_delays(before, host(steal=40))) == {
        "run queue": [0, 0, 10],
        "steal": [0, 34, 6],
    }


def test_what_befell_setup_and_teardown_is_not_the_readings() -> None:
    # the readings took 10 ms of 100: a tenth of the time was stolen of them as of all else
    before = a_round(waited_ms=(0, 0), took_ms=(6, 4))
    found = add_host_delays(before, host(wall_ms=100, steal=10, throttled=50))
    assert lost_ms(found) == {"run queue": [0, 0], "throttled": [0, 0], "steal": [1, 0]}


def test_readings_other_than_those_measured_are_charged_nothing() -> None:
    before = a_round(waited_ms=(0, 0), took_ms=(6, 4))
    assert before.delays is not None
    whole = Delays(stops=[1], seconds={"run queue": np.array([0.0])})
    apart = replace(before, delays=whole)
    assert add_host_delays(apart, host(steal=3)) is apart


def test_readings_are_analysed_on_one_thread_and_the_workload_keeps_all() -> None:
    threads: dict[str, set[int]] = {"workload": set(), "analysis": set()}

    def note_threads(name: str) -> None:
        own = [each for each in threadpool_info() if "numpy" in each["filepath"]]
        threads[name] |= {each["num_threads"] for each in own}

    def work() -> None:
        clock.sleep_ns(1_000_000_000)
        note_threads("workload")

    def decide(_: object) -> None:
        note_threads("analysis")

    clock, options = FakeClock(), br.Options(budget_s=30.0)
    rules = [decide, *br.default_rules(options)]
    with threadpool_limits(2):
        br.Session(options, rules=rules, clock=clock).run(work)
    assert threads == {"workload": {2}, "analysis": {1}}
