import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest

import benchrigor as br
from benchrigor.testing import FakeClock


def measured(**times_us: int) -> Any:
    clock = FakeClock()

    def nap(us: int) -> None:
        clock.advance(us * 1000)

    functions = {name: lambda us=us: nap(us) for name, us in times_us.items()}
    return br.measure_many(functions, budget_s=2, seed=1, clock=clock)


@pytest.mark.slow
def test_runs_measured_in_turn_are_a_dict_whose_text_ranks_them() -> None:
    records = measured(slow=300, fast=200, twin=300)
    assert isinstance(records, dict)
    assert [*records] == ["slow", "fast", "twin"]
    best, _, header, *rows = str(records).splitlines()
    assert best.startswith("fast takes 33")
    assert header.split()[0] == "name"
    assert [row.split()[:4] for row in rows[:3]] == [
        ["1.", "fast", "200", "µs"],
        ["2.", "slow", "300", "µs"],
        ["2.", "twin", "300", "µs"],
    ]


@pytest.mark.slow
def test_their_repr_is_one_line_and_they_can_be_copied() -> None:
    records = measured(slow=300, fast=200)
    shown = repr(records)
    assert shown.startswith("2 runs: slow 300 µs ±")
    assert len(repr(measured(**{f"function_{index}": 100 for index in range(9)}))) == 100
    for other in (copy.copy(records), pickle.loads(pickle.dumps(records))):  # noqa: S301  # ours
        assert type(other) is type(records)
        assert repr(other) == shown


def test_a_run_without_a_number_stands_last_without_a_place() -> None:
    records = measured(slow=300, fast=200)
    empty = replace(records["slow"], name="none", analyses=())
    lines = str(type(records)({"none": empty, **records})).splitlines()
    assert lines[0].startswith("fast takes 33")
    assert [line.split()[0] for line in lines[2:5]] == ["1.", "2.", "none"]
    assert str(type(records)({"none": empty})).splitlines()[1].split()[0] == "none"
    assert (str(type(records)()), repr(type(records)())) == ("no runs", "no runs")
