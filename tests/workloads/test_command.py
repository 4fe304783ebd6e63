"""A command is run to its end and no further, timed, read, and its failures told apart."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.testing import FakeClock
from benchrigor.workloads import CommandWorkload, Pick

# Without site and its path files a fresh interpreter starts in half the time.
PYTHON = [sys.executable, "-I", "-S", "-c"]


def python(code: str, *arguments: str, clock: Any = None, **options: Any) -> CommandWorkload:
    return CommandWorkload(
        [*PYTHON, code, *arguments], clock=clock or FakeClock(cost_ns=5), **options
    )


def failure(workload: CommandWorkload, **plan: Any) -> str:
    with pytest.raises(WorkloadFailed) as caught:
        run(workload, **plan)
    return str(caught.value)


def picks(*specs: str, **options: bool) -> list[Pick]:
    return [Pick.parse(spec, **options) for spec in specs]


def test_the_wall_time_covers_the_whole_process_and_facts_its_processor_time() -> None:
    finished = run(python("import time; time.sleep(0.1)", clock=WallClock()))
    assert finished.readings["time"] > 0.1
    assert 0 < finished.facts["cpu_s"] < finished.readings["time"] * 8


def test_of_several_matches_the_last_counts() -> None:
    finished = run(python("print(1); print(2)", picks=picks("x=column:0")))
    assert finished.readings["x"] == 2.0


@pytest.mark.parametrize(
    ("work", "written"), [(3.0, "3"), (3, "3"), (2.5, "2.5"), (1e15, "1" + "0" * 15)]
)
def test_work_is_replaced_in_every_argument_and_other_braces_are_not(
    work: float, written: str
) -> None:
    code = "import sys; print(int(sys.argv[2:] == ['-n' + sys.argv[1] + '{}{x}', '$HOME; *']))"
    code += "; print(sys.argv[1])"
    words = "{work}", "-n{work}{}{x}", "$HOME; *"  # which no shell reads
    workload = python(code, *words, picks=picks("x=column:0", unit_readings=True))
    assert run(workload, work=work).unit_readings["x"].tolist() == [1.0, float(written)]
    assert written in failure(python("raise SystemExit(1)", "{work}"), work=work).split()


@pytest.mark.parametrize("pick", ["time:s=column:1", "time:s=regex:took ([0-9.]+)"])
def test_a_duration_picked_from_the_output_is_that_of_the_round(pick: str) -> None:
    code = "import sys; print('took', float(sys.argv[1]) / 8)"
    workload = python(code, "{work}", picks=picks(pick))
    rounds = [run(workload, work=work) for work in (2, 10**6, 0.5)]
    assert [each.duration_s for each in rounds] == [0.25, 125_000.0, 0.0625]
    assert [each.readings for each in rounds] == [{"time": each.duration_s} for each in rounds]


def test_an_exit_code_that_is_not_accepted_is_named_with_the_end_of_stderr() -> None:
    code = "import sys; print('x' * 5000 + '\\n\\udcff end', file=sys.stderr); sys.exit(3)"
    said = failure(python(code))
    assert said.startswith(sys.executable)
    assert said.endswith("\n  | \\udcff end")


def test_at_most_two_kibibytes_of_stderr_are_kept() -> None:
    said = failure(python("import sys; sys.stderr.buffer.write(b'\\xff' * 10**6); sys.exit(1)"))
    assert said.endswith("\ufffd" * 2048)
    assert len(said) < 2400


KILLS_ITSELF = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def test_other_exit_codes_can_be_accepted() -> None:
    code = "import sys; sys.exit({work})"
    assert run(python(code, accept_exit=[0, 3]), work=3).facts["exit_code"] == 3
    assert run(python(KILLS_ITSELF, accept_exit=[-9])).facts["exit_code"] == -9


def test_a_hundred_megabytes_of_junk_end_in_an_error_that_says_so() -> None:
    code = "import sys; sys.stdout.buffer.writelines([(b'x' * 199 + b'\\n') * 5000] * 100)"
    said = failure(python(code, picks=picks("x=regex:y=([0-9]+)")))
    assert "500,000 lines" in said


def test_a_hundred_megabytes_that_nobody_reads_are_no_failure() -> None:
    talkative = python("import sys; sys.stdout.buffer.write(b'x' * 10**8)")
    assert run(talkative).readings


def test_a_quick_command_is_not_touched_by_its_timeout_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    assert run(python("pass", timeout_s=30)).readings == {"time": 5e-9}
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=300.0)
        assert not thread.is_alive()


def test_a_description_makes_the_same_workload_again(tmp_path: Path) -> None:
    described = python(
        "print({work}); print(7)",
        picks=[*picks("x:B=column:0", unit_readings=True), *picks("y=regex:[0-9]")],
        accept_exit=(0, 3),
        timeout_s=5.5,
        cwd=tmp_path,
        env={"A": "b"},
    ).describe()
    assert described["kind"] == "command"
    again = CommandWorkload.from_description(
        json.loads(json.dumps({**described, "name": "mine"})), clock=FakeClock(cost_ns=5)
    )
    assert again.describe() == described
    finished = run(again, work=4)
    assert finished.unit_readings["x"].tolist() == [4.0, 7.0]
    assert finished.readings == {"time": 5e-9, "y": 7.0}
    described = python("pass", warm_up=3, memory=True).describe()
    assert (described["warm_up"], described["memory"]) == (3, True)
    assert CommandWorkload.from_description(described, clock=FakeClock()).describe() == described
