"""Pages on terminals and in pipes."""

import os
import re
import subprocess
import sys
import termios
from contextlib import suppress

import numpy as np

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
