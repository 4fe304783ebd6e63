"""The law of signals: in each way of measuring they end it, and nothing that it started is left.

SIGINT lets the round end first. The other signals are handled alike, so CI sends each mode one of
them, by turns, and one mode of each kind the rarer ones. docs/evidence/trust.py sends every signal
to every mode, as what is marked `minutes` here does.
"""

import signal

import pytest
import signalled

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
