"""Two functions or commands in turn."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest
from signalled import until

FUNCTIONS = """
def quick():
    return sum(range(100))

def slow():
    return sum(range(1000))
"""
TWO = ("ab_job:quick", "ab_job:slow")
REVISIONS = ("ab", "--rev", "old", "--rev", "new")
# Ten times the work is worse; a busy machine starts too few processes to tell in the time.
WORSE_UNLESS_BUSY = {7, 3, 4}


@pytest.fixture
def job(module):
    """Write a module into the working directory."""
    return module("ab_job", FUNCTIONS)


@pytest.fixture
def repository(store, git):
    """Commit a module twice, the second time ten times as slow, and tag both."""
    git("init", "-q")
    for tag, steps in (("old", 100), ("new", 1000)):
        store.with_name("ab_job.py").write_text(f"def work():\n    return sum(range({steps}))\n")
        git("add", "ab_job.py")
        git("commit", "-qm", tag)
        git("tag", tag)
    return store.parent


@pytest.fixture
def trees(git):
    """Return what counts the worktrees of the repository."""
    return lambda: len(git("worktree", "list").splitlines())


def test_two_functions_are_compared_and_what_is_failed_on_can_be_chosen(cli, job):
    words = ("ab", "--budget", "60", "--target", "20%")
    assert cli(*words, *TWO).exit_code == 7
    assert cli(*words, "--fail-on", "never", *TWO).exit_code == 0
    same = ("--margin", "20%", "ab_job:quick", "ab_job:quick")
    assert cli(*words, "--fail-on", "worse", *same).exit_code == 0


def test_fresh_interpreters_take_turns_and_are_kept(cli, job, strict, kept):
    told = strict(cli("ab", "--fresh", "--budget", "3", "--json", *TWO).stdout)
    assert told["comparison"]["verdict"] in {"worse", "undecided"}
    ratio = told["comparison"]["ratio"]
    assert ratio is None or ratio["value"] > 2.0
    assert told["comparison"]["paired"]
    assert told["baseline"] == "ab_job:quick"
    sides = zip(told["run_ids"], TWO, strict=True)
    assert {(record.run_id, record.name) for record in kept()} == {*sides}
    assert "ab_job" not in sys.modules


def test_two_commands_are_compared_and_nothing_is_kept_on_request(cli, store):
    result = cli("ab", "--budget", "3", "--no-store", "true", "sleep 0.1")
    assert result.exit_code in WORSE_UNLESS_BUSY
    assert not store.exists()


def test_two_revisions_are_compared_and_nothing_is_left(cli, repository, trees):
    (repository / "untracked.txt").write_text("mine")
    result = cli(*REVISIONS, "--budget", "3", "ab_job:work")
    assert result.exit_code in WORSE_UNLESS_BUSY
    assert "uncommitted" not in result.stderr
    assert trees() == 1
    assert (repository / "untracked.txt").read_text() == "mine"
    assert "range(1000)" in (repository / "ab_job.py").read_text()


def test_revisions_are_built_first_and_changes_that_are_not_committed_are_told(
    cli, repository, trees
):
    (repository / "ab_job.py").write_text("def work():\n    pass\n")
    words = (*REVISIONS, "--budget", "1", "--build")
    built = cli(*words, "touch built", "ab_job:work")
    assert built.exit_code in {0, *WORSE_UNLESS_BUSY}  # it has a second
    assert "uncommitted" in built.stderr
    assert not (repository / "built").exists()
    failed = cli(*words, "ls nowhere", "ab_job:work")
    assert failed.exit_code == 5
    assert "nowhere" in failed.stderr
    assert trees() == 1


def test_only_folders_that_no_living_process_holds_are_removed(
    cli, repository, tmp_path, monkeypatch
):
    """The number and the start of a process tell nothing: another system has its own."""
    folders = [held, _] = [tmp_path / "benchrigor-held", tmp_path / "benchrigor-left"]
    for folder in folders:
        folder.mkdir()
        (folder / "owner").write_text("1 0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (held / "owner").open() as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        assert cli(*REVISIONS, "--build", "ls nowhere", "ab_job:work").exit_code == 5
    assert [*tmp_path.glob("benchrigor-*")] == [held]


def test_revisions_need_a_repository_that_has_them_and_the_module(
    cli, repository, trees, monkeypatch
):
    assert cli(*REVISIONS, "--budget", "1", "os:getcwd").exit_code == 2
    assert trees() == 1
    unknown = cli("ab", "--rev", "old", "--rev", "nowhere", "ab_job:work")
    assert unknown.exit_code == 2
    assert "nowhere" in unknown.stderr
    monkeypatch.setenv("GIT_DIR", str(repository / "no-such"))
    assert cli(*REVISIONS, "ab_job:work").exit_code == 2


def environment(folder: Path, steps: int) -> Path:
    """Make a virtual environment without benchrigor, in which a library does so much work."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = Path(subprocess.check_output([python, "-c", asked], text=True).strip())
    (place / "ab_library.py").write_text(f"def work():\n    return sum(range({steps}))\n")
    missing = subprocess.run([python, "-I", "-c", "import benchrigor"], capture_output=True)  # noqa: PLW1510  # it fails
    assert missing.returncode
    return python


def test_a_function_is_compared_in_two_environments_without_benchrigor(cli, tmp_path, strict):
    old, new = environment(tmp_path / "old", 100), environment(tmp_path / "new", 1000)
    words = ("--python", str(old), "--python", str(new), "--budget", "3", "--json")
    result = cli("ab", *words, "ab_library:work")
    assert result.exit_code in WORSE_UNLESS_BUSY, result.output
    found = strict(result.stdout)["comparison"]
    if found["ratio"] is not None:
        assert found["ratio"]["value"] > 3.0


@pytest.mark.parametrize("how", [(), ("--fresh",)])
def test_both_runs_are_compared_again_as_they_were_taken(cli, job, strict, kept, how):
    words = ("--budget", "2", "--seed", "1", "--json", *TWO)
    first = strict(cli("ab", *how, *words).stdout)["comparison"]
    ids = [each.run_id for each in sorted(kept(), key=lambda each: each.name)]
    again = strict(cli("compare", "--paired", "--json", *ids).stdout)["comparison"]
    assert again["p_value"] == first["p_value"]
    assert again["verdict"] == first["verdict"]
    assert cli("report", *ids, "-o", "page.html").exit_code == 0
    assert " pairs</" in Path("page.html").read_text()
    for each in ids:
        assert cli("show", each).exit_code in {0, 4}  # no number, on a busy machine
        assert cli("explain", each).exit_code in {0, 4}
    cli("ab", *how, *words, "--budget", "0.5")
    other = next(each.run_id for each in kept() if each.run_id not in ids)
    assert cli("compare", "--paired", ids[0], other).exit_code == 2


@pytest.mark.parametrize("how", [(), ("--fresh",)])
def test_an_interrupt_ends_it_after_the_round_with_what_is_known(started, job, strict, kept, how):
    # A generous budget and a width out of reach: only the signal ends it in time.
    process = started("ab", "--budget", "300", "--margin", "0.0001%", "--json", *how, *TWO)
    store = Path(os.environ["BENCHRIGOR_STORE"])
    until(lambda: store.exists() and any(record.rounds for record in kept()))
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=120)
    told = strict(stdout)
    assert told["comparison"]["reason"] == "stop-requested"
    verdicts = {7: {"worse"}, 0: {"undecided"}, 4: {"undecided"}}
    assert told["comparison"]["verdict"] in verdicts[process.returncode]
    assert len(kept()) == 2
