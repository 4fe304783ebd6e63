"""list, show, explain and resume."""

import sys

import pytest

from benchrigor.session import Session
from benchrigor.storage import Journal


@pytest.fixture
def run_id(cli, store):
    """A run that spent its ten rounds."""
    assert cli("run", "--max-rounds", "10", "--target", "0.0001%", "true").exit_code == 3
    return Journal(store).runs()[0]["run_id"]


@pytest.mark.parametrize("words", [("list",), ("show", "3f"), ("explain", "3f"), ("resume", "3f")])
def test_reading_from_a_store_that_is_not_there_says_so_and_makes_none(cli, store, words):
    result = cli(*words)
    assert result.exit_code == 6
    assert f"there is no store at {store}" in result.stderr
    assert not store.exists()


@pytest.mark.parametrize("verb", ["show", "explain", "resume"])
def test_an_unknown_run_is_named(cli, run_id, verb):
    result = cli(verb, "nonsense")
    assert result.exit_code == 6
    assert "no run 'nonsense'" in result.stderr


def test_list_shows_runs_newest_first(cli, run_id, store):
    cli("run", "--max-rounds", "1", "--name", "a name " * 40, "true")
    lines = cli("list").stdout.splitlines()
    assert lines[0].startswith(Journal(store).runs()[0]["run_id"])
    assert lines[0].rstrip().endswith("a name")
    assert lines[1].strip() == "no number · not converged: round limit reached · 1 round"
    assert lines[2].split()[0] == run_id
    assert lines[2].endswith("  true")
    assert lines[3].endswith("95% · not converged: round limit reached · 10 rounds")


def test_list_finds_by_name(cli, run_id, strict):
    assert [run["run_id"] for run in strict(cli("list", "tru", "--json").stdout)] == [run_id]
    assert strict(cli("list", "nonsense", "--json").stdout) == []
    assert "match 'nonsense'" in cli("list", "nonsense").stdout


def test_show_prints_the_report_again(cli, run_id):
    result = cli("show", run_id[:5])
    assert result.exit_code == 0
    assert result.stdout.startswith("true\n────\n")
    assert "not converged: round limit reached" in result.stdout


def test_show_prints_the_whole_record_as_json(cli, run_id, strict):
    document = strict(cli("show", run_id, "--json").stdout)
    assert document["schema"] >= 1
    assert all(each["readings"]["time"] > 0 for each in document["rounds"])


def test_explain_retraces_the_number(cli, run_id):
    result = cli("explain", run_id, "--metric", "time")
    assert result.exit_code == 0
    assert result.stdout.startswith("How the time of true came about\n")


def test_explain_prints_the_analysis_as_json(cli, run_id, strict):
    document = strict(cli("explain", run_id, "--json").stdout)
    assert document["schema"] >= 1
    assert document["run_id"] == run_id
    assert document["analysis"]["estimate"]["n"] == 10


def test_explain_names_the_metrics_that_there_are(cli, run_id):
    result = cli("explain", run_id, "--metric", "speed")
    assert result.exit_code == 2
    assert "expected one of 'time'" in result.stderr


def test_resume_goes_on_with_new_limits(cli, run_id, strict):
    before = strict(cli("show", run_id, "--json").stdout)["rounds"]
    result = cli("resume", run_id[:4], "--max-rounds", "12", "--json")
    assert result.exit_code == 3
    assert strict(result.stdout)["run_id"] == run_id
    after = strict(cli("show", run_id, "--json").stdout)["rounds"]
    assert after[:10] == before
    assert [each["plan"]["index"] for each in after] == list(range(12))


def test_resume_says_when_nothing_is_left_to_spend(cli, run_id):
    result = cli("resume", run_id)
    assert result.exit_code == 2
    assert "round limit reached" in result.stderr
    assert "--budget" in result.stderr


def test_resume_says_that_a_satisfied_run_is_finished(cli, store):
    cli("run", "--target", "1000%", "true")
    result = cli("resume", Journal(store).runs()[0]["run_id"])
    assert result.exit_code == 2
    assert "is finished" in result.stderr


def test_resume_finds_a_function_where_the_run_was_started(cli, store, tmp_path, monkeypatch):
    (tmp_path / "resumable.py").write_text("def f(): sum(range(50))")
    monkeypatch.delitem(sys.modules, "resumable", raising=False)
    assert cli("run", "--max-rounds", "1", "--target", "0.001%", "resumable:f").exit_code in {3, 4}
    del sys.modules["resumable"]
    sys.path.remove(str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = cli("resume", Journal(store).runs()[0]["run_id"], "--max-rounds", "2")
    assert result.exit_code in {3, 4}, result.stderr


def test_resume_leaves_runs_of_programs_to_their_programs(cli, store):
    session = Session(name="mine", store=store, seed=1)
    session.run(session.request_stop)
    result = cli("resume", Journal(store).runs()[0]["run_id"])
    assert result.exit_code == 2
    assert "Session.resume" in result.stderr
