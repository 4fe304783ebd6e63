"""What is measured beside readings: its shapes, and what is refused."""

import re

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Delays, References, Round, RoundPlan

N = 5


def told(**beside: object) -> Round:
    plan = RoundPlan(index=0, readings=N)
    return Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": [0.1] * N}, **beside)  # type: ignore[arg-type]  # bad on purpose


def test_seconds_of_each_reading_are_groups_of_one() -> None:
    plain, named = told(delays=range(N)), told(delays={"steal": range(N)})
    assert plain.delays is not None
    assert named.delays is not None
    assert plain.delays.stops.tolist() == [1, 2, 3, 4, 5]
    assert {name: each.tolist() for name, each in plain.delays.seconds.items()} == {
        "run queue": [0, 1, 2, 3, 4]
    }
    assert list(named.delays.seconds) == ["steal"]
    references = told(references={"command": [1.0] * N}).references
    assert references is not None
    assert references.seconds["command"].tolist() == [1.0] * N


def test_whole_clock_times_stay_exact() -> None:
    starts = told(starts_ns=[2**62 + each for each in range(N)]).starts_ns
    assert starts is not None
    assert starts.tolist() == [2**62 + each for each in range(N)]


REFUSED = {
    "too large": ({"starts_ns": [2**70] * N}, "starts_ns[0] is 1.18"),
    "of another sign": ({"starts_ns": np.full(N, 2**63, np.uint64)}, "below 2**63 in size"),
    "too large a float": ({"starts_ns": [0.0, 1e30, 2e30, 3e30, 4e30]}, "starts_ns[1] is 1e+30"),
    "back": ({"starts_ns": [1, 2, 4, 3, 5]}, "starts_ns[3] is 3, expected none before"),
    "few starts": ({"starts_ns": [1]}, "starts_ns has 1 items, expected 5"),
    "no delay": ({"delays": [0, 0, -1, 0, 0]}, "delays: seconds['run queue'][2] is -1.0, expected"),
    "no time": ({"references": [1, 0, 1, 1, 1]}, "seconds['interpreter'][1] is 0.0, expected more"),
    "few delays": ({"delays": {"steal": [0]}}, "seconds['steal'] has 1 items, expected 5"),
    "words": ({"delays": "abc"}, "delays: seconds['run queue'] is 'abc', expected a 1-D"),
    "nothing": ({"references": {}}, "references: seconds is empty, expected times"),
    "late": (
        {"references": References(stops=[9], seconds={"interpreter": [1]})},
        "references are of 9 readings, and the round has 5",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_the_round(name: str) -> None:
    beside, sentence = REFUSED[name]
    with pytest.raises(InvalidInput, match=rf"round 0: .*{re.escape(sentence)}"):
        told(**beside)


@pytest.mark.parametrize("kind", [Delays, References])
def test_seconds_without_names_are_refused(kind: type) -> None:
    with pytest.raises(InvalidInput, match=r"seconds is \[1\.0\], expected a mapping"):
        kind(stops=[1], seconds=[1.0])


def test_a_version_is_a_whole_number() -> None:
    with pytest.raises(InvalidInput, match="version is 'x', expected a whole number"):
        References(stops=[1], seconds={"interpreter": [1.0]}, version="x")  # type: ignore[arg-type]  # bad on purpose


@pytest.mark.parametrize("name", ["unit_readings", "readings", "facts", "weights"])
def test_what_is_no_mapping_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"round 0: {name} is None, expected a mapping"):
        Round(plan=RoundPlan(index=0), elapsed_ns=1, **{name: None})  # type: ignore[arg-type]  # bad on purpose


def test_a_plan_and_a_time_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="plan is None, expected a RoundPlan"):
        Round(plan=None, elapsed_ns=1)  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(InvalidInput, match="round 0: notices is None, expected a tuple"):
        Round(plan=RoundPlan(index=0), elapsed_ns=1, notices=None)  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(InvalidInput, match="round 0: elapsed_ns is 1000"):
        Round(plan=RoundPlan(index=0), elapsed_ns=10**400)
