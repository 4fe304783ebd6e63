"""What only a real process shows: signals, terminals, and dying in the midst of a run."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from benchrigor.storage import Journal

PATIENCE_S = 300.0


@pytest.fixture
def started(store):
    """Start the command line as a shell would, in a process group of its own."""
    processes = []

    def start(*words, **given):
        process = subprocess.Popen(  # our own program
            [sys.executable, "-m", "benchrigor", *map(str, words)],
            text=True,
            start_new_session=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **given},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


def until(reached):
    """Wait until a condition holds, and return what it found."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := reached():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{reached} did not come about within {PATIENCE_S:g} s")


def rounds_in(store):
    """Count the rounds of the only run in a store."""
    if not store.exists():
        return 0
    runs = Journal(store).runs()
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


@pytest.mark.slow
def test_the_first_interrupt_finishes_the_round_and_reports_and_no_line_lives_in_a_pipe(
    started, store
):
    run = started("run", "--target", "0.0001%", "--budget", "900", "sh", "-c", "sleep 0.05")
    until(lambda: rounds_in(store) >= 3)
    interrupt(run)
    stdout, stderr = run.communicate(timeout=PATIENCE_S)
    assert run.returncode in {3, 4}  # three times may fall by chance, and give no number
    assert "stop requested" in stdout
    assert ("±0.0001 %: missed, with ±" in stdout) is (run.returncode == 3)
    assert "\x1b" not in stdout
    assert "benchrigor: stopping" in stderr.splitlines()[-1]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_command_does_not_outlive_a_run_that_is_told_to_end(started, store, tmp_path):
    pids = tmp_path / "pids"
    run = started("run", "--budget", "900", "sh", "-c", "echo $$ >> pids; exec sleep 600")
    until(lambda: pids.exists() and pids.read_text().strip())
    run.terminate()
    run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 128 + signal.SIGTERM
    assert not is_running(int(pids.read_text()))


@pytest.mark.slow
def test_a_killed_run_is_resumed_with_every_finished_round_counted_once(
    started, store, cli, strict
):
    words = ("--target", "0.0001%", "--budget", "900", "--name", "killed")
    run = started("run", *words, "sh", "-c", "sleep 0.02")
    until(lambda: rounds_in(store) >= 4)
    run.kill()
    run.communicate(timeout=PATIENCE_S)
    journal = Journal(store)
    (kept,) = journal.runs()
    assert not kept["finished"]
    before = journal.load(kept["run_id"]).rounds
    assert "unfinished" in cli("list").stdout

    limit = len(before) + 3
    resumed = cli("resume", kept["run_id"], "--max-rounds", limit, "--json")
    assert resumed.exit_code in {3, 4}
    codes = [each["code"] for each in strict(resumed.stdout)["session_notices"]]
    assert "resumed" in codes
    after = journal.load(kept["run_id"]).rounds
    assert [each.plan.index for each in after] == list(range(limit))
    assert [each.readings for each in after[: len(before)]] == [each.readings for each in before]


@pytest.mark.slow
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


@pytest.fixture
def finished(started, tmp_path):
    """Measure the function ``work`` of a module for a second, and return how that ended."""

    def run(module, *options):
        (tmp_path / "job.py").write_text(module)
        where = options or ["--in-process"]
        process = started("run", *where, "--budget", 1, "job:work", cwd=tmp_path)
        _, process.printed = process.communicate(timeout=PATIENCE_S)
        return process

    return run


@pytest.mark.slow
def test_a_pool_that_a_function_leaves_does_not_outlive_the_program(finished):
    """It replaces those of its processes that are killed."""
    run = finished(
        "import multiprocessing, time\n"
        "pool = None\n"
        "def work():\n"
        "    global pool\n"
        "    pool = pool or multiprocessing.get_context('fork').Pool(2)\n"
        "    time.sleep(0.001)\n"
    )
    assert run.returncode in {0, 3, 4}
    until(lambda: is_gone(run))


@pytest.mark.slow
def test_what_hangs_at_the_exit_does_not_keep_the_program(finished):
    run = finished(
        "import atexit, time\n"
        "atexit.register(time.sleep, 600)\n"
        "def work():\n"
        "    time.sleep(0.001)\n"
    )
    assert run.returncode in {0, 3, 4}
    assert "at exit" in run.printed


@pytest.mark.slow
def test_background_jobs_of_a_function_are_ended(finished):
    run = finished(
        "import os\n"  # of which the shell does not wait for the first
        "def work():\n"
        "    os.system('sleep 600 & sleep 0.01')\n"
    )
    assert "still running" not in run.printed
    until(lambda: is_gone(run))


@pytest.mark.slow
@pytest.mark.parametrize("call", ["os.execvp('true', ['true'])", "os._exit(status=0)"])
def test_a_function_that_would_end_the_program_has_failed(finished, call):
    run = finished(f"import os\ndef work():\n    {call}\n")
    assert run.returncode == 5


@pytest.mark.slow
def test_threads_that_a_function_leaves_do_not_keep_a_fresh_interpreter(finished):
    run = finished(
        "import threading, time\n"
        "def work():\n"
        "    if threading.active_count() < 3:\n"
        "        threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    time.sleep(0.001)\n",
        "--fresh",
    )
    assert run.returncode in {0, 3, 4}  # too few processes for a number, on a busy machine


@pytest.mark.slow
def test_threads_that_keep_the_program_are_named(finished):
    run = finished(
        "import threading, time\n"
        "def work():\n"
        "    if threading.active_count() < 3:\n"
        "        threading.Thread(target=time.sleep, args=(600,), name='poller').start()\n"
        "    time.sleep(0.001)\n",
        "--in-process",
    )
    assert run.returncode in {0, 3, 4}
    assert "running: poller" in run.printed
