"""``benchrigor gate`` as users type it: tools that print, tools that write, suites of pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GO = "BenchmarkParse-2 1000 {parse} ns/op\nBenchmarkFormat-2 1000 {format} ns/op\nPASS\n"
TEST = """
import shop
def test_total(bench): bench(shop.total)
def test_label(benchmark): benchmark(shop.label)
def test_word(bench): bench(shop.word)
def test_no_benchmark(): raise AssertionError("only benchmarks are run")
"""
SHOP = """
def total():
    return sum(range({n}))
def label():
    return ",".join(["a"] * 1_000)
def word():
    return {word}
"""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    argv = ["git", *who, *words]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def printed(store: Path) -> Any:
    """Return what writes the output of a tool of either side, and the words that print it."""

    def write(old: dict[str, float], new: dict[str, float], text: str = GO) -> list[str]:
        for name, times in (("old", old), ("new", new)):
            (store.parent / name).mkdir(exist_ok=True)
            (store.parent / name / "out").write_text(text.format(**times))
        return ["--old", "old", "--new", "new", "--budget", "60", "--seed", "1"]

    return write


@pytest.fixture
def repository(store: Path) -> Path:
    """Commit a package with benchmarks, then one of six times the work that breaks a function."""
    folder = store.parent / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "test_shop.py").write_text(TEST)
    git(folder, "init", "-q")
    for n, word in ((2_000, "'a'"), (12_000, "unknown")):
        (folder / "src" / "shop.py").write_text(SHOP.format(n=n, word=word))
        git(folder, "add", ".")
        git(folder, "commit", "-qm", str(n))
    return folder


def test_what_a_tool_prints_is_compared(cli: Any, printed: Any) -> None:
    words = printed({"parse": 100.0, "format": 50.0}, {"parse": 120.0, "format": 50.0})
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 7, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "new against old: WORSE; 1 worse, 1 equivalent of 2 benchmarks"
    assert lines[2].startswith("BenchmarkParse") or lines[2].startswith("Parse")
    assert "20" in lines[2]
    assert cli("gate", *words, "--fail-on", "never", "--", "cat", "out").exit_code == 0


def test_results_are_read_from_a_file_that_is_then_gone(cli: Any, printed: Any) -> None:
    words = printed({"parse": 100.0, "format": 50.0}, {"parse": 100.0, "format": 50.0})
    result = cli("gate", *words, "--results", "made", "--json", "--", "cp", "out", "made")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["gate"]
    assert {each["verdict"] for each in found["benchmarks"]} == {"equivalent"}
    assert found["null"]["verdict"] == "held"
    assert not Path("old/made").exists()
    Path("new/made").write_text("there before")
    result = cli("gate", *words, "--results", "made", "--", "cp", "out", "made")
    assert result.exit_code == 2
    assert "new/made is there already" in result.stderr
    assert Path("new/made").read_text() == "there before"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("true",), 2, "is empty"),
        (("echo", "hello"), 2, "no results of a known tool"),
        (("sh", "-c", "echo broken >&2; exit 3"), 5, "broken"),
        (("no-such-program",), 5, "no-such-program"),
    ],
)
def test_a_command_without_results_is_refused(
    cli: Any, printed: Any, command: tuple[str, ...], code: int, said: str
) -> None:
    words = printed({"parse": 1.0, "format": 1.0}, {"parse": 1.0, "format": 1.0})
    result = cli("gate", *words, "--", *command)
    assert result.exit_code == code, result.output
    assert said in result.stderr


def test_a_command_that_fails_later_loses_nothing_of_the_blocks_before(
    cli: Any, printed: Any
) -> None:
    words = printed({"parse": 100.0, "format": 50.0}, {"parse": 120.0, "format": 50.0})
    command = 'echo x >> ../runs; test "$(wc -l < ../runs)" -lt 16 && cat out'
    result = cli("gate", *words, "--json", "--", "sh", "-c", command)
    assert result.exit_code == 5, result.output
    found = json.loads(result.stdout)["gate"]
    assert found["blocks"] == 5
    assert found["reason"] == "workload-failed"
    assert {each["verdict"] for each in found["benchmarks"]} == {"worse", "equivalent"}
    assert "exited with code 1" in result.stderr


def test_results_without_readings_are_named(cli: Any, printed: Any) -> None:
    text = '{{"results": [{{"command": "a", "times": [1, 2]}}, {{"command": "b", "mean": 2}}]}}'
    words = printed({}, {}, text)
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 0, result.output
    assert "b is not compared: The file has no raw readings, only mean 2." in result.stdout


def test_half_a_file_is_refused(cli: Any, printed: Any) -> None:
    words = printed({}, {}, '{{"results": [{{"command": "a", "times": [1.0, 2.0]')
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 2, result.output
    assert "side, " in result.stderr


def test_times_below_0_are_refused(cli: Any, printed: Any) -> None:
    words = printed({"parse": 1.0, "format": 1.0}, {"parse": -1.0, "format": 1.0})
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 2, result.output
    assert "BenchmarkParse-2 took -1e-09 s, expected a duration" in result.stderr


def test_a_side_without_a_common_benchmark_is_no_result(cli: Any, printed: Any) -> None:
    words = printed({"parse": 1.0, "format": 1.0}, {"parse": 1.0, "format": 1.0})
    Path("new/out").write_text("BenchmarkOther-2 10 5 ns/op\nPASS\n")
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 4
    assert "only on the new side: " in result.stdout


def test_a_budget_below_six_blocks_is_refused_with_what_they_take(cli: Any, printed: Any) -> None:
    words = printed({"parse": 1.0, "format": 1.0}, {"parse": 1.0, "format": 1.0})
    result = cli("gate", *words, "--budget", "1", "--", "sh", "-c", "sleep 0.2; cat out")
    assert result.exit_code == 2
    assert "6 of them take about" in result.stderr
    assert "the budget is 1 s" in result.stderr


def test_what_hangs_is_killed_at_the_budget(cli: Any, printed: Any) -> None:
    words = printed({"parse": 1.0, "format": 1.0}, {"parse": 1.0, "format": 1.0})
    result = cli("gate", *words, "--budget", "1", "--", "sleep", "60")
    assert result.exit_code == 5
    assert "does it hang?" in result.stderr


def test_the_summary_of_a_workflow_gets_the_markdown(
    cli: Any, printed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = printed({"parse": 100.0, "format": 50.0}, {"parse": 120.0, "format": 50.0})
    result = cli("gate", *words, "--summary", "--", "cat", "out")
    assert result.exit_code == 2
    assert "GITHUB_STEP_SUMMARY" in result.stderr
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    words += ["--summary", "--markdown", "-"]
    result = cli("gate", *words, "--", "cat", "out")
    assert result.stdout.startswith("**new against old: WORSE")
    assert Path("summary.md").read_text() == result.stdout


def test_a_suite_of_pytest_with_both_fixtures(
    cli: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One function does six times as much, one the same, and one breaks: few blocks tell."""
    pytest.importorskip("pytest_benchmark")
    monkeypatch.chdir(repository)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # it would turn a plugin off
    command = (sys.executable, "-m", "pytest", "benchmarks/")
    words = ("--rev", "HEAD~1", "--rev", "HEAD", "--budget", "300", "--margin", "100%")
    result = cli("gate", *words, "--json", "--", *command)
    assert result.exit_code == 5, result.output
    found = json.loads(result.stdout)["gate"]
    verdicts = {each["name"].partition("::")[2]: each["verdict"] for each in found["benchmarks"]}
    assert verdicts.keys() == {"test_total", "test_label"}
    assert verdicts["test_total"] == "worse"
    assert verdicts["test_label"] != "worse"
    assert "NameError" in found["failures"]["new"]["benchmarks/test_shop.py::test_word"]
    assert git(repository, "worktree", "list").count("\n") == 1


def test_an_installed_copy_that_both_sides_would_measure_is_refused(
    cli: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an editable installation does, when it comes before what the gate puts into the path."""
    elsewhere = repository.parent / "installed"
    elsewhere.mkdir()
    (elsewhere / "shop.py").write_text(SHOP.format(n=1, word=1))
    (repository / "benchmarks" / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\n"
    )
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "installed")
    monkeypatch.chdir(repository)
    words = ("--rev", "HEAD", "--rev", "HEAD", "--budget", "60", "--")
    result = cli("gate", *words, sys.executable, "-m", "pytest", "benchmarks/")
    assert result.exit_code == 8, result.output
    assert "shop (" in result.stderr
    assert git(repository, "worktree", "list").count("\n") == 1


def test_a_build_that_hangs_is_ended(
    cli: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setattr("benchrigor.workloads.worktrees.SETUP_S", 1.0)
    words = ("--rev", "HEAD~1", "--rev", "HEAD", "--build", "sleep 600")
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 5
    assert "longer than 1 s and was killed, expected its end by then" in result.stderr


def test_a_build_that_fails_says_so(
    cli: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    words = ("--rev", "HEAD~1", "--rev", "HEAD", "--build", "sh -c 'echo no compiler >&2; exit 2'")
    result = cli("gate", *words, "--", "cat", "out")
    assert result.exit_code == 5
    assert "no compiler" in result.stderr
