"""Thresholds: defaults, what a file changes, and what is refused."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.machine import health, read_thresholds, status
from benchrigor.machine import thresholds as module
from benchrigor.machine.thresholds import Condition, Threshold

DEFAULTS = Path(module.__file__).with_name("thresholds.toml")
PAGE = Path(__file__).parents[2] / "docs" / "machine-state.md"
GOOD = {"sample": "load 1 min", "above": 4.0, "clear": 2.0}


def test_the_defaults_cover_what_the_package_promises() -> None:
    codes = {each.code for each in read_thresholds()}
    built_in = {"thrashing", "under-used", "throttling", "hot", "disk-full", "memory-low", "stolen"}
    assert built_in <= codes
    assert all(each.enabled and len(each.when) >= 1 for each in read_thresholds())


def test_every_default_is_about_samples_that_there_always_are() -> None:
    samples = {each.name for each in (*status(interval_s=0.0).samples, *health().samples)}
    for each in read_thresholds():
        assert {condition.sample for condition in each.when} <= samples
        assert set(each.evidence) <= samples


def test_the_page_of_the_machine_lists_the_defaults_as_they_are() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| ([\d.]+) s \|", PAGE.read_text(), re.M)
    expected = [
        (each.code, "; ".join(map(worded, each.when)), f"{each.hold_s:g}")
        for each in read_thresholds()
    ]
    assert rows == expected


def worded(condition: Condition) -> str:
    way = "above" if condition.above is not None else "below"
    return f"{condition.sample} {way} {condition.limit:g} ({condition.clear:g})"


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "[hot]\nenabled = false\n[disk-full]\nhold_s = 60\n"
        '[busy]\nsentence = "Busy."\nwhen = [{sample = "load 1 min", above = 4, clear = 2}]\n'
    )
    before = {each.code: each for each in read_thresholds()}
    after = {each.code: each for each in read_thresholds(path)}
    assert (after["hot"].enabled, after["hot"].when) == (False, before["hot"].when)
    assert after["disk-full"].hold_s == 60
    assert after["busy"] == Threshold(
        code="busy",
        when=(Condition(sample="load 1 min", above=4, clear=2),),
        sentence="Busy.",
    )
    changed = {"hot", "disk-full", "busy"}
    assert {code for code in after if after[code] != before.get(code)} == changed
    assert read_thresholds(path.read_text()) == tuple(after.values())


def test_thresholds_survive_being_sent_as_json() -> None:
    given = read_thresholds("[hot]\nenabled = false")
    sent = json.loads(json.dumps({each.code: each.to_dict() for each in given}))
    assert read_thresholds(sent) == given


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"when": [{**GOOD, "clear": 5.0}]}, "clear is 5.0, expected at most 4.0, which is above"),
        (
            {"when": [{"sample": "a", "below": 5.0, "clear": 4.0}]},
            "clear is 4.0, expected at least 5.0, which is below",
        ),
        ({"when": [{**GOOD, "above": float("nan")}]}, "above is nan, expected a finite number"),
        ({"when": [{**GOOD, "clear": float("inf")}]}, "clear is inf, expected a finite number"),
        ({"when": [{**GOOD, "above": "4"}]}, "above is '4', expected a finite number"),
        ({"when": [{**GOOD, "above": True}]}, "above is True, expected a finite number"),
        ({"when": [{**GOOD, "below": 1.0}]}, "has above and below, expected above or below"),
        ({"when": [{"sample": "a", "clear": 1.0}]}, "has no limit, expected above or below"),
        ({"when": [{**GOOD, "sample": ""}]}, "sample is '', expected a text"),
        ({"when": [{**GOOD, "over": 1}]}, "'over' is unknown, expected some of sample, clear"),
        ({"when": [5]}, r"when\[0\] is 5, expected a table"),
        ({"when": [GOOD] * 9}, "expected one to eight conditions"),
        ({"when": []}, r"when is \[\], expected one to eight conditions"),
        ({"when": None}, "when is None, expected one to eight conditions"),
        ({"when": "load"}, "when is 'load', expected one to eight conditions"),
        ({"sentence": "x" * 301}, "expected a text of 1 to 300 characters"),
        ({"sentence": None}, "sentence is None"),
        ({"sentence": "\x00\x1b[31m"}, r"sentence is '\\x00\\x1b\[31m', expected .* printable"),
        ({"evidence": ["\x1b[31m"]}, "expected up to eight names of samples, printable"),
        ({"when": [{**GOOD, "sample": "load\n"}]}, "sample is .*, expected a text"),
        ({"hold_s": 0.5}, "hold_s is 0.5, expected a number of seconds from 1 on"),
        ({"hold_s": float("nan")}, "hold_s is nan"),
        ({"hold_s": "5"}, "hold_s is '5'"),
        ({"hold_s": 10**5000}, "hold_s is of type int and too long to show, expected a number"),
        ({"evidence": "swap"}, "evidence is 'swap', expected up to eight names"),
        ({"evidence": [5]}, r"evidence is \[5\]"),
        ({"enabled": "no"}, "enabled is 'no', expected true or false"),
        ({"colour": "red"}, "'colour' is unknown, expected some of when, sentence"),
    ],
)
def test_what_does_not_fit_is_refused(table, problem) -> None:
    good = {"when": [GOOD], "sentence": "Busy."}
    assert read_thresholds({"busy": good})[-1].code == "busy"
    with pytest.raises(InvalidInput, match=problem):
        read_thresholds({"busy": {**good, **table}})


@pytest.mark.parametrize("code", ["", "With Space", "x" * 65, 'a{b="c"}', "../etc", "é", 5])
def test_codes_are_short_and_plain(code) -> None:
    with pytest.raises(InvalidInput, match="is no code"):
        read_thresholds({code: {"when": [GOOD], "sentence": "Busy."}})


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_thresholds({"hot": {"hold_s": 0, "when": [{**GOOD, "clear": 9.0}]}, "b c": {}, "d": 1})
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("text", ["[hot", "hot = \x00", "a = " + "[" * 100_000, "thresholds.toml"])
def test_what_is_no_toml_is_refused(text) -> None:
    with pytest.raises(InvalidInput, match="cannot be read as TOML"):
        read_thresholds(text)


@pytest.mark.parametrize("source", [3, 0, [1], [], b"[hot]", False])
def test_what_is_neither_a_file_nor_its_text_nor_tables_is_refused(source) -> None:
    with pytest.raises(InvalidInput, match=r"source is .*, expected a Path"):
        read_thresholds(source)


def test_a_file_that_is_not_there_is_refused(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.toml cannot be read as TOML"):
        read_thresholds(tmp_path / "none.toml")


def test_a_table_where_a_code_is_expected_is_refused() -> None:
    with pytest.raises(InvalidInput, match="hot is 5, expected a table"):
        read_thresholds("hot = 5")


@pytest.mark.slow
def test_too_many_thresholds_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(InvalidInput, match="expected at most 100"):
        read_thresholds({f"code-{index}": None for index in range(100_000)})


def test_the_file_of_the_package_holds_nothing_that_is_not_checked() -> None:
    tables = tomllib.loads(DEFAULTS.read_text())
    assert tuple(tables) == tuple(each.code for each in read_thresholds())
