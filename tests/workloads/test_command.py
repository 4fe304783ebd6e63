"""A command is run to its end and no further, timed, read, and its failures told apart."""

from __future__ import annotations

import _thread
import contextlib
import fcntl
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulated.rounds import run

from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, ClockFailed, InvalidInput, WorkloadFailed
from benchrigor.model import Code
from benchrigor.protocols import Workload
from benchrigor.testing import FakeClock
from benchrigor.workloads.command import CommandWorkload
from benchrigor.workloads.processes.picking import Pick

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


def test_it_is_a_workload() -> None:
    assert isinstance(python("pass"), Workload)


def test_the_wall_time_is_measured_with_the_given_clock() -> None:
    finished = run(python("pass", clock=FakeClock(cost_ns=5)))
    assert finished.readings == {"time": 5e-9}
    assert not finished.unit_readings
    assert finished.facts["exit_code"] == 0


def test_the_wall_time_covers_the_whole_process_and_facts_its_processor_time() -> None:
    finished = run(python("import time; time.sleep(0.1)", clock=WallClock()))
    assert finished.readings["time"] > 0.1
    assert 0 < finished.facts["cpu_s"] < finished.readings["time"] * 8


@pytest.mark.parametrize("step_ns", [0, -7])
def test_a_clock_that_does_not_go_forwards_is_named(step_ns: int) -> None:
    clock = FakeClock(script=[100, 100 + step_ns])
    with pytest.raises(ClockFailed, match=f"the clock moved by {step_ns} ns while .* ran"):
        run(python("pass", clock=clock))


def test_one_reading_per_round_is_picked_beside_the_wall_time() -> None:
    finished = run(python("print('rate', 3)", picks=picks("rate:1/s=column:1")))
    assert finished.readings == {"time": 5e-9, "rate": 3.0}
    assert finished.notices == ()


def test_of_several_matches_the_last_counts_and_a_notice_says_so() -> None:
    finished = run(python("print(1); print(2)", picks=picks("x=column:0")))
    assert finished.readings["x"] == 2.0
    (notice,) = finished.notices
    assert notice.code is Code.SEVERAL_MATCHES
    assert notice.evidence == {"metric": "x", "matches": 2}


def test_unit_readings_are_picked_in_order() -> None:
    code = "import json; [print(json.dumps({'t': t})) for t in (3, 1, 2)]"
    finished = run(python(code, picks=picks("latency:s=json:t", unit_readings=True)))
    assert finished.unit_readings["latency"].tolist() == [3.0, 1.0, 2.0]
    assert finished.readings == {"time": 5e-9}


@pytest.mark.parametrize("unit_readings", [False, True])
def test_a_pick_for_time_replaces_the_wall_time(unit_readings: bool) -> None:
    time_picks = picks("time:s=column:0", unit_readings=unit_readings)
    finished = run(python("print(0.25)", picks=time_picks))
    assert {**finished.readings, **finished.unit_readings} == {"time": 0.25}


@pytest.mark.parametrize(
    ("work", "written"), [(3.0, "3"), (3, "3"), (2.5, "2.5"), (1e15, "1" + "0" * 15)]
)
def test_work_is_replaced_in_every_argument_and_other_braces_are_not(
    work: float, written: str
) -> None:
    code = "import sys; print(int(sys.argv[1:] == [sys.argv[1], '-n' + sys.argv[1] + '{}{x}']))"
    code += "; print(sys.argv[1])"
    workload = python(
        code, "{work}", "-n{work}{}{x}", picks=picks("x=column:0", unit_readings=True)
    )
    assert run(workload, work=work).unit_readings["x"].tolist() == [1.0, float(written)]
    assert written in failure(python("raise SystemExit(1)", "{work}"), work=work).split()


@pytest.mark.parametrize("pick", ["time:s=column:1", "time:s=regex:took ([0-9.]+)"])
def test_a_duration_picked_from_the_output_is_that_of_the_round(pick: str) -> None:
    code = "import sys; print('took', float(sys.argv[1]) / 8)"
    workload = python(code, "{work}", picks=picks(pick))
    rounds = [run(workload, work=work) for work in (2, 10**6, 0.5)]
    assert [each.duration_s for each in rounds] == [0.25, 125_000.0, 0.0625]
    assert [each.readings for each in rounds] == [{"time": each.duration_s} for each in rounds]


def test_an_amount_that_no_argument_takes_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"round 0 has a work amount, but no arg.* \{work\}"):
        run(python("pass"), work=3)


def test_work_without_an_amount_is_refused() -> None:
    with pytest.raises(
        InvalidInput,
        match=r"no work amount, but an argument of .*\{work\}: give a work amount where",
    ):
        run(python("pass", "{work}"))


def test_standard_input_is_empty() -> None:
    finished = run(python("print(len(input.__self__.open(0).read()))", picks=picks("x=column:0")))
    assert finished.readings["x"] == 0.0


def test_no_shell_reads_the_arguments() -> None:
    code = "import sys; print(int(sys.argv[1] == '$HOME; *'))"
    assert run(python(code, "$HOME; *", picks=picks("x=column:0"))).readings["x"] == 1.0


def test_directory_and_environment_are_given_and_the_rest_is_kept(tmp_path: Path) -> None:
    code = "import os; print(int(os.getcwd() == os.environ['HERE'] and 'PATH' in os.environ))"
    workload = python(
        code, cwd=tmp_path, env={"HERE": str(tmp_path.resolve())}, picks=picks("x=column:0")
    )
    assert run(workload).readings["x"] == 1.0


def test_secrets_in_the_end_of_stderr_are_hidden() -> None:
    code = "import sys; sys.exit('no option --pass' 'word=S3cr3tV\\ndon\\'t use tok' 'en=S3cr3tV')"
    said = failure(python(code))
    assert "| no option --password=__hidden__\n  | don't use token=__hidden__" in said
    assert "S3cr3tV" not in said.partition("its stderr ends")[2]


def test_an_exit_code_that_is_not_accepted_is_named_with_the_end_of_stderr() -> None:
    code = "import sys; print('x' * 5000 + '\\nlast \\udcff words', file=sys.stderr); sys.exit(3)"
    said = failure(python(code))
    assert "exited with code 3, expected 0; its stderr ends:\n  | last \\udcff words" in said
    assert said.startswith(sys.executable)
    assert "xxxx" not in said.partition("ends:")[2]


def test_what_a_raising_command_says_is_kept() -> None:
    said = failure(python("raise ValueError('no such table')"))
    assert "exited with code 1, expected 0" in said
    assert said.endswith("ValueError: no such table")


def test_at_most_two_kibibytes_of_stderr_are_kept() -> None:
    said = failure(python("import sys; sys.stderr.buffer.write(b'\\xff' * 10**6); sys.exit(1)"))
    assert said.endswith("\ufffd" * 2048)
    assert len(said) < 2400


def test_other_exit_codes_can_be_accepted() -> None:
    code = "import sys; sys.exit({work})"
    assert run(python(code, accept_exit=[0, 3]), work=3).facts["exit_code"] == 3
    assert "code 4, expected 0 or 3" in failure(python(code, accept_exit=[0, 3]), work=4)
    assert "code 0, expected 3" in failure(python(code, accept_exit=[3]), work=0)


KILLS_ITSELF = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


def test_a_command_that_kills_itself_is_named_with_its_signal() -> None:
    assert "was killed by SIGKILL" in failure(python(KILLS_ITSELF))
    assert run(python(KILLS_ITSELF, accept_exit=[-9])).facts["exit_code"] == -9


def test_a_command_that_prints_nothing_where_something_is_picked_has_failed() -> None:
    said = failure(python("pass", picks=picks("x=column:0")))
    assert "printed nothing, expected a reading for metric 'x' (pick: x=column:0)" in said


@pytest.mark.slow
def test_a_hundred_megabytes_of_junk_end_in_an_error_that_says_so() -> None:
    code = "import sys; sys.stdout.buffer.writelines([(b'x' * 199 + b'\\n') * 5000] * 100)"
    said = failure(python(code, picks=picks("x=regex:y=([0-9]+)")))
    assert "printed 100 MB in 500,000 lines, none of which holds a reading" in said


def test_a_hundred_megabytes_that_nobody_reads_are_no_failure() -> None:
    assert run(python("import sys; sys.stdout.buffer.write(b'x' * 10**8)")).readings


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("no-such-program-here", r"No such file or directory: 'no-such-program-here'"),
        ("/", "Permission denied: '/'"),
        (__file__, "Permission denied: .*test_command.py"),
    ],
)
def test_a_program_that_cannot_be_started_is_named(program: str, found: str) -> None:
    with pytest.raises(WorkloadFailed, match=f"cannot be started: {found}"):
        run(CommandWorkload([program], clock=FakeClock()))


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert f"No such file or directory: '{gone}'" in failure(python("pass", cwd=gone))


# Starts a grandchild that holds the lock file open for a minute, and waits with it.
BROOD = """
import fcntl, os, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
os.fork()
file.write("x")
file.flush()
time.sleep(60)
"""


@contextlib.contextmanager
def group_is_gone_after(lock: Path) -> Iterator[None]:
    """Assert that when the block ends, nothing of the process group is left alive.

    The lock lies on an open file that child and grandchild share: it can be had once both ended.
    """
    yield
    with lock.open() as file:
        taker = threading.Thread(target=fcntl.flock, args=(file, fcntl.LOCK_EX))
        taker.start()
        taker.join(timeout=300.0)
        assert not taker.is_alive()


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with group_is_gone_after(lock):
        said = failure(python(BROOD, str(lock), timeout_s=0.3))
    assert lock.read_text() == "xx"
    assert "ran longer than 0.3 s and was killed" in said


def test_an_interrupt_kills_the_group_and_goes_on(tmp_path: Path) -> None:
    lock = tmp_path / "lock"

    def interrupt() -> None:
        while not lock.exists() or lock.read_text() != "xx":
            time.sleep(0.01)
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    with group_is_gone_after(lock), pytest.raises(KeyboardInterrupt):
        run(python(BROOD, str(lock), timeout_s=300))


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


def test_a_warm_up_comes_once_before_all_rounds_and_is_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    described = python(f"open({str(file)!r}, 'a').write('.')", warm_up=3, memory=True).describe()
    workload = CommandWorkload.from_description(described, clock=FakeClock(cost_ns=5))
    workload.set_up()
    assert file.read_text() == "..."
    assert [run(workload).readings for _ in range(2)] == [{"time": 5e-9}] * 2
    assert len(file.read_text()) == 3 + 4  # each first round has a run for its memory


def test_a_run_is_taken_up_in_the_directory_where_it_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert python("pass").describe()["cwd"] == str(tmp_path)


def test_the_name_is_the_command_line_quoted_and_short() -> None:
    assert CommandWorkload(["a b", Path("c"), "$d"], clock=FakeClock()).name == "'a b' c '$d'"
    assert len(CommandWorkload(["x" * 1000], clock=FakeClock()).name) == 120


@pytest.mark.parametrize(
    ("argv", "options", "found"),
    [
        ("gzip -k", {}, r"argv is the text 'gzip -k', expected a list.* shlex\.split"),
        ([], {}, "argv is empty"),
        (["a", 3], {}, r"argv\[1\] is 3, expected text"),
        (["a\0b"], {}, r"argv\[0\] is 'a\\x00b'"),
        (["a"], {"timeout_s": 0}, "timeout_s is 0, expected seconds, more than 0"),
        (["a"], {"timeout_s": float("nan")}, "timeout_s is nan"),
        (["a"], {"timeout_s": float("inf")}, "timeout_s is inf"),
        (["a"], {"warm_up": -1}, "warm_up is -1, expected a whole number of at least 0"),
        (["a"], {"accept_exit": ()}, r"accept_exit is \(\), expected exit codes"),
        (["a"], {"accept_exit": 0}, "accept_exit is 0, expected exit codes"),
        (["a"], {"accept_exit": ["0"]}, r"accept_exit is \['0'\]"),
        (["a"], {"picks": picks("x=column:0", "x=column:1")}, "two picks for metric 'x'"),
    ],
)
def test_bad_arguments_are_refused_by_name(argv: Any, options: dict[str, Any], found: str) -> None:
    with pytest.raises(InvalidInput, match=found) as caught:
        CommandWorkload(argv, clock=FakeClock(), **options)
    assert isinstance(caught.value, BenchrigorError)
