"""What is run around a command ends with its round, and never goes on for ever."""

from __future__ import annotations

import time
from typing import Any

import pytest
from simulated import rounds

from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.model import Code, Options, Round
from benchrigor.session import Session
from benchrigor.workloads import CommandWorkload
from benchrigor.workloads.processes import command_line

SLOW_S = 30.0
AROUND, WITHIN = ("setup", "cleanup"), ("prepare", "conclude")


def hooked(argv: tuple[str, ...] = ("true",), **given: Any) -> CommandWorkload:
    hooks = {name: given.pop(name) for name in (*AROUND, *WITHIN) if name in given}
    return CommandWorkload(argv, hooks=hooks, clock=WallClock(), **given)


def run(workload: CommandWorkload, seconds: float | None = 0.2) -> tuple[Round, float]:
    began = time.monotonic()
    return rounds.run(workload, seconds=seconds), time.monotonic() - began


@pytest.mark.parametrize("place", WITHIN)
@pytest.mark.parametrize("more", [{}, {"memory": True}, {"ignore_failure": True}])
def test_a_hook_of_a_round_is_killed_when_its_time_is_up(place: str, more: dict[str, bool]) -> None:
    finished, took = run(hooked(**{place: ["sleep", "60"]}, **more))
    assert took < SLOW_S
    assert finished.cut
    assert finished.readings == {}
    assert [notice.code for notice in finished.notices] == [Code.CUT_ROUND]


def test_what_prepares_takes_from_the_time_of_its_round() -> None:
    finished, took = run(hooked(("sleep", "60"), prepare=["sleep", "0.2"]), seconds=0.5)
    assert finished.cut
    assert took < SLOW_S


def test_runs_that_fail_share_the_time_of_their_round() -> None:
    failing = hooked(("sh", "-c", "sleep 0.4; false"), ignore_failure=True)
    finished, _ = run(failing, seconds=0.5)
    assert finished.cut
    assert finished.facts.get("failed_runs", 0) < 3  # none where the machine is too slow for one


def test_what_concludes_may_end_shortly_after_the_budget() -> None:
    finished, _ = run(hooked(("true",), conclude=["sleep", "1.1"]), seconds=1.0)
    assert finished.readings["time"] > 0.0


def test_a_setup_counts_for_no_round() -> None:
    options = Options(budget_s=2.0, target=None, max_rounds=4)
    workload = hooked(("sleep", "0.01"), setup=["sleep", "2.1"])
    record = Session(options, clock=WallClock(), seed=1).run(workload)
    assert len(record.rounds) > 1


@pytest.mark.parametrize("place", AROUND)
def test_a_hook_around_all_rounds_does_not_take_for_ever(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "LONGEST_S", dict.fromkeys(AROUND, 0.1))
    workload = hooked(**{place: ["sleep", "60"]})

    def run_and_close() -> None:
        run(workload)
        workload.close()

    with pytest.raises(WorkloadFailed, match=f"^{place} "):
        run_and_close()
