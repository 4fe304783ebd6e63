"""Two functions or commands in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from benchrigor.storage import Journal

FUNCTIONS = """
def quick():
    return sum(range(100))

def slow():
    return sum(range(1000))
"""
TWO = ("ab_job:quick", "ab_job:slow")
# Ten times the work is worse; a busy machine starts too few processes to tell in the time.
WORSE_UNLESS_BUSY = {7, 3, 4}


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Write a module into the working directory."""
    (tmp_path / "ab_job.py").write_text(FUNCTIONS)
    monkeypatch.delitem(sys.modules, "ab_job", raising=False)


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path):
    """Commit a module twice, the second time ten times as slow, and tag both."""
    git(tmp_path, "init", "-q")
    for tag, steps in (("old", 100), ("new", 1000)):
        (tmp_path / "ab_job.py").write_text(f"def work():\n    return sum(range({steps}))\n")
        git(tmp_path, "add", "ab_job.py")
        git(tmp_path, "commit", "-qm", tag)
        git(tmp_path, "tag", tag)
    return tmp_path


def trees(repository: Path) -> int:
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=repository, check=True, capture_output=True, text=True
    )
    return len(listed.stdout.splitlines())


@pytest.mark.slow
def test_two_functions_are_compared(cli, job):
    result = cli("ab", "--budget", "60", "--target", "20%", *TWO)
    assert result.exit_code == 7


@pytest.mark.slow
def test_what_is_failed_on_can_be_chosen(cli, job):
    words = ("ab", "--budget", "60", "--target", "20%", "--fail-on")
    assert cli(*words, "never", *TWO).exit_code == 0
    assert cli(*words, "worse", "--margin", "20%", "ab_job:quick", "ab_job:quick").exit_code == 0


@pytest.mark.slow
def test_fresh_interpreters_take_turns_and_are_kept(cli, job, strict):
    result = cli("ab", "--fresh", "--budget", "3", "--json", *TWO)
    told = strict(result.stdout)
    assert told["comparison"]["verdict"] in {"worse", "undecided"}
    ratio = told["comparison"]["ratio"]
    assert ratio is None or ratio["value"] > 2.0
    assert told["comparison"]["paired"]
    assert told["baseline"] == "ab_job:quick"
    listed = cli("list", "--json")
    subjects = [each["name"] for each in strict(listed.stdout)]
    assert sorted(subjects) == sorted(TWO)
    assert "ab_job" not in sys.modules


@pytest.mark.slow
def test_two_commands_are_compared(cli):
    result = cli("ab", "--budget", "3", "true", "sleep 0.1")
    assert result.exit_code in WORSE_UNLESS_BUSY


@pytest.mark.slow
def test_two_revisions_are_compared_and_nothing_is_left(cli, repository):
    (repository / "untracked.txt").write_text("mine")
    result = cli("ab", "--rev", "old", "--rev", "new", "--budget", "3", "ab_job:work")
    assert result.exit_code in WORSE_UNLESS_BUSY
    assert "margin of 1%" in result.stdout
    assert trees(repository) == 1
    assert (repository / "untracked.txt").read_text() == "mine"
    assert "range(1000)" in (repository / "ab_job.py").read_text()


@pytest.mark.slow
def test_revisions_are_built_first(cli, repository):
    words = ("--rev", "old", "--rev", "new", "--budget", "1")
    assert cli("ab", *words, "--build", "true", "ab_job:work").exit_code != 2
    failed = cli("ab", *words, "--build", "ls nowhere", "ab_job:work")
    assert failed.exit_code == 5
    assert "nowhere" in failed.stderr
    assert trees(repository) == 1


@pytest.mark.slow
def test_changes_that_are_not_committed_are_told(cli, repository):
    (repository / "ab_job.py").write_text("def work():\n    pass\n")
    result = cli("ab", "--rev", "old", "--rev", "new", "--budget", "1", "ab_job:work")
    assert "not committed" in result.stderr


def test_a_module_from_outside_of_the_revision_is_refused(cli, repository):
    result = cli("ab", "--rev", "old", "--rev", "new", "--budget", "1", "os:getcwd")
    assert result.exit_code == 2
    assert trees(repository) == 1


@pytest.mark.slow
def test_sigterm_leaves_no_worktree(repository):
    program = [sys.executable, "-m", "benchrigor", "ab", "--no-store", "--budget", "60"]
    environment = {**os.environ, "XDG_DATA_HOME": str(repository / "data")}
    process = subprocess.Popen(
        [*program, "--rev", "old", "--rev", "new", "ab_job:work"],
        cwd=repository,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 300.0
    while trees(repository) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=300.0)
    assert trees(repository) == 1


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


@pytest.mark.slow
def test_a_function_is_compared_in_two_environments_without_benchrigor(cli, tmp_path, strict):
    old, new = environment(tmp_path / "old", 100), environment(tmp_path / "new", 1000)
    words = ("--python", str(old), "--python", str(new), "--budget", "3", "--json")
    result = cli("ab", *words, "ab_library:work")
    assert result.exit_code in WORSE_UNLESS_BUSY, result.output
    found = strict(result.stdout)["comparison"]
    if found["ratio"] is not None:
        assert found["ratio"]["value"] > 3.0


def test_revisions_need_a_repository_that_has_them(cli, repository, tmp_path, monkeypatch):
    unknown = cli("ab", "--rev", "old", "--rev", "nowhere", "ab_job:work")
    assert unknown.exit_code == 2
    assert "nowhere" in unknown.stderr
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "no-such"))
    assert cli("ab", "--rev", "old", "--rev", "new", "ab_job:work").exit_code == 2


def kept_ids(cli, strict):
    """Return the ids of the runs that are kept, of the quick function first."""
    listed = strict(cli("list", "--json").stdout)
    return [each["run_id"] for each in sorted(listed, key=lambda each: each["name"])]


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--fresh",)])
def test_both_runs_are_compared_again_as_they_were_taken(cli, job, strict, how):
    words = ("--budget", "2", "--seed", "1", "--json", *TWO)
    first = strict(cli("ab", *how, *words).stdout)["comparison"]
    ids = kept_ids(cli, strict)
    result = cli("compare", "--paired", "--json", *ids)
    again = strict(result.stdout)["comparison"]
    assert again["p_value"] == first["p_value"]
    assert again["verdict"] == first["verdict"]
    for each in ids:
        assert cli("show", each).exit_code in {0, 4}  # no number, on a busy machine
        assert cli("explain", each).exit_code in {0, 4}
    cli("ab", *how, *words, "--budget", "0.5")
    other = next(each for each in kept_ids(cli, strict) if each not in ids)
    refused = cli("compare", "--paired", ids[0], other)
    assert refused.exit_code == 2


@pytest.mark.slow
def test_nothing_is_kept_on_request(cli, job, tmp_path):
    cli("ab", "--budget", "1", "--no-store", *TWO)
    assert not (tmp_path / "runs.sqlite").exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--fresh",)])
def test_an_interrupt_ends_it_after_the_round_with_what_is_known(cli, job, strict, how, tmp_path):
    # A generous budget and a width out of reach: only the signal ends it in time.
    words = ("--budget", "300", "--margin", "0.0001%", "--json", *how)
    process = subprocess.Popen(
        [sys.executable, "-m", "benchrigor", "ab", *words, "ab_job:quick", "ab_job:slow"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    store = tmp_path / "runs.sqlite"
    deadline = time.monotonic() + 300.0
    while not (store.exists() and any(run["rounds"] for run in Journal(store).runs())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert "stopping" in stderr
    told = strict(stdout)
    assert told["comparison"]["reason"] == "stop-requested"
    verdicts = {7: {"worse"}, 0: {"undecided"}, 4: {"undecided"}}
    assert told["comparison"]["verdict"] in verdicts[process.returncode]
    kept = strict(cli("list", "--json").stdout)
    assert len(kept) == 2
