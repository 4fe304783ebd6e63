"""Standard streams: closed, full, without a reader, or a terminal; and how the program ends."""

import os
import re
import shlex
import signal
import subprocess
import sys
import termios
from contextlib import suppress

import numpy as np
import pytest

PROGRAM = shlex.join([sys.executable, "-m", "benchrigor"])
CANNOT_WRITE = 6


def shell(script, folder):
    """Run a script in which "$benchrigor" is the program; pipes fail with what fails first."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {script.replace('benchrigor', PROGRAM, 1)}"],
        cwd=folder,
        env=os.environ | {"BENCHRIGOR_STORE": str(folder / "store")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


GONE = "mkdir gone; cd gone; rmdir ../gone; benchrigor"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")  # noqa: PTH110
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("benchrigor --help > /dev/full", CANNOT_WRITE, "standard output cannot be written: No sp"),
        ("benchrigor --help >&-", CANNOT_WRITE, "standard output cannot be written: Bad file"),
        ("benchrigor --help | true", 128 + signal.SIGPIPE, ""),
        ("benchrigor show nothing 2> /dev/full", 6, ""),
        ("benchrigor show nothing 2>&-", 6, ""),
        ("benchrigor --version 2>&- <&-", 0, ""),
        (f"{GONE} run true", 2, "the current folder cannot be"),
        (f"{GONE} list", 6, "there is no store at"),
    ],
)
def test_each_way_has_its_exit_code(tmp_path, script, code, said):
    found = shell(script, tmp_path)
    assert (found.returncode, said in found.stderr) == (code, True), found.stderr
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr
    assert said or not found.stderr


@pytest.mark.parametrize("streams", ["2>&-", "2> /dev/full", "<&- 2>&-"])
@pytest.mark.parametrize("words", ["talking:f", "sh -c 'echo 1 >&2'"])
def test_a_run_needs_no_standard_error(tmp_path, words, streams):
    (tmp_path / "talking.py").write_text("import sys\ndef f():\n    print(1, file=sys.stderr)\n")
    found = shell(f"benchrigor run --budget 0.3 {words} {streams}", tmp_path)
    assert found.returncode in {0, 4}, found.stderr
    assert found.stdout


def test_a_run_whose_report_cannot_be_written_is_kept_and_read_without_a_folder(tmp_path):
    found = shell("benchrigor run --max-rounds 3 true > /dev/full", tmp_path)
    assert found.returncode == CANNOT_WRITE
    assert "standard output" in found.stderr
    verbs = ("list", "show", "explain", "doctor", "track-record")
    found = shell(f"{GONE} {'; benchrigor '.join(verbs)}", tmp_path)
    assert "Traceback" not in found.stderr
    assert "current folder" not in found.stderr
    assert " rounds" in found.stdout


ENDING = """
from benchrigor import __main__ as program
import benchrigor.cli.exits

def fail():
    raise {}

program.main = fail
program.run_program()
"""


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [("SystemExit(3)", 3, ""), ("SystemExit(None)", 0, ""), ("KeyError('x')", 1, "KeyError: 'x'")],
)
def test_the_program_ends_with_its_code_whatever_is_raised(error, code, printed):
    argv = [sys.executable, "-c", ENDING.format(error)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.strip().endswith(printed)


WORDS = ("compare", "old.csv", "new.csv", "--unit", "s")


def on_terminal(columns: int, **variables: str) -> str:
    """Return what a comparison of two files prints on a terminal of so many columns."""
    leader, follower = os.openpty()
    termios.tcsetwinsize(follower, (24, columns))
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    program = [sys.executable, "-m", "benchrigor", *WORDS]
    ran = subprocess.Popen(program, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    shown = b""
    with suppress(OSError):  # the program has ended
        while part := os.read(leader, 4096):
            shown += part
    os.close(leader)
    ran.wait()
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_has_colours_and_its_width_and_a_pipe_has_neither(
    series, alone, monkeypatch
) -> None:
    for variable in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    for name, value in (("old", 1.0), ("new", 1.15)):
        series(f"{name}.csv", np.random.default_rng(1).normal(value, 0.02, 500))
    wide, narrow = on_terminal(100), on_terminal(40)
    plain = on_terminal(40, NO_COLOR="1")
    assert "\x1b[31m" in wide
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", narrow) == plain
    assert max(map(len, plain.splitlines())) <= 40
    assert max(map(len, re.sub(r"\x1b\[[\d;]*m", "", wide).splitlines())) > 80
    piped = alone(*WORDS).stdout
    assert "\x1b" not in piped
    assert 70 <= max(map(len, piped.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "40")
    assert alone(*WORDS).stdout == plain
