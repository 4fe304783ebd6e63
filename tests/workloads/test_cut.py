"""A command whose time is up is ended with its group; of what it printed, whole lines count."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.model import Code, Options, Round, RunRecord, StopReason
from benchrigor.session import Session
from benchrigor.workloads import CommandWorkload, Pick
from benchrigor.workloads.processes import running

UNITS = Pick.parse("u:s=regex:u ([0-9.]+)", unit_readings=True)
SINGLE = Pick.parse("x=regex:u ([0-9.]+)")
Left = Callable[[], list[int]]


def shell(script: str, *picks: Pick, **given: Any) -> CommandWorkload:
    argv = ["sh", "-c", f"echo $$ >> groups; {script}"]
    return CommandWorkload(argv, picks=picks, **{"clock": WallClock(), "grace_s": 0.3, **given})


def cut(workload: CommandWorkload, seconds: float = 0.3) -> tuple[Round, float]:
    """Run a round of so many seconds; return it and how long it took."""
    began = time.monotonic()
    return run(workload, index=3, seconds=seconds), time.monotonic() - began


def test_whole_lines_count_and_nothing_else(left: Left) -> None:
    script = "printf 'u 1\\nu 2\\nu 3'; exec sleep 60"
    finished, took = cut(shell(script, UNITS, SINGLE), seconds=1.0)
    assert took < 30.0
    assert finished.cut
    assert finished.unit_readings["u"].tolist() == [1.0, 2.0]
    assert finished.readings == {}
    assert finished.facts == {}
    assert finished.delays is None
    (notice,) = finished.notices
    assert notice.code is Code.CUT_ROUND
    assert notice.evidence == {"round": 3, "seconds": 1.0, "readings": 2}
    assert left() == []


def test_the_exit_code_of_a_command_that_was_ended_is_not_judged(left: Left) -> None:
    finished, _ = cut(shell("trap 'exit 9' TERM; while :; do sleep 0.02; done"))
    assert finished.cut
    assert finished.n_readings == 0
    assert left() == []


STUBBORN = "trap '' TERM; while :; do sleep 0.02; done"


@pytest.mark.parametrize("script", [STUBBORN, f"({STUBBORN}) & exec sleep 60"])
def test_what_ignores_the_request_is_killed_after_the_grace(left: Left, script: str) -> None:
    _, took = cut(shell(script, grace_s=0.4))
    assert took >= 0.7
    assert left() == []


def test_without_grace_it_is_killed_at_once(left: Left) -> None:
    cut(shell(STUBBORN, grace_s=0.0))
    assert left() == []


def test_what_a_command_leaves_running_is_ended_and_said(left: Left) -> None:
    finished, _ = cut(shell("sleep 60 & echo u 4", UNITS), seconds=30.0)
    assert not finished.cut
    assert finished.readings["time"] < 30.0
    assert [each.code for each in finished.notices] == [Code.LEFT_RUNNING]
    assert left() == []


def test_what_ends_by_itself_a_moment_later_is_left_to(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_LINGER_S", 30.0)
    script = "(sleep 0.03; echo u 5; echo done > late) & echo u 4"
    finished, _ = cut(shell(script, UNITS), seconds=30.0)
    assert finished.unit_readings["u"].tolist() == [4.0, 5.0]
    assert finished.notices == ()


def test_a_bad_number_in_a_whole_line_is_still_a_failure(left: Left) -> None:
    with pytest.raises(WorkloadFailed, match=r"'1\.\.2'"):
        cut(shell("echo u 1..2; exec sleep 60", UNITS), seconds=1.0)
    assert left() == []


def test_a_timeout_that_comes_first_is_still_a_failure(left: Left) -> None:
    with pytest.raises(WorkloadFailed, match=r"100 ms"):
        cut(shell("sleep 60 & exec sleep 60", timeout_s=0.1), seconds=20.0)
    assert left() == []


def test_an_interrupt_ends_the_group_and_goes_on(left: Left) -> None:
    def interrupt() -> None:
        while not Path("groups").is_file() or not left():
            time.sleep(0.01)
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        cut(shell("sleep 60 & exec sleep 60"), seconds=300.0)
    assert left() == []


def test_the_grace_is_part_of_the_description() -> None:
    described = CommandWorkload(["true"], grace_s=0.5, clock=WallClock()).describe()
    again = CommandWorkload.from_description(described, clock=WallClock())
    assert again.describe() == described
    del described["grace_s"]  # as it was stored before there was one
    stored = CommandWorkload.from_description(described, clock=WallClock()).describe()
    usual = CommandWorkload(["true"], clock=WallClock()).describe()
    assert stored["grace_s"] == usual["grace_s"] > 0


def test_a_budget_ends_the_round_and_the_session_and_counts_what_was_printed(left: Left) -> None:
    script = "i=0; while :; do echo u 1.$((i % 7)); i=$((i + 1)); sleep 0.01; done"
    options = Options(budget_s=2.0, target=1e-6)
    began = time.monotonic()
    record = Session(options).run(shell(script, UNITS))
    assert 2.0 <= time.monotonic() - began < 60.0
    assert record.decision is not None
    assert record.decision.reason is StopReason.TIME_BUDGET
    assert record.rounds[-1].cut
    assert record.readings("u").size >= 5
    assert record.estimate("u") is not None
    assert RunRecord.from_dict(record.to_dict()).rounds[-1].cut
    assert left() == []
