"""replay: what other rules would have said."""

import re

import numpy as np
import pytest

import benchrigor as br
from benchrigor.session import Session, replay
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SyntheticWorkload


@pytest.fixture
def run_id(store):
    """A run that went on when others would have stopped."""
    clock = FakeClock()
    options = br.Options(target=0.001, budget_readings=1200)
    session = Session(options, name="synthetic", seed=1, clock=clock, store=store)
    session.run(SyntheticWorkload(mean=0.001, cv=0.1, phi=0.5, seed=1, clock=clock))
    return Journal(store).runs()[0]["run_id"]


@pytest.fixture
def recording(tmp_path):
    times = np.random.default_rng(1).normal(0.01, 0.0005, 1000)
    path = tmp_path / "readings.csv"
    path.write_text("time,size\n" + "".join(f"{time:.6f},3\n" for time in times))
    return path


@pytest.mark.slow
def test_a_stored_run_is_replayed_by_the_beginning_of_its_id(cli, store, run_id):
    result = cli("replay", run_id[:5], "--target", "3%", "--confidence", "90%")
    assert result.exit_code == 0, result.stderr
    record = Journal(store).load(run_id)
    assert result.stdout == f"{replay(record, target=0.03, confidence=0.9)}\n"
    assert "90%" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 79


@pytest.mark.slow
def test_a_run_is_judged_by_its_own_wishes_unless_others_are_given(cli, run_id):
    assert "half-width wanted 0.1%" in cli("replay", run_id).stdout
    assert "half-width wanted 5%" in cli("replay", run_id, "--target", "5%").stdout


def test_a_file_is_replayed_in_its_unit_and_called_by_its_name(cli, recording):
    result = cli("replay", recording.name, "--column", "time", "--unit", "s")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "readings.csv: 1,000 readings replayed, half-width wanted 2%"
    assert lines[2].split()[:2] == ["benchrigor", "750"]
    assert "ms [" in lines[2]
    assert lines[2].endswith("yes")


def test_standard_input_is_replayed(cli, recording):
    result = cli("replay", "-", "--column", "time", input=recording.read_text())
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("standard input: 1,000 readings")


@pytest.mark.slow
def test_a_record_that_was_saved_is_a_run(cli, run_id, tmp_path):
    (tmp_path / "record.json").write_text(cli("show", run_id, "--json").stdout)
    assert cli("replay", "record.json").stdout == cli("replay", run_id).stdout


def test_it_speaks_json(cli, run_id, strict):
    document = strict(cli("replay", run_id, "--target", "3%", "--json").stdout)
    assert document["schema"] >= 1
    assert document["run_id"] == run_id
    found = document["replay"]
    assert (found["n"], found["counted_in"], found["target"]) == (1200, "reading", 0.03)
    ours, merged, plain = found["rulings"]
    assert [each["name"] for each in found["rulings"]] == ["benchrigor", "subsessions", "plain t"]
    assert plain["stopped"] < ours["stopped"]
    assert ours["estimate"]["low"] < ours["estimate"]["value"] < ours["estimate"]["high"]
    assert merged["final"]["n"] > 0
    assert ours["held"] in (True, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense",), "nonsense is neither a file nor the id of a stored run"),
        (("readings.csv",), "choose one with --column"),
        (("readings.csv", "--column", "time", "--target", "0"), "target is 0.0"),
        (("readings.csv", "--column", "time", "--confidence", "95"), "write 95% (or 0.95)"),
    ],
)
def test_what_cannot_be_worked_with_is_named(cli, recording, words, message):
    result = cli("replay", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_an_unknown_metric_is_named(cli, run_id):
    result = cli("replay", run_id, "--metric", "speed")
    assert result.exit_code == 2
    assert "'speed' is unknown" in result.stderr


def test_an_id_without_a_run_is_named(cli, run_id):
    unknown = "0" if run_id[0] != "0" else "1"
    result = cli("replay", unknown * 8)
    assert result.exit_code == 6
    assert "no run" in result.stderr


def test_without_a_store_it_says_so_and_makes_none(cli, store):
    assert cli("replay", "3f").exit_code == 6
    assert not store.exists()


def test_it_ends_with_4_when_no_rule_has_a_number(cli):
    result = cli("replay", "-", input="5\n")
    assert result.exit_code == 4
    assert "no number" in result.stdout


@pytest.mark.parametrize(
    ("n", "target", "why"),
    [
        (1000, "0.01%", r"the half-width is 0\.\S*% of the value, 0\.01% is wanted"),
        (300, "2%", "it first looks at 500"),
    ],
)
def test_it_says_why_a_rule_would_go_on(cli, tmp_path, n, target, why):
    times = np.random.default_rng(1).normal(0.01, 0.0005, n)
    (tmp_path / "readings.txt").write_text("\n".join(map(str, times)))
    result = cli("replay", "readings.txt", "--unit", "s", "--target", target)
    shown = " ".join(result.stdout.split())
    assert "benchrigor not yet" in shown
    assert re.search(f"! benchrigor: It would go on: {why}", shown)
