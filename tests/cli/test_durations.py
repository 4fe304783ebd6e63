"""Amounts of work and durations as they are written; all verbs are walked over."""

import re

import click
import pytest

from benchrigor.cli import main
from benchrigor.pytest_plugin import pytest_addoption

CONTEXT = click.Context(main)


def converted(option, text):
    """Return what an option makes of a text; None if it refuses it."""
    try:
        return option.type.convert(text, option, CONTEXT)
    except click.BadParameter:
        return None


OPTIONS = {
    f"{verb} {option.opts[0]}": option
    for verb in main.list_commands(CONTEXT)
    for option in main.get_command(CONTEXT, verb).params
    if isinstance(option, click.Option)
}
DURATIONS = {name: each for name, each in OPTIONS.items() if converted(each, "1m30s") == 90.0}


def test_an_option_that_speaks_of_time_is_a_duration():
    """A new option that is named like one, or is described so, must be one."""
    of_time = re.compile(r"\b(seconds|minutes|hours|longer than|so long|this long|runs longer)\b")
    found = {
        name
        for name, option in OPTIONS.items()
        if option.name.endswith("_s")
        or option.metavar in {"SECONDS", "MINUTES", "DURATION"}
        or (not option.is_flag and of_time.search(option.help or ""))
    }
    assert found - DURATIONS.keys() == set()


def test_the_durations_are_these():
    known = {
        *(f"{verb} --budget" for verb in ("run", "ab", "commands", "timeit", "peak", "resume")),
        *(f"{verb} --timeout" for verb in ("run", "ab", "commands", "peak")),
        *("run --over", "run --quick-time", "run --short-round", "peak --mean", "peak --p95"),
    }
    assert known <= DURATIONS.keys()


UNITS = {"5s": 5.0, "5 s": 5.0, "1m": 60.0, "2h": 7200.0, "250ms": 0.25, "10us": 1e-5, "10µs": 1e-5}
NONE = ["soon", "5x", "-1s", "0", "0s", "1,5s", "nan", ""]


@pytest.mark.parametrize("name", DURATIONS)
def test_each_takes_a_duration_in_any_unit_and_nothing_else(name):
    option = DURATIONS[name]
    assert {text: converted(option, text) for text in UNITS} == pytest.approx(UNITS, rel=1e-12)
    assert [text for text in NONE if converted(option, text) is not None] == []
    # Limits have no unit that everybody would think of.
    bare = {"mean_s": None, "p95_s": None, "over": 6000.0}.get(option.name, 100.0)
    assert converted(option, "100") == bare


@pytest.mark.parametrize("text", ["300ms", "0.005m"])
def test_the_budget_of_a_project_has_units_too(told, tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(f'[tool.benchrigor]\nbudget = "{text}"\n')
    found = told("timeit", "--no-store", "pass")
    assert found["options"]["budget_s"] == pytest.approx(0.3)


def test_an_option_of_pytest_that_speaks_of_time_is_a_duration():
    options = {}

    class Parser:
        def getgroup(self, *_names):
            return self

        def addoption(self, name, **attributes):
            options[name] = attributes

        def addini(self, *_arguments, **_attributes):
            """Take no setting into account."""

    pytest_addoption(Parser())
    of_time = re.compile("longer than|seconds|DURATION|SECONDS")
    assert [name for name, each in options.items() if of_time.search(str(each))] == [
        "--bench-budget"
    ]
    assert options["--bench-budget"]["type"]("1m30s") == 90.0


(WORK,) = (each for each in main.get_command(CONTEXT, "run").params if each.name == "work")


@pytest.mark.parametrize(
    ("text", "work", "unit"),
    [
        ("1000", 1000, "/s"),
        ("1k", 1000, "/s"),
        ("1K", 1000, "/s"),
        ("1E+6", 10**6, "/s"),
        (".5", 0.5, "/s"),
        ("2.", 2, "/s"),
        ("4.35k", 4350, "/s"),
        ("1e-3", 0.001, "/s"),
        ("7B", 7, "B/s"),
        ("0.1MB", 100_000, "B/s"),
        ("64KiB", 65536, "B/s"),
        ("64kiB", 65536, "B/s"),
        ("1.5Gi", 3 * 2**29, "/s"),
        ("1PiB", 2**50, "B/s"),
        (" 1MB ", 10**6, "B/s"),
        ("12345678901234567890", 12345678901234567890, "/s"),
        ("1MB:1GB", (10**6, 10**9), "B/s"),
        ("1k:", (1000, None), "/s"),
        (":1GB", (0, 10**9), "B/s"),
        (":", (0, None), "/s"),
        ("0.5:2", (0.5, 2), "/s"),
        ("1 : 2", (1, 2), "/s"),
    ],
)
def test_an_amount_or_a_range_is_read(text, work, unit):
    found = WORK.type.convert(text, WORK, CONTEXT)
    assert (found.work, found.speed_unit) == (work, unit)
    assert repr(found.work) == repr(work)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1m", "1b", "1i", "1iB", "1 k", "1kk", "MB", "-1", "-1:5", "1:x", "x:5"),
        *("1:2:3", "nan", "inf", "0x10", "1_000", "1e999", "1e", "1,5", "٣", "9" * 5000),
        *("0", "0MB", "1GB:1MB", "5:5", ":0"),  # out of range
    ],
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(click.BadParameter):
        WORK.type.convert(text, WORK, CONTEXT)
