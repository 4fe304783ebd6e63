"""What stands around a command: hooks, the launcher, signals, and what of its delay is known."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from simulated import rounds

import benchrigor.workloads
from benchrigor.clocks import WallClock
from benchrigor.errors import WorkloadFailed
from benchrigor.machine.delays import RunDelay
from benchrigor.model import Code, Delays, Options, Round, RoundPlan
from benchrigor.session import Session
from benchrigor.workloads import CommandWorkload, Pick, RoundRecorder
from benchrigor.workloads.command import record_delay
from benchrigor.workloads.processes import command_line, own_signals
from benchrigor.workloads.processes.running import Ended

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


LAUNCHER = str(Path(benchrigor.workloads.__file__).with_name("processes") / "launcher.py")
TOUCHING = "x = b'x' * 200_000_000"


def launched(*words: str, text: str = "", before: str = "") -> tuple[list[int], str]:
    """Run a command by the launcher; return what it writes, and what the command prints."""
    source, sink = os.pipe()
    program = f"{before}\nimport runpy; runpy.run_path({LAUNCHER!r}, None, '__main__')"
    run = [sys.executable, "-I", "-S", *(["-c", program] if before else [LAUNCHER])]
    argv = [*run, str(sink), *words]
    with os.fdopen(source) as pipe:
        done = subprocess.run(
            argv, input=text, stdout=subprocess.PIPE, text=True, pass_fds=(sink,), check=True
        )
        os.close(sink)
        return [int(each) for each in pipe.read().split()], done.stdout


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="others pass on no peak")


@needs_linux
def test_the_floor_is_that_of_a_shell_not_of_an_interpreter():
    peak, floor, code = launched("true")[0]
    assert floor <= peak < 3_000_000
    assert code == 0


@needs_linux
def test_where_no_command_can_be_adopted_the_floor_is_that_of_the_interpreter():
    peak, floor, _ = launched("true", before="import ctypes; ctypes.CDLL = lambda _: None")[0]
    assert 4_000_000 < floor <= peak < 30_000_000
    assert launched(sys.executable, "-c", TOUCHING)[0][0] == pytest.approx(2e8, rel=0.05)


def test_the_peak_is_that_of_the_greatest_process_of_a_command():
    script = f'{sys.executable} -I -S -c "{TOUCHING}"; true'
    assert launched("sh", "-c", script)[0][0] == pytest.approx(2.05e8, rel=0.05)


def test_a_command_that_is_launched_has_its_input_and_exit_code():
    script = "import sys; print(input(), *sys.argv[1:]); sys.exit(3)"
    report, printed = launched(sys.executable, "-c", script, "a b", "'", text="in")
    assert (report[2], printed) == (3, "in a b '\n")
    assert launched("sh", "-c", "kill -TERM $$")[0][2] == -15


@needs_linux
def test_a_command_that_is_launched_ignores_no_signal():
    _, printed = launched("grep", "SigIgn", "/proc/self/status")
    assert int(printed.split()[1], 16) & 1 << (signal.SIGPIPE - 1) == 0


def test_what_a_command_leaves_behind_does_not_end_it():
    report, _ = launched("sh", "-c", "(sleep 0.01 &); sleep 0.1; exit 4")
    assert report[2] == 4


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


WAITING = """
import signal, threading, time
from benchrigor.workloads.processes.own_signals import EndedBySignal, ended_by_signals

def take_a_signal():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    threading.Event().wait()

threading.Thread(target=take_a_signal, daemon=True).start()
with ended_by_signals():
    try:
        threading.Event().wait()
    except EndedBySignal as error:
        print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux wakes that thread")
def test_a_signal_that_another_thread_takes_interrupts_what_the_main_thread_waits_for():
    """Of signals that come together, the second wakes any thread, which may take them all."""
    argv = [sys.executable, "-c", WAITING]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=300.0, check=True)
    assert "SIGTERM" in run.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who handles")
def test_handlers_of_others_stay_in_place(fork):
    """Those of the caller, also in C, and those that measured code puts in place, also in forks."""

    def own(_number, _frame):
        pass

    def has_own():
        os._exit(0 if signal.getsignal(signal.SIGUSR2) is own else 1)

    before = signal.getsignal(signal.SIGUSR2)
    faulthandler.register(signal.SIGUSR1)
    try:
        with own_signals.ended_by_signals():
            assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
            assert signal.getsignal(signal.SIGUSR2) not in {before, signal.SIG_DFL}
            signal.signal(signal.SIGUSR2, own)
            child = fork(has_own)
            child.join()
        assert child.exitcode == 0
        assert signal.getsignal(signal.SIGUSR2) is own
        assert signal.getsignal(signal.SIGXCPU) == signal.SIG_DFL
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
