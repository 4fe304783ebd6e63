"""What people see of the pace of the machine: headline, page, explanation, table, JSON."""

import json

import pytest
from simulated.paced import TRUE_S, paced

import benchrigor as br
from benchrigor.cli.output import summary
from benchrigor.model import RunRecord


@pytest.fixture(scope="module")
def slow() -> RunRecord:
    return paced()


def full_pace(record: RunRecord) -> br.Estimate:
    found = record.at_full_pace()
    assert found is not None
    return found


def headline(record: RunRecord) -> br.Estimate:
    found = record.headline()
    assert found is not None
    return found


def test_the_line_leads_with_full_speed_and_tells_what_was_measured(slow: RunRecord) -> None:
    measured = slow.estimate()
    assert measured is not None
    low, high = headline(slow).low, headline(slow).high
    assert low <= TRUE_S <= high < measured.low


def test_programs_find_it_in_each_analysis(slow: RunRecord) -> None:
    document = json.loads(json.dumps(summary(slow)))
    (analysis,) = document["analyses"]
    found = full_pace(slow)
    assert analysis["at_full_pace"]["value"] == found.value
    assert (analysis["at_full_pace"]["low"], analysis["at_full_pace"]["high"]) == (
        found.low,
        found.high,
    )
    assert analysis["pace"]["full_s"] == {"interpreter": pytest.approx(4e-6, rel=0.02)}
    again = br.RunRecord.from_dict(slow.to_dict())
    assert full_pace(again).value == found.value
    assert str(again) == str(slow)
    assert summary(paced(references=False))["analyses"][0]["at_full_pace"] is None
