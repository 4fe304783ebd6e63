"""What is said of the pace of commands that were stored: one story in each place."""

import re
from dataclasses import replace

import pytest
from simulated.paced_commands import run_of

from benchrigor.storage import Journal


@pytest.fixture
def run_ids(store):
    """Return a run on a machine that is hardly busy, and one where the command waits for long."""
    found = []
    with Journal(store) as journal:
        for slower, rest_s in ((1.05, 0.0001), (1.3, 0.05)):
            record = run_of(slower=slower, rest_s=rest_s, seed=2)
            found.append(journal.begin(record))
            for finished in record.rounds:
                journal.append(found[-1], finished)
            journal.finish(found[-1], record)
    return found


def words(text):
    return " ".join(text.split())


@pytest.mark.slow
def test_how_the_time_of_a_command_came_about_is_told_of_the_start_of_the_interpreter(cli, run_ids):
    result = cli("explain", run_ids[1])
    assert result.exit_code == 0
    told = words(result.stdout)
    assert "10 ms" in told
    assert "byte code" not in told


@pytest.mark.slow
def test_each_place_tells_the_pace_that_the_figures_have(cli, run_ids, strict):
    shown = words(cli("show", run_ids[1], "--details").stdout)
    analysis = strict(cli("show", run_ids[1], "--json").stdout)["analyses"][0]
    share = analysis["at_full_pace"]["value"] / analysis["estimate"]["value"]
    assert 0.2 < share < 0.4
    said = f"the command ran at {100 * share:.0f}% of its full speed, processors at 7"
    assert said in shown
    assert said in words(cli("explain", run_ids[1]).stdout)
    assert f"and {100 * share:.1f}% of it" in words(cli("compare", *run_ids, "--details").stdout)


@pytest.mark.slow
def test_times_that_are_compared_at_full_speed_are_called_so(cli, run_ids):
    shown = words(cli("compare", *run_ids, "--details").stdout)
    assert shown.count("full speed, ") == 2


@pytest.mark.slow
def test_a_busy_and_an_idle_machine_give_no_difference(cli, run_ids, strict):
    comparison = strict(cli("compare", *run_ids, "--json").stdout)["comparison"]
    assert comparison["verdict"] in ("undecided", "equivalent")
    assert comparison["ratio"]["low"] <= 1.0 <= comparison["ratio"]["high"]


@pytest.mark.slow
def test_stored_commands_are_exported(cli, run_ids, tmp_path):
    assert cli("export", run_ids[0], "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "summary.csv").read_text().count("time") >= 1


@pytest.mark.slow
def test_each_command_of_a_ranking_has_its_time_and_in_detail_that_at_full_pace(cli, monkeypatch):
    """Also that of a command whose time is as good as it could be."""
    records = {
        name: replace(run_of(slower=slower, rest_s=0.0, seed=2), name=name)
        for name, slower in (("true 1", 1.0), ("true 2", 1.3))
    }
    driven = "benchrigor.cli.commands_verb.driven_in_turn"
    monkeypatch.setattr(driven, lambda *_, **__: (records, None))
    monkeypatch.setattr("benchrigor.cli.commands_verb._CPU", ())
    asked = ("commands", "true {n}", "-L", "n", "1,2", "--no-store")
    assert len(re.findall(r"\. true \d [\d.]+ ms ", words(cli(*asked).stdout))) == 2
    shown = words(cli(*asked, "--details").stdout)
    assert len(re.findall(r" headline [\d.]+ ms \[", shown)) == 2


@pytest.mark.slow
def test_the_answer_of_a_baseline_comes_first(cli, monkeypatch):
    """With the verdict of the family: one of several commands is not slower by luck."""
    records = {
        f"true {n}": replace(run_of(slower=slower, rest_s=0.0, seed=2), name=f"true {n}")
        for n, slower in ((1, 1.0), (2, 1.3))
    }
    driven = "benchrigor.cli.commands_verb.driven_in_turn"
    monkeypatch.setattr(driven, lambda *_, **__: (records, None))
    monkeypatch.setattr("benchrigor.cli.commands_verb._CPU", ())
    asked = ("commands", "true {n}", "-L", "n", "1,2", "--no-store", "--baseline", "1")
    shown = cli(*asked).stdout
    first = shown.splitlines()[0]
    assert first.startswith("true 2 takes 29.7")
    assert shown.index(first) < shown.index("change from")
