import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import benchrigor as br
from benchrigor.settings import SETTINGS

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


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'mesure'"):
        br.mesure  # noqa: B018  # the access is the test


# Doors, and their parameters that are no settings.
DOORS: dict[Callable[..., object], str] = {
    br.Options: "",
    br.Session: "options metrics name subject store rules clock meter next_work before_round "
    "after_round progress",
    br.measure: "func name setup teardown store progress metric clock over_s loop_factory sync "
    "items memory instructions",
    br.measure_async: "func options",  # those of `measure`
    br.measure_many: "functions options",  # likewise
    br.measure_pair: "baseline candidate setup teardown store progress began clock",
    br.compare_runs: "baseline candidate metric direction paired store",
    br.plan: "known change power half_widths metric",
    br.CommandWorkload: "argv picks accept_exit where grace_s hooks stdin stdout ignore_failure "
    "cpu_times memory warm_up clock meter",
    br.InterpreterWorkload: "target args kwargs python where cpus inside path inner",
}
OF_THE_FIXTURE = {
    "__call__": "func args kwargs",
    "pedantic": "target args kwargs setup teardown rounds warmup_rounds iterations",
    "compare": "old new",
    "ratio": "baseline candidate",
}
# Defaults other than those of the table.
OTHERWISE = {
    (br.Session, "detector"): None,  # an object; the option has the name
    ("compare", "margin"): None,  # that of the test
    (br.measure_pair, "target"): None,  # half the margin
    (br.compare_runs, "statistic"): None,  # that of the runs
    (br.compare_runs, "detector"): None,  # likewise
    (br.plan, "confidence"): None,  # that of the pilot
    (br.plan, "margin"): 0.0,  # any change is to be seen
}


def test_every_door_names_the_settings_as_their_table_does_and_has_its_defaults(
    bench: Any,
) -> None:
    own = {field.name: field.default for field in fields(br.Options)}
    table = {name: own.get(name, row.default) for name, row in SETTINGS.items()}
    assert own.keys() <= SETTINGS.keys()
    doors: dict[Any, tuple[Any, str]] = {door: (door, others) for door, others in DOORS.items()}
    doors |= {name: (getattr(bench, name), others) for name, others in OF_THE_FIXTURE.items()}
    for door, (function, others) in doors.items():
        parameters = inspect.signature(function).parameters.values()
        given = {each.name: each.default for each in parameters}
        settings = given.keys() - set(others.split())
        assert (settings - SETTINGS.keys(), set(others.split()) - given.keys()) == (set(), set())
        for name in settings:
            assert given[name] == OTHERWISE.get((door, name), table[name]), (door, name)
    assert (own["target"], own["budget_s"], own["min_seconds"]) == (0.02, 10.0, 1.0)


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
