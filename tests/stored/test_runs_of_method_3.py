"""Runs that version 3 of the arithmetic stored: a journal (with a pair of sides) and one record."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.storage import Journal

KEPT = Path(__file__).parent / "method_3"
# Estimates as they were stored: value, low, high, in seconds.
ESTIMATES = {
    "work.new": (2.310226e-05, 2.291848e-05, 2.332398e-05),
    "work.old": (2.837247e-05, 2.822088e-05, 2.854829e-05),
    "sleep .01": (0.01148574, 0.01138646, 0.01158502),
    "work:new": (2.261326e-05, 2.186507e-05, 2.336145e-05),
    "new": (2.399604e-05, 2.353009e-05, 2.494661e-05),
    "cooled": (0.001121758, 0.0009514677, 0.001292048),
}


@pytest.fixture
def journal(tmp_path):
    """Return a copy of the journal, since opening it may change the file."""
    shutil.copy(KEPT / "journal.sqlite", tmp_path / "journal.sqlite")
    with Journal(tmp_path / "journal.sqlite") as journal:
        yield journal


def test_stored_estimates_stay_as_they_were(journal):
    records = [journal.load(row["run_id"]) for row in journal.runs()]
    records.append(br.RunRecord.load(KEPT / "cooled.json"))
    found = {
        record.name: (estimate.value, estimate.low, estimate.high)
        for record in records
        if (estimate := record.estimate()) is not None
    }
    assert found == {name: pytest.approx(numbers, rel=1e-6) for name, numbers in ESTIMATES.items()}
    assert sorted(len(record.rounds) for record in records) == [5, 5, 5, 8, 8, 8, 8]


def test_stored_rounds_are_analysed_again_where_runs_are_compared():
    stored = br.RunRecord.load(KEPT / "cooled.json")
    again = br.compare_runs(stored, stored).baseline
    # Method 3 averaged the warm-up into the mean; a session has no cool-down that it could cut.
    behind_warm_up = stored.readings()[100:]
    assert stored.estimate().value == pytest.approx(ESTIMATES["cooled"][0], rel=1e-6)
    assert again.value == pytest.approx(behind_warm_up.mean(), rel=0.005)


def test_a_run_whose_rounds_are_not_stored_is_not_compared():
    stored = br.RunRecord.load(KEPT / "cooled.json")
    with pytest.raises(br.BenchrigorError, match="readings"):
        br.compare_runs(stored, replace(stored, rounds=()))


def test_sides_of_a_stored_pair_are_compared(journal):
    sides = {row["name"]: journal.load(row["run_id"]) for row in journal.runs()}
    ratio = br.compare_runs(sides["work.old"], sides["work.new"]).ratio
    assert ratio.low < ESTIMATES["work.new"][0] / ESTIMATES["work.old"][0] < ratio.high


def test_the_headlines_of_stored_runs_are_at_full_speed_by_their_own_references(journal):
    for row in journal.runs():
        record = journal.load(row["run_id"])
        headline, figure, estimate = record.headline(), record.at_full_pace(), record.estimate()
        assert headline == (figure or estimate)
        if figure is not None:
            assert record.analysis().pace is not None
            assert figure.value <= 1.001 * estimate.value


def test_a_stored_headline_without_a_figure_at_full_speed_is_the_estimate_with_a_notice(journal):
    record = journal.load(next(row["run_id"] for row in journal.runs() if row["name"] == "new"))
    plain = record.to_dict()
    (analysis,) = plain["analyses"]
    analysis["pace"]["quiet"] = {"seconds": {"interpreter": 5e-6}, "sd": 0.01, "runs": 0}
    analysis["at_full_pace"] = None
    again = br.RunRecord.from_dict(plain)
    assert again.headline() == again.estimate()
    assert br.model.Code.FULL_PACE_NOT_KEPT in {notice.code for notice in again.analysis().notices}
