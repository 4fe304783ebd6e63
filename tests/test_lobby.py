import inspect
import subprocess
import sys

import pytest

import benchrigor as br
from benchrigor.cli.run_verb import run

HEAVY = ["numpy", "scipy", "statsmodels", "ruptures", "pyperf", "matplotlib", "pandas", "asyncio"]


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


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'mesure'"):
        br.mesure  # noqa: B018  # the access is the test


def test_two_percent_within_ten_seconds_is_the_default_of_every_door() -> None:
    def default(function: object, name: str) -> object:
        return inspect.signature(function).parameters[name].default  # type: ignore[arg-type]

    assert (default(br.Options, "target"), default(br.measure, "target")) == (0.02, 0.02)
    doors = (br.Options, br.measure, br.measure_pair)
    assert [default(each, "budget_s") for each in doors] == [10.0] * 3
    assert default(br.Options, "min_seconds") == 1.0
    assert (default(br.measure_pair, "margin"), default(br.measure_pair, "target")) == (0.01, None)
    by_verb = {each.name: each.default for each in run.params}
    assert (by_verb["target"], by_verb["budget_s"]) == ("2%", "10")
