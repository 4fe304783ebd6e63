"""Every option that takes a duration takes it with any unit: all verbs are walked over."""

import re

import click
import pytest

from benchrigor.cli import main
from benchrigor.cli.options import Duration
from benchrigor.pytest_plugin import pytest_addoption

CONTEXT = click.Context(main)
OPTIONS = [
    (verb, option)
    for verb in main.list_commands(CONTEXT)
    for option in main.get_command(CONTEXT, verb).params
    if isinstance(option, click.Option)
]
DURATIONS = [pytest.param(*each, id=f"{each[0]} {each[1].opts[0]}") for each in OPTIONS]
DURATIONS = [each for each in DURATIONS if isinstance(each.values[1].type, Duration)]


def test_an_option_that_speaks_of_time_is_a_duration():
    """A new option that is named like one, or is described so, must be one."""
    of_time = re.compile(r"\b(seconds|minutes|hours|longer than|so long|this long|runs longer)\b")
    found = {
        f"{verb} {option.opts[0]}"
        for verb, option in OPTIONS
        if option.name.endswith("_s")
        or option.metavar in {"SECONDS", "MINUTES", "DURATION"}
        or (not option.is_flag and of_time.search(option.help or ""))
    }
    assert found - {each.id for each in DURATIONS} == set()


def test_the_durations_are_these():
    known = {
        *(f"{verb} --budget" for verb in ("run", "ab", "commands", "timeit", "peak", "resume")),
        *(f"{verb} --timeout" for verb in ("run", "ab", "commands", "peak")),
        *("run --over", "run --quick-time", "run --short-round", "peak --mean", "peak --p95"),
    }
    assert known <= {each.id for each in DURATIONS}


@pytest.mark.parametrize(("verb", "option"), DURATIONS)
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("5 s", 5.0),
        ("1m", 60.0),
        ("2h", 7200.0),
        ("250ms", 0.25),
        ("1m30s", 90.0),
        ("10us", 1e-5),
        ("10µs", 1e-5),
    ],
)
def test_each_takes_a_duration_in_any_unit(verb, option, text, seconds):
    assert option.type.convert(text, option, CONTEXT) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(("verb", "option"), DURATIONS)
@pytest.mark.parametrize("text", ["soon", "5x", "-1s", "0", "0s", "1,5s", "nan", ""])
def test_each_refuses_what_is_no_duration(verb, option, text):
    with pytest.raises(click.BadParameter):
        option.type.convert(text, option, CONTEXT)


@pytest.mark.parametrize(("verb", "option"), DURATIONS)
def test_a_bare_number_is_refused_by_limits_and_in_the_unit_that_is_documented_else(verb, option):
    if option.name in {"mean_s", "p95_s"}:
        with pytest.raises(click.BadParameter, match="no unit"):
            option.type.convert("100", option, CONTEXT)
    else:
        expected = 6000.0 if option.name == "over" else 100.0
        assert option.type.convert("100", option, CONTEXT) == expected


@pytest.mark.slow
@pytest.mark.parametrize("text", ["300ms", "0.005m"])
def test_the_budget_of_a_project_has_units_too(cli, strict, tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(f'[tool.benchrigor]\nbudget = "{text}"\n')
    told = strict(cli("timeit", "pass", "--no-store", "--json").stdout)
    assert told["options"]["budget_s"] == pytest.approx(0.3)


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
