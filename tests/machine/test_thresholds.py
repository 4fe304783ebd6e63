"""Thresholds: defaults, and what a file changes; ``texts/machine.md`` has what is refused."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import benchrigor.machine
from benchrigor.errors import InvalidInput
from benchrigor.machine import health, read_thresholds, status

DEFAULTS = Path(benchrigor.machine.__file__).with_name("thresholds.toml")
PAGE = Path(__file__).parents[2] / "docs" / "machine-state.md"


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


def worded(condition: Any) -> str:
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
    assert after["busy"].to_dict() == {
        "when": [{"sample": "load 1 min", "above": 4, "clear": 2}],
        "sentence": "Busy.",
        "hold_s": 10.0,
        "evidence": [],
        "enabled": True,
    }
    changed = {"hot", "disk-full", "busy"}
    assert {code for code in after if after[code] != before.get(code)} == changed
    assert read_thresholds(path.read_text()) == tuple(after.values())


def test_thresholds_survive_being_sent_as_json() -> None:
    given = read_thresholds("[hot]\nenabled = false")
    sent = json.loads(json.dumps({each.code: each.to_dict() for each in given}))
    assert read_thresholds(sent) == given


def test_deeply_nested_toml_is_refused() -> None:
    with pytest.raises(InvalidInput):
        read_thresholds("a = " + "[" * 100_000)


def test_too_many_thresholds_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_thresholds({f"code-{index}": None for index in range(100_000)})
    assert len(caught.value.problems) == 1


def test_the_file_of_the_package_holds_nothing_that_is_not_checked() -> None:
    tables = tomllib.loads(DEFAULTS.read_text())
    assert tuple(tables) == tuple(each.code for each in read_thresholds())
