"""The live line of a running session, and pages on terminals and in pipes."""

import math
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
from simulated.estimates import estimated

import benchrigor as br
from benchrigor.cli.output import LiveLine, print_records
from benchrigor.model import Analysis, Code, Metric, Notice, Options, Progress
from benchrigor.model.analysis import Kind
from benchrigor.report.notice_lines import PAGE
from benchrigor.testing import FakeClock

SPEED = Metric(name="speed", unit="B/s", direction="higher")  # type: ignore[arg-type]


def shown(*analyses: Analysis, **given: object) -> str:
    lines: list[str] = []
    progress = {
        "rounds": 12,
        "readings": 12,
        "rejected_rounds": 0,
        "elapsed_s": 9.0,
        "seconds_left": 31.0,
        "readings_needed": None,
        "stop_requested": False,
        "fresh": True,
        **given,
    }
    LiveLine(lines.append)(Progress(analyses=analyses, **progress))  # type: ignore[arg-type]
    (line,) = lines
    return line


def analysed(kind: Kind, metric: Metric = SPEED, *, known: bool = True) -> Analysis:
    found = estimated(23.4e6, 21.9e6, 25.7e6, n=12, n_effective=12.0, method="wps")
    return Analysis(metric=metric, kind=kind, n=12, estimate=found if known else None)


def test_the_speed_is_shown_while_it_is_refined() -> None:
    assert shown(analysed(Kind.WORK)) == (
        "12 rounds · about 23.4 MB/s, give or take 8.1% · at most 31 s"
    )
    assert shown(analysed(Kind.WORK), readings_needed=30) == (
        "12 rounds · about 23.4 MB/s, give or take 8.1% · about 30 to go · at most 31 s"
    )


def test_before_there_is_a_speed_only_rounds_are_counted() -> None:
    assert shown(analysed(Kind.WORK, known=False)) == "12 rounds · at most 31 s"


@pytest.mark.parametrize("beside", [(), (Kind.WORK,)])
def test_where_readings_decide_they_are_counted(beside: tuple[Kind, ...]) -> None:
    time = Metric(name="time", unit="s")
    optional = Metric(name="speed", unit="B/s", must_satisfy=False)
    others = [analysed(kind, optional) for kind in beside]
    assert shown(*others, analysed(Kind.UNIT_READINGS, time)) == (
        "23,400,000 s [21,900,000, 25,700,000] · half-width 8.1% · at most 31 s · 12 readings"
    )


def test_before_there_is_an_estimate_a_rough_figure_moves() -> None:
    time = Metric(name="time", unit="s")
    rough = estimated(0.00321, 0.0031, 0.00332, n=12, n_effective=12.0, method="provisional")
    looked = Analysis(metric=time, kind=Kind.UNIT_READINGS, n=12, estimate=rough)
    expected = "about 3.21 ms [3.10, 3.32] · at most 31 s · 12 readings"
    assert shown(provisional=looked) == expected
    refused = Analysis(metric=time, kind=Kind.UNIT_READINGS, n=12)
    assert shown(refused, provisional=looked) == expected


def test_one_reading_is_shown_without_an_interval() -> None:
    time = Metric(name="time", unit="s")
    first = estimated(5.0, -math.inf, math.inf, n=1, n_effective=1.0, method="provisional")
    looked = Analysis(metric=time, kind=Kind.UNIT_READINGS, n=1, estimate=first)
    assert shown(provisional=looked, readings=1) == "about 5 s · at most 31 s · 1 reading"


def test_the_line_names_what_is_measured_and_what_is_wanted() -> None:
    lines: list[str] = []
    line = LiveLine(lines.append)
    line.follow("parse", Options(target=0.02))
    found = estimated(0.00321, 0.0031, 0.00332, n=1234, n_effective=900.0)
    time = Metric(name="time", unit="s")
    line(
        Progress(
            rounds=3,
            readings=1234,
            rejected_rounds=0,
            elapsed_s=3.0,
            seconds_left=7.0,
            readings_needed=4000,
            stop_requested=False,
            analyses=(Analysis(metric=time, kind=Kind.UNIT_READINGS, n=1234, estimate=found),),
            fresh=True,
        )
    )
    assert lines == [
        "parse: 3.21 ms [3.10, 3.32] · half-width 3.4%, wanted 2% · at most 7 s · 1,234 readings"
    ]


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
    assert shown.startswith("g and f are equal within 1%: ")
    assert shown.count(f"! {PAGE[Code.STOPPED][:20]}") == 1
    assert f"! f: {PAGE[Code.HOSTS_DIFFER][:20]}" in shown
    assert "The light tells it" not in shown


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
