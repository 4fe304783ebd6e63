"""The law of signals: in each way of measuring they end it, and nothing that it started is left.

SIGINT lets the round end first. The other signals are handled alike, so CI sends each mode one of
them, by turns, and one mode of each kind the rarer ones. docs/evidence/trust.py sends every signal
to every mode, as what is marked `minutes` here does.
"""

import os
import re
import signal

import pytest
import signalled
from signalled import until

from benchrigor.storage import Journal

AT_ONCE = ("SIGTERM", "SIGHUP", "SIGQUIT")
SOON_S = 60.0
"""From the signal to the end, on a busy machine: ten seconds would be for who swallows signals."""
WITH_ROUNDS = ("run", "job control", "timeout", "deaf", "commands", "prepare", "ab", "peak")


def cases():
    for index, mode in enumerate(signalled.MODES):
        for name in (*AT_ONCE, "SIGINT"):
            in_ci = name == (*AT_ONCE, "SIGINT")[index % 4] or (mode, name) == ("run", "SIGHUP")
            yield pytest.param(mode, name, marks=[] if in_ci else [pytest.mark.minutes])


@pytest.mark.parametrize(("mode", "name"), [*cases()])
def test_a_signal_ends_all_that_was_started(tmp_path, mode, name):
    number = getattr(signal, name)
    found = signalled.trial(mode, number, tmp_path)
    assert (found.left, found.files) == ([], []), found.stderr
    assert found.code in signalled.expected_codes(mode, number), found.stderr
    assert found.seconds < SOON_S
    if not mode.startswith("pytest"):  # which has tracebacks of its own for interrupts
        assert "Traceback" not in found.stderr
    if mode in WITH_ROUNDS:
        assert found.rounds >= 2


MINUTES = pytest.mark.minutes
OTHERS = (
    ("function", "SIGUSR1"),
    pytest.param("ab revisions", "SIGXCPU", marks=MINUTES),
    ("peak processes", "SIGALRM"),
    pytest.param("function", "SIGALRM", marks=MINUTES),
    ("fresh", "SIGUSR2"),
    pytest.param("pooled", "SIGPROF", marks=MINUTES),
    pytest.param("timeit", "SIGRTMIN", marks=MINUTES),
    ("pytest", "SIGVTALRM"),
)


@pytest.mark.parametrize(("mode", "name"), OTHERS)
def test_so_do_all_signals_that_end_programs(tmp_path, mode, name):
    number = getattr(signal, name)
    found = signalled.trial(mode, number, tmp_path)
    assert (found.left, found.files, found.code) == ([], [], 128 + number), found.stderr


KILLED = ("run", "fresh", "peak processes", "pytest fresh")
KILLED_TOO = [pytest.param(m, marks=MINUTES) for m in ("ab fresh", "peak", "prepare")]


@pytest.mark.parametrize("mode", [*KILLED, *KILLED_TOO])
def test_commands_and_workers_do_not_outlive_a_run_that_is_killed(tmp_path, mode):
    """A moment after they began: until the kernel has been asked to, it cannot kill them."""
    assert signalled.trial(mode, signal.SIGKILL, tmp_path, delay_s=0.2).left == []


@pytest.mark.parametrize(
    "mode",
    ["ab revisions", "pooled"]
    + [pytest.param(mode, marks=MINUTES) for mode in ("run", "ab build", "peak processes")],
)
def test_signals_that_come_together_do_not_interrupt_the_cleaning_up(tmp_path, mode):
    """A terminal that closes sends SIGHUP twice, `timeout` SIGTERM."""
    run = signalled.start(mode, tmp_path)
    signalled.until(lambda: signalled.lives(tmp_path))
    sent = (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    for number in sent:
        run.send_signal(number)
    # Of signals that come together the system gives the lowest first.
    assert run.wait(timeout=300.0) in {128 + each for each in sent}
    signalled.until(lambda: not signalled.processes_of(tmp_path))
    assert signalled.temporaries(tmp_path) == []


@pytest.mark.parametrize(
    "delay_s",
    [0.0, 0.005, 0.05]
    + [pytest.param(delay_s, marks=MINUTES) for delay_s in (0.002, 0.01, 0.02, 0.1, 0.2)],
)
def test_a_signal_that_comes_while_a_command_is_started_ends_it_too(tmp_path, delay_s):
    words = (
        "run",
        "--target",
        "0.001%",
        "--budget",
        "300",
        "sh",
        "-c",
        "echo $$ >> pids; sleep 0.001",
    )
    signalled.MODES["short"] = words
    found = signalled.trial("short", signal.SIGTERM, tmp_path, delay_s=delay_s)
    assert (found.code, found.left) == (128 + signal.SIGTERM, [])


def test_code_that_swallows_signals_is_ended(tmp_path):
    signalled.MODES["swallowing"] = ("run", "--budget", "300", "swallowing:work")
    (tmp_path / "swallowing.py").write_text(
        "import time\n"
        "def work():\n"
        "    open('pids', 'w').write('1 2 3')\n"
        "    while True:\n"
        "        try:\n"
        "            time.sleep(1)\n"
        "        except BaseException:\n"
        "            pass\n"
    )
    found = signalled.trial("swallowing", signal.SIGTERM, tmp_path)
    assert (found.code, found.left) == (128 + signal.SIGTERM, [])


def test_what_escapes_its_session_is_named_and_goes_on(tmp_path):
    child = f"setsid sleep 600 > /dev/null 2>&1 & sleep 0.5; {signalled.STAYING}"
    signalled.MODES["escaping"] = ("run", "sh", "-c", child)
    found = signalled.trial("escaping", signal.SIGTERM, tmp_path, staying=1)
    assert [each.split(maxsplit=1)[1] for each in found.left] == ["sleep 600"]
    assert "running: sleep 600" in found.stderr


def test_a_signal_that_the_program_is_to_ignore_is_ignored(tmp_path):
    """As by `nohup`."""
    run = signalled.start("run", tmp_path, ignored=[signal.SIGHUP])
    signalled.until(lambda: signalled.lives(tmp_path))
    run.send_signal(signal.SIGHUP)
    with pytest.raises(TimeoutError):
        signalled.until(lambda: run.poll() is not None, 1.0)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=300.0) == 128 + signal.SIGTERM


PATIENCE_S = 300.0


def rounds_in(store):
    """Count the rounds of the only run in a store."""
    runs = Journal(store).runs() if store.exists() else []
    return runs[0]["rounds"] if runs else 0


def is_gone(process):
    """Whether no process of its group is left, also none that nobody has waited for yet."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def interrupt(process):
    """Press Ctrl-C: the whole process group gets the signal."""
    os.killpg(process.pid, signal.SIGINT)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_first_interrupt_finishes_the_round_and_reports_and_no_line_lives_in_a_pipe(
    started, store
):
    run = started("run", "--target", "0.0001%", "--budget", "900", "sh", "-c", "sleep 0.05")
    until(lambda: rounds_in(store) >= 3)
    interrupt(run)
    stdout, stderr = run.communicate(timeout=PATIENCE_S)
    assert run.returncode in {3, 4}  # three times may fall by chance, and give no number
    assert "stop requested" in stdout
    assert "\x1b" not in stdout
    assert "benchrigor: stopping" in stderr.splitlines()[-1]


def test_the_second_interrupt_ends_at_once_and_keeps_the_finished_rounds(started, store, tmp_path):
    script = "echo $$ >> pids; if [ $(wc -l < pids) -ge 3 ]; then exec sleep 600; fi"
    errors, pids = tmp_path / "errors", tmp_path / "pids"
    with errors.open("w") as stderr:
        run = started("run", "--budget", "900", "sh", "-c", script, stderr=stderr)
        until(lambda: pids.exists() and len(pids.read_text().split()) == 3)
        interrupt(run)
        until(lambda: "again to end at once" in errors.read_text())
        interrupt(run)
        stdout, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 130
    assert stdout == ""
    assert "benchrigor: interrupted\n" in errors.read_text()
    assert "benchrigor resume " in errors.read_text()
    assert rounds_in(store) == 2
    assert not is_running(int(pids.read_text().split()[-1]))


def test_a_budget_ends_a_command_and_says_so(started, tmp_path):
    pids = tmp_path / "pids"
    run = started(
        "run", "--details", "--budget", ".5", "sh", "-c", "echo $$ > pids; exec sleep 600"
    )
    stdout, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 4
    assert "budget spent" in stdout
    assert "[cut-round]" in stdout
    assert not pids.exists() or not is_running(int(pids.read_text()))


def test_a_line_lives_on_a_terminal_and_no_thread_runs_beside_a_reading(started, tmp_path):
    (tmp_path / "alone.py").write_text(
        "import threading, time\n"
        "def f():\n"
        "    time.sleep(0.001)\n"
        "    assert threading.active_count() == 1\n"
    )
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "40"}
    words = ("run", "--target", "0.0001%", "--budget", "1", "alone:f")
    run = started(*words, stderr=theirs, env=environment)
    os.close(theirs)
    drawn = b""
    try:
        while part := os.read(ours, 4096):
            drawn += part
    except OSError:  # the terminal was closed at the other end
        pass
    finally:
        os.close(ours)
    stdout, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode in {3, 4}
    lines = re.split(r"[\r\n]|\x1b\[[0-9?]*[A-Za-z]", drawn.decode())
    assert any(re.match(r"alone:f: .*\d.* ms", line) for line in lines)
    assert max(map(len, lines)) <= 40
    assert "\x1b" not in stdout


STEADY = "\n    time.sleep(0.001)"
THREAD = "threading.Thread(target=time.sleep, args=(600,), name='poller').start()"
LEFT = {  # what a module does once, and each call
    "a pool": (  # it replaces those of its processes that are killed
        "pool = None",
        f"global pool\n    pool = pool or multiprocessing.get_context('fork').Pool(2){STEADY}",
    ),
    "what hangs at the exit": ("atexit.register(time.sleep, 600)", STEADY),
    "a thread": ("", f"if threading.active_count() < 3: {THREAD}{STEADY}"),
    "a background job": ("", "os.system('sleep 600 & sleep 0.01')"),
}
SAID = {"what hangs at the exit": "exit functions", "a thread": "running: poller"}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("how", ["--in-process", "--fresh"])
def test_what_a_function_leaves_does_not_keep_the_program_nor_outlive_it(
    started, module, left, how
):
    once, each = LEFT[left]
    imports = "import atexit, multiprocessing, os, threading, time"
    module("job", f"{imports}\n{once}\ndef work():\n    {each}\n")
    run = started("run", how, "--budget", 1, "job:work")
    _, printed = run.communicate(timeout=PATIENCE_S)
    assert run.returncode in {0, 3, 4}  # too few processes for a number, on a busy machine
    assert how == "--fresh" or SAID.get(left, "") in printed
    assert "still running" not in printed
    until(lambda: is_gone(run))


@pytest.mark.parametrize("call", ["os.execvp('true', ['true'])", "os._exit(status=0)"])
def test_a_function_that_would_end_the_program_has_failed(module, alone, call):
    module("job", f"import os\ndef work():\n    {call}\n")
    assert alone("run", "--in-process", "--budget", 1, "job:work").returncode == 5
