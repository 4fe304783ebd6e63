"""What only a real process shows: signals, terminals, and dying in the midst of a run."""

import os
import re
import signal

import pytest
from signalled import until

from benchrigor.storage import Journal

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
SAID = {"what hangs at the exit": "at exit", "a thread": "running: poller"}


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
