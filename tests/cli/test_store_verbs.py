"""list, show, explain and resume."""

import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchrigor.model import Round
from benchrigor.session import Session
from benchrigor.storage import Journal

NAMES = ["readings.csv", "rounds.csv", "summary.csv"]


LIMITS = ("--max-rounds", "10", "--target", "0.0001%", "--disturbed", "keep")


@pytest.fixture
def run_id(cli, store):
    """A run that spent its ten rounds, with a number: ten may move in one direction by chance."""
    for _ in range(3):
        store.unlink(missing_ok=True)
        code = cli("run", *LIMITS, "true").exit_code
        if code == 3:
            break
    assert code == 3
    return Journal(store).runs()[0]["run_id"]


@pytest.mark.parametrize("words", [("list",), ("show", "3f"), ("explain", "3f"), ("resume", "3f")])
def test_reading_from_a_store_that_is_not_there_says_so_and_makes_none(cli, store, words):
    result = cli(*words)
    assert result.exit_code == 6
    assert not store.exists()


@pytest.mark.slow
def test_list_shows_runs_newest_first(cli, run_id, store):
    cli("run", "--max-rounds", "1", "--name", "a name " * 40 + "to the end", "true")
    lines = cli("list").stdout.splitlines()
    assert lines[0].startswith(Journal(store).runs()[0]["run_id"])
    assert max(map(len, lines)) <= 80
    *first, second, result = lines
    assert first[-1].endswith("1 round")
    assert second.split()[0] == run_id
    assert second.endswith("  true")
    assert re.search(r"(±[\d.,]+ %|\]) · .* 10 rounds$", result)


def test_list_shows_the_numbers_of_older_runs_too(cli, store, monkeypatch):
    store.touch()
    entry = {
        "run_id": "3f2a",
        "started_at": "2027-01-02T03:04:05+00:00",
        "name": "f",
        "commit": None,
        "reason": "satisfied",
        "rounds": 12,
    }

    def listed(headline):
        monkeypatch.setattr(Journal, "runs", lambda *_: [{**entry, "headline": headline}])
        return cli("list").stdout.splitlines()[1].strip()

    old = "f: 26.1 ms [25.9, 26.3] 95% · at full pace 24.1 ms [23.1, 25.1] · n=9 · satisfied"
    assert listed(old).split(" · ")[::2] == ["26.1 ms [25.9, 26.3] 95%", "12 rounds"]
    none = "f: no number: too few · satisfied"
    assert listed(none).startswith("no number ·")
    new = "f  26.1 ms ±3.1 %  (busy machine: 30 ms just now)"
    assert listed(new).split(" · ")[0] == "26.1 ms ±3.1 %"


@pytest.mark.slow
def test_list_finds_by_name(cli, run_id, strict):
    assert [run["run_id"] for run in strict(cli("list", "tru", "--json").stdout)] == [run_id]
    assert strict(cli("list", "nonsense", "--json").stdout) == []
    assert "match 'nonsense'" in cli("list", "nonsense").stdout


@pytest.mark.slow
def test_show_prints_the_report_again(cli, run_id):
    result = cli("show", run_id[:5])
    assert result.exit_code == 0
    assert result.stdout.startswith("true  ")
    whole = cli("show", run_id[:5], "--details").stdout
    assert whole.startswith("true\n────\n")


def test_show_prints_the_whole_record_as_json(cli, run_id, strict):
    document = strict(cli("show", run_id, "--json").stdout)
    assert document["schema"] >= 1
    assert all(each["readings"]["time"] > 0 for each in document["rounds"])


def test_explain_prints_the_analysis_as_json(cli, run_id, store, strict):
    document = strict(cli("explain", run_id, "--json").stdout)
    assert document["schema"] >= 1
    assert document["run_id"] == run_id
    estimate = Journal(store).load(run_id).analyses[0].estimate
    assert estimate is not None
    assert document["analysis"]["estimate"]["n"] == estimate.n


@pytest.mark.slow
def test_resume_goes_on_with_new_limits(cli, run_id, strict):
    before = strict(cli("show", run_id, "--json").stdout)["rounds"]
    result = cli("resume", run_id[:4], "--max-rounds", "12", "--json")
    assert result.exit_code in {3, 4}  # on a busy machine there may be no number
    assert strict(result.stdout)["run_id"] == run_id
    after = strict(cli("show", run_id, "--json").stdout)["rounds"]
    assert after[:10] == before
    assert [each["plan"]["index"] for each in after] == list(range(12))


@pytest.mark.slow
def test_resume_says_that_a_satisfied_run_is_finished(cli, store):
    ran = cli("run", "--target", "1000%", "--budget", "60", "--disturbed", "keep", "true")
    assert ran.exit_code == 0, ran.stdout
    result = cli("resume", Journal(store).runs()[0]["run_id"])
    assert result.exit_code == 2
    assert "is finished" in result.stderr


@pytest.mark.slow
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


def test_a_run_is_exported_and_its_numbers_are_the_same_when_read_again(
    cli, run_id, store, tmp_path
):
    record = Journal(store).load(run_id)
    result = cli("export", run_id[:6], "-o", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "new" / "folder"
    assert result.stdout.split() == [str(folder / name) for name in NAMES]
    assert sorted(each.name for each in folder.iterdir()) == sorted(NAMES)
    with (folder / "readings.csv").open() as file:
        values = [float(row["value"]) for row in csv.DictReader(file)]
    assert values == record.readings().tolist()
    with (folder / "summary.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["low"]) == record.estimate().low


def test_files_that_are_there_are_replaced_only_on_request(cli, run_id, tmp_path, strict):
    (tmp_path / "rounds.csv").write_text("mine")
    refused = cli("export", run_id, "-o", tmp_path)
    assert refused.exit_code == 2
    assert "rounds.csv" in refused.stderr
    assert (tmp_path / "rounds.csv").read_text() == "mine"
    assert not (tmp_path / "readings.csv").exists()
    result = cli("export", run_id, "-o", tmp_path, "--force", "--json")
    assert strict(result.stdout)["files"] == [str(tmp_path / name) for name in NAMES]
    assert len((tmp_path / "rounds.csv").read_text().splitlines()) == 11


def test_a_saved_record_is_exported_and_another_file_is_not(cli, run_id, store, tmp_path):
    Journal(store).load(run_id).save(tmp_path / "record.json")
    assert cli("export", tmp_path / "record.json", "-o", tmp_path / "out").exit_code == 0
    refused = cli("export", tmp_path / "out" / "rounds.csv", "-o", tmp_path / "more")
    assert refused.exit_code == 2
    assert cli("export", run_id, "-o", tmp_path / "record.json").exit_code == 2


@pytest.mark.slow
def test_run_and_resume_append_their_decisions_to_a_log(cli, store, tmp_path):
    log = tmp_path / "session.log"
    limits = ("--target", "0.0001%", "--max-rounds")
    missed = {3, 4}  # of few runs on a busy machine there may be no number
    assert cli("run", *limits, "3", "--log", log, "true").exit_code in missed
    (run,) = Journal(store).runs()
    assert cli("resume", run["run_id"], "--max-rounds", "5", "--log", log).exit_code in missed
    assert cli("run", *limits, "3", "true").exit_code in missed
    lines = log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", line) for line in lines)
    assert [re.split(":|  ", line[24:])[0] for line in lines] == [
        *("true", "round 0", "round 1", "round 2", "true"),
        *("true", "round 3", "round 4", "true"),
    ]
    assert "resumed after" in lines[5]
    assert "stop:" in lines[7]


def test_a_log_that_cannot_be_written_is_told_before_anything_is_measured(cli, store, tmp_path):
    result = cli("run", "--log", tmp_path / "none" / "session.log", "true")
    assert result.exit_code == 2
    assert Journal(store).runs() == [] if store.exists() else True


@pytest.mark.slow
def test_without_an_id_it_is_the_last_run(cli, store):
    assert cli("show").exit_code == 6
    for name in ("first", "last"):
        cli("run", "--name", name, "--max-rounds", "2", "platform:node")
    newest = Journal(store).runs()[0]["run_id"]
    assert json.loads(cli("show", "--json").stdout)["run_id"] == newest
    assert json.loads(cli("explain", "--json").stdout)["run_id"] == newest
    assert json.loads(cli("export", "-o", "csv", "--json").stdout)["run_id"] == newest


@pytest.mark.slow
def test_a_secret_of_a_command_is_neither_stored_nor_shown_and_bars_resume(cli, store):
    secret = "hunter2"  # noqa: S105  # of nobody
    words = ("sh", "-c", "true; exit $1", "sh", "0", f"--password={secret}")
    header = f"Authorization: Bearer {secret}"
    done = cli("run", *LIMITS, *words[:5], "-H", header)
    again = cli("run", "--max-rounds", "1", *words)
    failed = cli("run", "--max-rounds", "1", "false", "--token", secret)
    newest = Journal(store).runs()[0]["run_id"]
    resumed = cli("resume", newest)
    shown = [cli(verb, newest) for verb in ("show", "explain", "list")]
    for result in (done, again, failed, resumed, *shown):
        assert secret not in result.output
    for path in store.parent.iterdir():
        assert secret.encode() not in path.read_bytes()
    assert "--token __hidden__" in failed.stderr
    assert resumed.exit_code == 2
    assert "no secrets" in resumed.stderr


def test_names_and_arguments_that_are_not_utf_8_are_stored_escaped(cli, store):
    subject = {"argv": ["true", "a\udcff"]}
    session = Session(name="n\udcff", subject=subject, store=store)
    session.tell(Round(plan=session.ask(), elapsed_ns=1, unit_readings={"time": [1.0]}))
    (run,) = Journal(store).runs("n\udcff")
    assert run["name"] == "n\\udcff"
    assert Journal(store).load(run["run_id"]).subject == subject
    assert cli("list", "n\udcff").stdout.splitlines()[0].endswith("  n\\udcff")


@pytest.mark.slow
def test_list_marks_a_damaged_run_and_shows_the_others(cli, run_id, store):
    cli("run", "--max-rounds", "1", "true")
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER run_UPDATE")
        statement = "UPDATE run SET started_at = 'soon' WHERE run_id = ?"
        connection.execute(statement, (run_id,))
    lines = cli("list").stdout.splitlines()
    assert lines[2].startswith(run_id)
    assert "damaged" in lines[3]
    assert lines[1].endswith("1 round")
    result = cli("show", run_id)
    assert result.exit_code == 6
    assert f"run {run_id} is damaged" in result.stderr


@pytest.mark.slow
def test_list_shows_the_revision_that_was_measured(cli, store, tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-c", "user.email=a@b", "-c", "user.name=a", *words], check=True)

    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    git("init", "-q")
    for number in (1, 2):
        Path("mod.py").write_text(f"def work(): return sum(range({number}000))\n")
        git("add", "mod.py")
        git("commit", "-qm", str(number))
    cli("ab", "--rev", "HEAD~1", "--rev", "HEAD", "mod:work", "--budget", "1")
    shown = [line.split()[-1] for line in cli("list").stdout.splitlines()[::2]]
    log = subprocess.run(["git", "log", "--format=%H"], capture_output=True, text=True, check=True)
    assert {*shown} == {commit[:7] for commit in log.stdout.split()}
    Path("mod.py").write_text("def work(): pass\n")
    cli("run", "--max-rounds", "1", "true")
    assert cli("list").stdout.splitlines()[0].endswith(f"true  {log.stdout[:7]}+")


@pytest.mark.slow
def test_an_export_replaces_all_files_or_none(cli, run_id, tmp_path):
    folder = tmp_path / "tables"
    cli("export", run_id, "-o", folder)
    (folder / "rounds.csv").unlink()
    (folder / "rounds.csv").mkdir()
    (folder / "readings.csv").write_text("mine")
    ran = cli("export", run_id, "-o", folder, "--force")
    assert ran.exit_code == 2
    assert "rounds.csv" in ran.stderr
    assert (folder / "readings.csv").read_text() == "mine"
    assert len(list(folder.iterdir())) == 3


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="only where devices are files")
@pytest.mark.parametrize("verb", ["analyze", "changes", "compare", "rate"])
def test_devices_that_never_end_are_not_read(cli, verb):
    ran = cli(verb, "/dev/zero")
    assert ran.exit_code in {2, 6}
    assert "Traceback" not in ran.output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
def test_a_log_that_cannot_be_written_does_not_end_the_run(cli):
    ran = cli("run", "--max-rounds", "3", "--no-store", "--log", "/dev/full", "--", "true")
    assert ran.exit_code in {0, 3, 4}
    assert "the log" in ran.stderr
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    "words", [["list"], ["show", "3f"], ["explain", "3f"], ["export", "3f", "o"]]
)
def test_an_empty_file_is_not_made_a_store_by_reading(cli, store, words):
    store.touch()
    cli(*words)
    assert store.read_bytes() == b""
    assert [path.name for path in store.parent.glob("*.sqlite*")] == [store.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["plain.sqlite", "two words.sqlite", "it's \x1b[2J\n\udcff\\.sqlite"]
)
def test_the_command_line_of_a_hint_works_when_it_is_pasted(cli, store, name):
    path = store.with_name(name)
    result = cli("run", "--max-rounds", "2", "--store", path, "true")
    command = result.stdout.partition("kept as ")[2].partition(":")[2].strip()
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], stdout=subprocess.PIPE, check=True
    ).stdout.split(b"\0")
    assert words[-2] == os.fsencode(path)


@pytest.mark.parametrize(
    "words",
    [
        ("export", "-o", "-"),
        ("run", "--store", "-", "--", "true"),
        ("run", "--log", "-", "--", "true"),
        ("commands", "true", "--output", "-"),
    ],
)
def test_standard_output_is_no_file_to_write(cli, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    result = cli(*words)
    assert result.exit_code == 2
    assert not [*tmp_path.iterdir()]
