"""Commands by the launcher: their peak memory, and how they are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import benchrigor.workloads

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
