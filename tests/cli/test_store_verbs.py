"""list, show, explain and resume."""

import csv
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


# All readings: ten on a busy machine may move in one direction, or all wait.
LIMITS = ("--max-rounds", "10", "--target", "0.0001%", "--disturbed", "keep", "--trim", "none")


@pytest.fixture
def run_id(cli, store, kept):
    """A run that spent its ten rounds, with a number: eight tries, should ten be too unlike."""
    for _ in range(8):
        store.unlink(missing_ok=True)
        code = cli("run", *LIMITS, "true").exit_code
        if code == 3:
            break
    assert code == 3
    return kept()[0].run_id


@pytest.mark.parametrize(
    "words",
    [
        *(("list",), ("show", "3f"), ("explain", "3f"), ("resume", "3f"), ("plan", "3f")),
        *(("track-record",), ("show",), ("export", "3f", "-o", "o")),
    ],
)
def test_reading_from_no_store_makes_none_also_of_an_empty_file(cli, store, words):
    assert cli(*words).exit_code == 6
    assert not store.exists()
    store.touch()
    cli(*words)
    assert store.read_bytes() == b""
    assert [path.name for path in store.parent.glob("*.sqlite*")] == [store.name]


def test_list_shows_runs_newest_first_and_finds_them_by_name(cli, run_id, kept, told):
    cli("run", "--max-rounds", "1", "--name", "a name " * 40 + "to the end", "true")
    lines = cli("list").stdout.splitlines()
    assert lines[0].startswith(kept()[0].run_id)
    assert max(map(len, lines)) <= 80
    *first, second, result = lines
    assert first[-1].endswith("1 round")
    assert second.split()[0] == run_id
    assert second.endswith("  true")
    assert re.search(r"(±[\d.,]+ %|\]) · .* 10 rounds$", result)
    assert [run["run_id"] for run in told("list", "tru")] == [run_id]
    assert told("list", "nonsense") == []


def test_list_shows_the_numbers_of_older_runs_too(cli, store, monkeypatch):
    entry = {"run_id": "3f2a", "started_at": "2027-01-02T03:04:05+00:00", "name": "f"}
    entry |= {"commit": None, "reason": "satisfied", "rounds": 12}
    store.touch()
    for headline, shown in (
        (
            "f: 26.1 ms [25.9, 26.3] 95% · at full pace 24.1 ms [23.1, 25.1] · n=9 · satisfied",
            "26.1 ms [25.9, 26.3] 95%",
        ),
        ("f: no number: too few · satisfied", "no number"),
        ("f  26.1 ms ±3.1 %  (busy machine: 30 ms as measured)", "26.1 ms ±3.1 %"),
    ):
        listed = [{**entry, "headline": headline}]
        monkeypatch.setattr(Journal, "runs", lambda *_, listed=listed: listed)
        assert cli("list").stdout.splitlines()[1].strip().split(" · ")[0] == shown


def test_show_prints_the_whole_record_as_json_and_explain_its_analysis(told, run_id, kept):
    document = told("show", run_id[:5])
    assert document["schema"] >= 1
    assert all(each["readings"]["time"] > 0 for each in document["rounds"])
    explained = told("explain", run_id)
    assert (explained["schema"], explained["run_id"]) == (document["schema"], run_id)
    assert explained["analysis"]["estimate"]["n"] == kept()[0].estimate().n


def test_resume_goes_on_with_new_limits(cli, run_id, told):
    before = told("show", run_id)["rounds"]
    assert told("resume", run_id[:4], "--max-rounds", "12")["run_id"] == run_id
    after = told("show", run_id)["rounds"]
    assert after[:10] == before
    assert [each["plan"]["index"] for each in after] == list(range(12))


def test_a_satisfied_run_is_finished_and_runs_of_programs_are_theirs(cli, store, kept):
    ran = cli("run", "--target", "1000%", "--budget", "60", "--disturbed", "keep", "true")
    assert ran.exit_code == 0, ran.stdout
    assert cli("resume", kept()[0].run_id).exit_code == 2
    session = Session(name="mine", store=store, seed=1)
    session.run(session.request_stop)
    assert cli("resume", kept()[0].run_id).exit_code == 2


def test_resume_finds_a_function_where_the_run_was_started(
    cli, module, kept, tmp_path, monkeypatch
):
    module("resumable", "def f(): sum(range(50))")
    assert cli("run", "--max-rounds", "1", "--target", "0.001%", "resumable:f").exit_code in {3, 4}
    sys.modules.pop("resumable", None)
    sys.path.remove(str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = cli("resume", kept()[0].run_id, "--max-rounds", "2")
    assert result.exit_code in {3, 4}, result.stderr


def test_a_run_is_exported_and_its_numbers_are_the_same_when_read_again(
    cli, run_id, kept, tmp_path
):
    (record,), folder = kept(), tmp_path / "new" / "folder"
    assert cli("export", run_id[:6], "-o", folder).exit_code == 0
    assert sorted(each.name for each in folder.iterdir()) == sorted(NAMES)
    tables = {name: [*csv.DictReader((folder / name).read_text().splitlines())] for name in NAMES}
    values = [float(row["value"]) for row in tables["readings.csv"]]
    assert values == record.readings().tolist()
    (row,) = tables["summary.csv"]
    assert float(row["low"]) == record.estimate().low


def test_files_that_are_there_are_replaced_only_on_request(cli, run_id, kept, tmp_path, told):
    (tmp_path / "rounds.csv").write_text("mine")
    assert cli("export", run_id, "-o", tmp_path).exit_code == 2
    assert (tmp_path / "rounds.csv").read_text() == "mine"
    assert not (tmp_path / "readings.csv").exists()
    found = told("export", run_id, "-o", tmp_path, "--force")
    assert found["files"] == [str(tmp_path / name) for name in NAMES]
    assert len((tmp_path / "rounds.csv").read_text().splitlines()) == 11
    kept()[0].save(tmp_path / "record.json")
    assert cli("export", tmp_path / "record.json", "-o", tmp_path / "out").exit_code == 0
    for words in (("out/rounds.csv", "-o", "more"), (run_id, "-o", "record.json")):
        assert cli("export", *words).exit_code == 2


def test_run_and_resume_append_their_decisions_to_a_log(cli, kept, tmp_path):
    log = tmp_path / "session.log"
    limits = ("--target", "0.0001%", "--max-rounds")
    missed = {3, 4}  # of few runs on a busy machine there may be no number
    assert cli("run", *limits, "3", "--log", log, "true").exit_code in missed
    resumed = cli("resume", kept()[0].run_id, "--max-rounds", "5", "--log", log)
    assert resumed.exit_code in missed
    assert cli("run", *limits, "3", "true").exit_code in missed
    lines = log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", line) for line in lines)
    assert [re.split(":|  ", line[24:])[0] for line in lines] == [
        *("true", "round 0", "round 1", "round 2", "true"),
        *("true", "round 3", "round 4", "true"),
    ]


def test_without_an_id_it_is_the_last_run(cli, kept, told):
    for name in ("first", "last"):
        cli("run", "--name", name, "--max-rounds", "2", "platform:node")
    newest = kept()[0].run_id
    for words in (("show",), ("explain",), ("export", "-o", "csv")):
        assert told(*words)["run_id"] == newest


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


def test_names_and_arguments_that_are_not_utf_8_are_stored_escaped(cli, store):
    subject = {"argv": ["true", "a\udcff"]}
    session = Session(name="n\udcff", subject=subject, store=store)
    session.tell(Round(plan=session.ask(), elapsed_ns=1, unit_readings={"time": [1.0]}))
    (run,) = Journal(store).runs("n\udcff")
    assert run["name"] == "n\\udcff"
    assert Journal(store).load(run["run_id"]).subject == subject
    assert cli("list", "n\udcff").stdout.splitlines()[0].endswith("  n\\udcff")


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


def test_list_shows_the_revision_that_was_measured(cli, git):
    git("init", "-q")
    for number in (1, 2):
        Path("mod.py").write_text(f"def work(): return sum(range({number}000))\n")
        git("add", "mod.py")
        git("commit", "-qm", str(number))
    cli("ab", "--rev", "HEAD~1", "--rev", "HEAD", "mod:work", "--budget", "1")
    shown = [line.split()[-1] for line in cli("list").stdout.splitlines()[::2]]
    log = git("log", "--format=%H")
    assert {*shown} == {commit[:7] for commit in log.split()}
    Path("mod.py").write_text("def work(): pass\n")
    cli("run", "--max-rounds", "1", "true")
    assert cli("list").stdout.splitlines()[0].endswith(f"true  {log[:7]}+")


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
        ("run", "--log", "none/session.log", "true"),
        ("commands", "true", "--output", "-"),
    ],
)
def test_what_is_no_file_to_write_is_told_before_anything_is_measured(cli, tmp_path, words):
    assert cli(*words).exit_code == 2
    assert not [*tmp_path.iterdir()]
