import pytest

import benchrigor as br
from benchrigor.session import Session
from benchrigor.session.sample_size import plan
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SyntheticWorkload


@pytest.fixture
def run_id(store):
    """A pilot that stopped short of its target."""
    clock = FakeClock()
    options = br.Options(target=0.001, budget_readings=600)
    session = Session(options, name="synthetic", seed=1, clock=clock, store=store)
    session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    return Journal(store).runs()[0]["run_id"]


def test_a_short_run_plans_a_long_one(cli, store, run_id):
    result = cli("plan", run_id[:4], "--change", "2%", "--margin", "1%", "--power", "90%")
    assert result.exit_code == 0, result.stderr
    expected = plan(Journal(store).load(run_id), change=0.02, margin=0.01, power=0.9)
    shown = str(expected)
    assert result.stdout == shown + "\n"
    assert "half-width 0.5%" in shown
    assert shown.count("[this-process-only]") == 1
    assert "not-converged" not in shown
    assert max(map(len, result.stdout.splitlines())) <= 79


def test_widths_confidence_and_metric_are_passed_on(cli, store, run_id, strict):
    words = ("--half-width", "3%", "--half-width", "0.001", "--confidence", "99%")
    result = cli("plan", run_id, *words, "--metric", "time", "--json")
    assert result.exit_code == 0, result.stderr
    document = strict(result.stdout)
    assert document["schema"] >= 1
    assert document["run_id"] == run_id
    expected = plan(Journal(store).load(run_id), half_widths=(0.03, 0.001), confidence=0.99)
    found = document["plan"]
    assert found["n"] == expected.n
    assert found["pilot"]["confidence"] == 0.99
    assert [each["half_width"] for each in found["prices"]] == [0.03, 0.001]
    assert [each["n"] for each in found["prices"]] == [each.n for each in expected.prices]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--change", "1%", "--margin", "2%"), "expected more than the margin"),
        (("--power", "100%"), "power is 1.0"),
        (("--change", "much"), "'much' is no share"),
        (("--metric", "speed"), "expected one of 'time'"),
    ],
)
def test_bad_wishes_are_named(cli, run_id, words, message):
    result = cli("plan", run_id, *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_run_that_measured_nothing_is_nothing_to_plan_from(cli, store):
    session = Session(name="mine", store=store, seed=1)
    session.run(session.request_stop)
    result = cli("plan", Journal(store).runs()[0]["run_id"])
    assert result.exit_code == 4
    assert "benchrigor: " in result.stderr


def test_without_a_store_it_says_so_and_makes_none(cli, store):
    assert cli("plan", "3f").exit_code == 6
    assert not store.exists()
