"""What options there are, and which of them fit together."""

import json
from typing import Any

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Options, codec


@pytest.mark.parametrize("limit", [0.0, 1.0, -0.1, float("nan"), "low", True])
def test_a_limit_of_autocorrelation_lies_between_0_and_1(limit: object) -> None:
    with pytest.raises(InvalidInput, match="autocorrelation_limit"):
        Options(autocorrelation_limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trim", "shares"),
    [
        ("none", (0.0, 0.0)),
        ("auto", None),
        (0.1, (0.1, 0.1)),
        (0, (0.0, 0.0)),
        ([0.2, 0], (0.2, 0)),
    ],
)
def test_what_is_cut_can_be_said(trim: Any, shares: tuple[float, float] | None) -> None:
    options = Options(trim=trim)
    assert options.cut_shares == shares
    assert codec.decode(Options, json.loads(json.dumps(codec.encode(options)))) == options


@pytest.mark.parametrize(
    "trim", ["some", 0.5, -0.1, 1.0, (0.1,), (0.9, 0.1), (0.1, 0.1, 0.1), None, True, float("nan")]
)
def test_a_cut_that_leaves_nothing_or_is_none_is_refused(trim: Any) -> None:
    with pytest.raises(InvalidInput, match="trim is"):
        Options(trim=trim)


def test_a_line_through_rounds_cuts_nothing() -> None:
    with pytest.raises(InvalidInput, match="analysis 'wps' cuts no readings"):
        Options(analysis="wps", trim="none")


@pytest.mark.parametrize("more", [{"trim": "none"}, {"trim": 0.1}, {"analysis": "wps"}])
def test_a_detector_is_refused_where_nothing_is_looked_for(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="there nothing is looked for"):
        Options(detector="pelt", **more)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("quick_s", 0.0, "more than 0"),
        ("quick_s", float("inf"), "a finite number"),
        ("quick_rounds", 9, "a whole number from 10 on"),
        ("quick_rounds", 20.5, "a whole number from 10 on"),
        ("max_rounds", 0, "a whole number from 1 on"),
    ],
)
def test_a_number_out_of_range_is_named(name: str, value: float, expected: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is {value!r}, expected {expected}"):
        Options(**{name: value})


def test_options_survive_being_stored() -> None:
    options = Options(autocorrelation_limit=0.3, work=(0, None))
    assert codec.decode(Options, codec.encode(options)) == options


def test_two_percent_within_ten_seconds_is_what_is_aimed_at() -> None:
    options = Options()
    assert (options.target, options.budget_s, options.min_seconds) == (0.02, 10.0, 1.0)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-0.1, "0 or more"),
        (float("nan"), "0 or more"),
        (float("inf"), "a finite number"),
        ("1", "a number"),
        (True, "a number"),
    ],
)
def test_the_least_seconds_are_0_or_more(seconds: Any, expected: str) -> None:
    with pytest.raises(InvalidInput, match=f"min_seconds is .*, expected {expected}"):
        Options(min_seconds=seconds)
    assert Options(min_seconds=0).min_seconds == 0


def test_a_number_of_thousands_of_digits_is_refused_as_others_are() -> None:
    with pytest.raises(InvalidInput):
        Options(max_rounds=10**5000)
