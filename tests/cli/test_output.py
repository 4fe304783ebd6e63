"""The live line of a running session, and pages on terminals and in pipes."""

import os
import re
import subprocess
import sys
import termios
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import benchrigor as br
from benchrigor.cli.output import print_records
from benchrigor.model import Code, Notice
from benchrigor.report.notice_lines import PAGE
from benchrigor.testing import FakeClock


def test_what_is_to_be_known_of_several_is_told_once(
    clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(name: str, *notices: Notice) -> br.RunRecord:
        record = br.measure(lambda: clock.advance(10**6), name=name, budget_s=0.1, clock=clock)
        return replace(record, session_notices=notices)

    hit, few = (Notice.warning(each, "x") for each in (Code.STOPPED, Code.HOSTS_DIFFER))
    note = Notice.note(Code.FULL_PACE_NEW, "The light tells it.")
    records = {"f": measured("f", hit, few, note), "g": measured("g", hit, note)}
    print_records(records, as_json=False)
    shown = capsys.readouterr().out
    assert shown.count(f"! {PAGE[Code.STOPPED][:20]}") == 1
    assert f"! f: {PAGE[Code.HOSTS_DIFFER][:20]}" in shown


def on_terminal(columns: int, **variables: str) -> str:
    """Return what a comparison of two files prints on a terminal of so many columns."""
    words = ["-m", "benchrigor", "compare", "old.csv", "new.csv", "--unit", "s"]
    leader, follower = os.openpty()
    termios.tcsetwinsize(follower, (24, columns))
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    ran = subprocess.Popen(
        [sys.executable, *words], stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    shown = b""
    with suppress(OSError):  # the program has ended
        while part := os.read(leader, 4096):
            shown += part
    os.close(leader)
    ran.wait()
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    for name, value in (("old", 1.0), ("new", 1.15)):
        readings = np.random.default_rng(1).normal(value, 0.02, 500)
        np.savetxt(f"{name}.csv", readings)


@pytest.mark.slow
@pytest.mark.usefixtures("two_files")
def test_a_terminal_has_colours_and_its_width_and_a_pipe_has_neither() -> None:
    wide, narrow = on_terminal(100), on_terminal(40)
    plain = on_terminal(40, NO_COLOR="1")
    assert "\x1b[31m" in wide
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", narrow) == plain
    assert max(map(len, plain.splitlines())) <= 40
    assert max(map(len, re.sub(r"\x1b\[[\d;]*m", "", wide).splitlines())) > 80
    words = [sys.executable, "-m", "benchrigor", "compare", "old.csv", "new.csv", "--unit", "s"]
    piped = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    assert "\x1b" not in piped
    assert 70 <= max(map(len, piped.splitlines())) <= 80
    environment = {**os.environ, "COLUMNS": "40"}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert ran.stdout == plain
