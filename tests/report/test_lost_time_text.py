from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import benchrigor as br
from benchrigor.model import RunRecord
from benchrigor.report import explain, render
from benchrigor.report.lost_time_text import (
    pressure_of_profile,
    pressure_of_run,
)
from benchrigor.testing import FakeClock, SyntheticWorkload


@pytest.fixture
def record() -> Callable[..., RunRecord]:
    """Return the record of a run whose rounds have these facts of the machine."""
    clock = FakeClock()
    session = br.Session(br.Options(max_rounds=3, target=None), seed=1, clock=clock)
    before = session.run(SyntheticWorkload(mean=0.001, seed=1, clock=clock))

    def compose(*facts: dict[str, float]) -> RunRecord:
        told = [
            {f"machine: {name}": value for name, value in each.items()}
            for each in (*facts, *(3 * [{}]))
        ]
        rounds = [
            replace(each, facts={**each.facts, **more})
            for each, more in zip(before.rounds, told, strict=False)
        ]
        return replace(before, rounds=tuple(rounds))

    return compose


def test_rounds_count_by_the_time_that_they_tell_of(record) -> None:
    found = record(
        {"span_s": 1.0, "pressure cpu some": 10.0, "pressure io full": 4.0},
        {"span_s": 3.0, "pressure cpu some": 50.0, "pressure io full": 0.0, "steal": 1.0},
        {"span_s": 90.0, "steal": 1.0},
    )
    assert pressure_of_run(found) == {("cpu", "some"): 0.4, ("io", "full"): 0.01}


def test_the_facts_of_a_profile_are_seconds_of_its_wall_time() -> None:
    facts = {"wall_s": 8.0, "pressure_memory_s": 2.0, "pressure_memory_full_s": 0.8}
    assert pressure_of_profile({**facts, "pressure_from": "/proc/pressure"}) == {
        ("memory", "some"): 0.25,
        ("memory", "full"): 0.1,
    }
    assert pressure_of_profile({"pressure_cpu_s": 1.0}) == {}
    assert pressure_of_profile({"wall_s": 1.0, "pressure": "not there"}) == {}


def test_where_it_is_not_known_nothing_is_said(record) -> None:
    assert "pressure" not in render(record())
    assert "ressure" not in explain(record())
