"""A run that version 4 of the arithmetic stored: its interval was not on the scale of a time."""

from pathlib import Path

import pytest

import benchrigor as br

KEPT = Path(__file__).parent / "method_4" / "skewed.json"
# As it was stored, and as version 5 makes it: value, low, high, in seconds.
STORED = (0.01880686, 0.002914924, 0.0346988)
AGAIN = (0.01880686, 0.008078567, 0.04378229)


def numbers(estimate):
    return (estimate.value, estimate.low, estimate.high)


def test_a_stored_estimate_stays_as_it_was():
    stored = br.RunRecord.load(KEPT)
    assert numbers(stored.estimate()) == pytest.approx(STORED, rel=1e-6)
    assert stored.to_dict()["method_version"] == "5"


def test_its_interval_is_positive_where_its_readings_are_analysed_again(cli, strict):
    stored = br.RunRecord.load(KEPT)
    again = br.compare_runs(stored, stored).baseline
    assert numbers(again) == pytest.approx(AGAIN, rel=1e-6)
    (analysis,) = strict(cli("analyze", KEPT, "--json").stdout)["analyses"]
    shown = analysis["estimate"]
    assert (shown["value"], shown["low"], shown["high"]) == pytest.approx(AGAIN, rel=1e-6)
