"""What benchrigor finds is what was recorded; ``README.md`` says when a record may be renewed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
from fence import CASES, records
from fence.comparing import differences
from fence.plain import plain

from benchrigor.model import Code, Estimate, Notice


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_result_is_the_one_recorded(name: str) -> None:
    changes = records.changes_of(name, records.found(name))
    assert not changes, "\n".join([f"{name} has changed:", *changes])


def test_each_case_has_a_record_and_each_record_a_case() -> None:
    assert records.names() == set(CASES)


def test_a_record_holds_nothing_of_the_machine_and_no_sentence() -> None:
    for name in records.names():
        text = records.read(name)
        assert not {"provenance", "run_id", "sentence"} & set(_keys(text))


# --- the comparer

ESTIMATE = Estimate(
    value=1.5,
    low=1.23,
    high=1.8,
    confidence=0.95,
    n=500,
    n_effective=math.nan,
    method="wps",
    notices=(Notice.of(Code.SHORT_RUN, n=500, noun_="readings", wanted=None),),
)
RESULT = plain({"found": [ESTIMATE], "decided": True})


def changed(change: Callable[[dict[str, Any], dict[str, Any]], object]) -> list[str]:
    """Return the differences that a change of the result, or of its estimate, makes."""
    now = copy.deepcopy(RESULT)
    change(now, now["found"][0])
    return list(differences(RESULT, now))


def test_nothing_differs_from_itself() -> None:
    assert changed(lambda *_: None) == []


def test_a_changed_float_is_told_with_its_path() -> None:
    assert changed(lambda _, estimate: estimate.update(low=1.24)) == [
        "found[0].low: 1.23 is now 1.24"
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _, estimate: estimate.update(n=501), "found[0].n: 500 is now 501"),
        (lambda _, estimate: estimate.update(value=None), "found[0].value: 1.5 is now None"),
        (lambda _, estimate: estimate.update(n_effective=1.0), "found[0].n_effective: nan is now"),
        (lambda _, estimate: estimate.pop("high"), "found[0].high: 1.8 is gone"),
        (lambda _, estimate: estimate.update(shape="flat"), "found[0].shape: 'flat' is new"),
        (lambda result, _: result.update(decided=1), "decided: True is now 1"),
        (lambda result, _: result.update(light="red"), "light: 'red' is new"),
        (lambda result, _: result["found"].append(1), "found: 1 items are now 2"),
        (
            lambda _, estimate: estimate["notices"][0].update(code="few-readings"),
            "found[0].notices[0].code: 'short-run' is now 'few-readings'",
        ),
        (
            lambda _, estimate: estimate["notices"][0]["evidence"].update(n=499),
            "found[0].notices[0].evidence.n: 500 is now 499",
        ),
    ],
)
def test_a_difference_is_told(change: Callable[..., object], told: str) -> None:
    (line,) = changed(change)
    assert line.startswith(told)


@pytest.mark.parametrize("nothing", [None, 0, 0.0, False, "", [], {}])
def test_a_new_field_that_holds_nothing_is_no_difference(nothing: object) -> None:
    assert changed(lambda _, estimate: estimate.update(more=nothing)) == []


def test_a_new_option_at_its_default_is_no_difference_and_another_one_is() -> None:
    recorded = {"record": {"options": {"target": 0.02}}}
    usual, chosen = ({"record": {"options": {"target": 0.02, "preset": None, "confidence": each}}}
                     for each in (0.95, 0.9))  # fmt: skip
    assert list(differences(recorded, usual)) == []
    assert list(differences(recorded, chosen)) == ["record.options.confidence: 0.9 is new"]


def test_rounding_is_no_difference_and_more_than_that_is() -> None:
    assert changed(lambda _, estimate: estimate.update(low=1.23 * (1 + 1e-10))) == []
    assert changed(lambda _, estimate: estimate.update(low=1.23 * (1 + 1e-8))) != []
    assert list(differences(0.0, 1e-16)) == []
    assert list(differences(4e-12, 5e-12)) != []


# --- what is recorded


def test_a_sentence_is_not_recorded() -> None:
    assert plain(ESTIMATE.notices) == [
        {"code": "short-run", "severity": "warning", "evidence": {"n": 500, "wanted": None}}
    ]


def test_a_long_series_is_told_by_what_notices_a_change_of_value_or_place() -> None:
    series = [float(each) for each in range(100)]
    swapped = [*series[:10], series[11], series[10], *series[12:]]
    assert plain(series)["size"] == 100
    assert list(differences(plain(series), plain(swapped))) == [
        "sum_by_place: 328350.0 is now 328349.0"
    ]


def _keys(item: Any) -> list[str]:
    if isinstance(item, dict):
        return [*item, *(key for each in item.values() for key in _keys(each))]
    return [key for each in item for key in _keys(each)] if isinstance(item, list) else []
