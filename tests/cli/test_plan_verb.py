import pytest

import benchrigor as br
from benchrigor.testing import FakeClock, SyntheticWorkload


@pytest.fixture
def pilot(keep):
    """A pilot that stopped short of its target, by its id and its record."""
    clock = FakeClock()
    session = br.Session(br.Options(target=0.001, budget_readings=600), seed=1, clock=clock)
    record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    return keep(record), record


def test_a_short_run_plans_a_long_one(cli, pilot):
    run_id, record = pilot
    result = cli("plan", run_id[:4], "--change", "2%", "--margin", "1%", "--power", "90%")
    expected = br.plan(record, change=0.02, margin=0.01, power=0.9)
    assert result.stdout == f"{expected}\n"
    codes = [each.code for each in expected.notices]
    assert codes.count("this-process-only") == 1
    assert "not-converged" not in codes
    assert max(map(len, result.stdout.splitlines())) <= 79


def test_widths_confidence_and_metric_are_passed_on(told, pilot):
    run_id, record = pilot
    words = ("--half-width", "3%", "--half-width", "0.001", "--confidence", "99%")
    document = told("plan", run_id, *words, "--metric", "time")
    assert document["run_id"] == run_id
    expected, found = (
        br.plan(record, half_widths=(0.03, 0.001), confidence=0.99),
        document["plan"],
    )
    assert found["n"] == expected.n
    assert found["pilot"]["confidence"] == 0.99
    assert [each["half_width"] for each in found["prices"]] == [0.03, 0.001]
    assert [each["n"] for each in found["prices"]] == [each.n for each in expected.prices]


def test_bad_wishes_and_a_run_that_measured_nothing_have_exit_codes(cli, pilot, keep):
    for words in (("--change", "1%", "--margin", "2%"), ("--power", "100%"), ("--metric", "speed")):
        assert cli("plan", pilot[0], *words).exit_code == 2
    assert cli("plan", keep(br.Session(seed=1).result())).exit_code == 4
