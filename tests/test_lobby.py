import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

import benchrigor as br
from benchrigor.cli import main

LAZY = [
    "benchrigor",
    *(f"benchrigor.{room}" for room in ("instrument", "interference", "machine", "model")),
    *(f"benchrigor.{room}" for room in ("queues", "session", "stats", "testing")),
]
ROOMS = {"errors", "instrument", "interference", "machine", "model", "queues", "report", "stats"}
ROOMS |= {"testing", "workbench", "workloads"}
HEAVY = ["numpy", "scipy", "statsmodels", "ruptures", "pyperf", "matplotlib", "pandas", "asyncio"]
HEAVY += ["psutil"]


@pytest.mark.parametrize("module", ["benchrigor", "benchrigor.pytest_plugin"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_reached_and_is_listed() -> None:
    assert sorted(br.__all__) == br.__all__
    for name in br.__all__:
        assert getattr(br, name) is not None
    assert set(br.__all__) <= set(dir(br))


def test_the_rooms_are_reached_from_the_lobby() -> None:
    assert br.stats.estimate_mean([1.0, 2.0]).value == 1.5
    assert br.model.Metric(name="time").name == "time"
    assert br.workbench.PeakSearch(threshold_s=0.2).ask().load == 50.0


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'mesure'"):
        br.mesure  # noqa: B018  # the access is the test


def test_two_percent_within_ten_seconds_is_the_default_of_every_door() -> None:
    def default(function: object, name: str) -> object:
        return inspect.signature(function).parameters[name].default  # type: ignore[arg-type]

    assert (default(br.Options, "target"), default(br.measure, "target")) == (0.02, 0.02)
    doors = (br.Options, br.measure, br.measure_pair)
    assert [default(each, "budget_s") for each in doors] == [10.0] * 3
    assert default(br.Options, "min_seconds") == 1.0
    assert (default(br.measure_pair, "margin"), default(br.measure_pair, "target")) == (0.01, None)
    run = main.get_command(click.Context(main), "run")
    assert run is not None
    by_verb = {each.name: each.default for each in run.params}
    assert (by_verb["target"], by_verb["budget_s"]) == ("2%", "10")


@pytest.mark.parametrize("lobby", LAZY)
def test_what_a_lobby_tells_type_checkers_is_what_it_gives(lobby: str) -> None:
    module = import_module(lobby)
    assert module.__file__ is not None
    stub = Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    places = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom) and node.module != "benchrigor"
        for alias in node.names
    }
    assert sorted(places) == sorted({*dir(module)} - ROOMS - {"__version__"})
    for name, (place, item) in places.items():
        assert getattr(module, name) is getattr(import_module(place), item)
