"""A command whose time is up is ended with its group; of what it printed, whole lines count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Code, Options, Round, RoundPlan, RunRecord, StopReason
from benchrigor.session import Session
from benchrigor.workloads import CommandWorkload, Pick, RoundRecorder
from benchrigor.workloads.processes import process_group
from benchrigor.workloads.processes.command_line import GRACE_S

UNITS = Pick.parse("u:s=regex:u ([0-9.]+)", unit_readings=True)
SINGLE = Pick.parse("x=regex:u ([0-9.]+)")
Left = Callable[[], list[int]]


def shell(script: str, *picks: Pick, **given: Any) -> CommandWorkload:
    argv = ["sh", "-c", f"echo $$ >> groups; {script}"]
    return CommandWorkload(argv, picks=picks, **{"clock": WallClock(), "grace_s": 0.3, **given})


def cut(workload: CommandWorkload, seconds: float = 0.3) -> tuple[Round, float]:
    """Run a round of so many seconds; return it and how long it took."""
    plan, recorder = RoundPlan(index=3, seconds=seconds), RoundRecorder()
    began = time.monotonic()
    workload.run(plan, recorder)
    took = time.monotonic() - began
    return recorder.finish(plan, elapsed_ns=int(took * 1e9)), took


@pytest.mark.slow
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
    assert "its 2 unit readings count" in notice.sentence
    assert left() == []


def test_the_exit_code_of_a_command_that_was_ended_is_not_judged(left: Left) -> None:
    finished, _ = cut(shell("trap 'exit 9' TERM; while :; do sleep 0.02; done"))
    assert finished.cut
    assert finished.n_readings == 0
    assert left() == []


@pytest.mark.slow
def test_a_command_that_ignores_the_request_is_killed_after_the_grace(left: Left) -> None:
    _, took = cut(shell("trap '' TERM; while :; do sleep 0.02; done", grace_s=0.4))
    assert took >= 0.7
    assert left() == []


@pytest.mark.slow
def test_children_that_ignore_the_request_are_killed_too(left: Left) -> None:
    brood = "(trap '' TERM; while :; do sleep 0.02; done) &"
    _, took = cut(shell(f"{brood} exec sleep 60", grace_s=0.4))
    assert took >= 0.7
    assert left() == []


def test_without_grace_it_is_killed_at_once(left: Left) -> None:
    cut(shell("trap '' TERM; while :; do sleep 0.02; done", grace_s=0.0))
    assert left() == []


def test_a_command_that_ends_in_time_is_not_touched(left: Left) -> None:
    finished, _ = cut(shell("echo u 4", UNITS, SINGLE), seconds=30.0)
    assert not finished.cut
    assert finished.unit_readings["u"].tolist() == [4.0]
    assert finished.readings.keys() == {"time", "x"}
    assert finished.notices == ()


def test_what_a_command_leaves_running_is_ended_and_said(left: Left) -> None:
    finished, _ = cut(shell("sleep 60 & echo u 4", UNITS), seconds=30.0)
    assert not finished.cut
    assert finished.readings["time"] < 30.0
    assert [each.code for each in finished.notices] == [Code.LEFT_RUNNING]
    assert left() == []


def test_what_ends_by_itself_a_moment_later_is_left_to(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_LINGER_S", 30.0)
    script = "(sleep 0.03; echo u 5; echo done > late) & echo u 4"
    finished, _ = cut(shell(script, UNITS), seconds=30.0)
    assert finished.unit_readings["u"].tolist() == [4.0, 5.0]
    assert finished.notices == ()


@pytest.mark.slow
def test_a_bad_number_in_a_whole_line_is_still_a_failure(left: Left) -> None:
    with pytest.raises(WorkloadFailed, match=r"'1\.\.2' is picked for metric 'u'"):
        cut(shell("echo u 1..2; exec sleep 60", UNITS), seconds=1.0)
    assert left() == []


def test_a_timeout_that_comes_first_is_still_a_failure(left: Left) -> None:
    with pytest.raises(WorkloadFailed, match=r"ran longer than 0\.1 s and was killed"):
        cut(shell("exec sleep 60", timeout_s=0.1), seconds=20.0)
    assert left() == []


@pytest.mark.parametrize("grace_s", [-1.0, float("nan"), float("inf"), "2"])
def test_a_grace_that_is_no_time_is_refused(grace_s: Any) -> None:
    with pytest.raises(InvalidInput, match=r"grace_s is .*, expected seconds, from 0 to 3600"):
        CommandWorkload(["true"], grace_s=grace_s, clock=WallClock())


def test_the_grace_is_part_of_the_description() -> None:
    described = CommandWorkload(["true"], grace_s=0.5, clock=WallClock()).describe()
    again = CommandWorkload.from_description(described, clock=WallClock())
    assert again.describe() == described
    del described["grace_s"]  # as it was stored before there was one
    stored = CommandWorkload.from_description(described, clock=WallClock())
    assert stored.describe()["grace_s"] == GRACE_S


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_budget_ends_a_session_that_gives_nothing_at_all(left: Left) -> None:
    record = Session(Options(budget_s=0.3)).run(shell("exec sleep 60"))
    assert record.decision is not None
    assert record.decision.reason is StopReason.TIME_BUDGET
    assert record.estimate() is None
    assert {each.code for each in record.notices} >= {Code.CUT_ROUND, Code.NO_DATA}
    assert left() == []
