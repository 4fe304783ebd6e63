"""How a benchmark is measured: its marker, the options of the run, and the project's defaults."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from benchrigor.settings import SETTINGS, names_by_key, settings_in
from benchrigor.storage.user_settings import defaults

# Keywords of the markers of pytest-benchmark and pytest-codspeed, with their names here.
_LIKE = {"max_time": "budget", "precision": "target"}
_IGNORED = {
    *("min_time", "min_rounds", "max_rounds", "timer", "warmup", "warmup_iterations"),
    *("calibration_precision", "cprofile"),
}
# Names in `Options` by those in markers.
NAMES = names_by_key(settings_in("marker"))
_OURS = {*NAMES, "group", "baseline"}
_BUDGET_S, _FRESH_BUDGET_S = 2.0, 10.0


def settings_of(node: pytest.Item) -> tuple[dict[str, Any], set[str]]:
    """Return how the benchmarks of a test are measured, and the keywords that are ignored.

    A marker counts before an option, and an option before the project's pyproject.toml. Fails the
    test for unknown keywords.
    """
    config = node.config
    project = {name.replace("-", "_"): text for name, text in defaults(config.rootpath).items()}
    found: dict[str, Any] = {name: project[name] for name in NAMES if name in project}
    given = {name: config.getoption(f"bench_{name}", None) for name in NAMES}
    found |= {name: value for name, value in given.items() if value is not None}
    ignored: set[str] = set()
    for marker in ("benchmark", "bench"):
        # The closest marker comes first, and must count last.
        for mark in reversed([*node.iter_markers(marker)]):
            found |= _read(mark.kwargs, marker)
            ignored |= _IGNORED & mark.kwargs.keys()
    if problems := _wrong(found):
        pytest.fail("; ".join(problems), pytrace=False)
    is_fresh = config.getoption("bench_fresh") or config.getoption("bench_against")
    found["given_budget"] = found.get("budget", math.inf)
    found.setdefault("budget", _FRESH_BUDGET_S if is_fresh else _BUDGET_S)
    return {NAMES.get(word, word): value for word, value in found.items()}, ignored


def _wrong(found: dict[str, Any]) -> list[str]:
    """Read settings given as text, and return all problems with the settings of a benchmark."""
    from benchrigor.model.checks import wrong_setting  # noqa: PLC0415  # for measured tests

    problems = []
    for word in NAMES.keys() & found.keys():
        row = SETTINGS[NAMES[word]]
        try:
            if isinstance(found[word], str):
                found[word] = row.kind.read(found[word])
            problems += wrong_setting(f"{word} of a benchmark", row, found[word])
        except ValueError as error:
            problems.append(f"{word} of a benchmark: {error}")
    if not isinstance(found.get("group", ""), str):
        problems.append(f"group of a benchmark is {found['group']!r}, expected a text")
    return problems


def _read(keywords: Mapping[str, Any], marker: str) -> dict[str, Any]:
    renamed = {_LIKE.get(name, name): value for name, value in keywords.items()}
    if "disable_gc" in renamed:
        renamed["gc"] = "off" if renamed.pop("disable_gc") else "on"
    if unknown := sorted(renamed.keys() - _OURS - _IGNORED):
        pytest.fail(
            f"marker {marker} has {', '.join(unknown)}, expected some of "
            f"{', '.join(sorted(_OURS))}",
            pytrace=False,
        )
    return {name: value for name, value in renamed.items() if name in _OURS and value is not None}


def unmeasured(config: pytest.Config, name: str, alone: Collection[str]) -> list[str]:
    """Return the problems of an option that measures with other options."""
    problems = [
        f"--bench-{name} and {_typed(config, other)} do not go together: give one of them"
        for other in alone
        if config.getoption(f"bench_{other}")
    ]
    if config.getoption("numprocesses", None):
        problems.append(
            f"--bench-{name} measures, and tests in parallel disturb each other: add -n 0"
        )
    return problems


def _typed(config: pytest.Config, name: str) -> str:
    """Return an option as it was typed: it may be taken over from pytest-benchmark."""
    is_rival = name == "skip" and config.getoption("benchmark_disable", None)
    return "--benchmark-disable" if is_rival else f"--bench-{name}"
