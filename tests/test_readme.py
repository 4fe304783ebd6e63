"""Every block that the front page shows is run, and so is each command on the other pages."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from benchrigor.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BUDGET = "0.2s"
NO_FAULT = {"benchrigor": {0, 3, 4, 7}, "pytest": {0, 1}}  # undecided, no number, worse


def blocks(text: str, *languages: str) -> list[str]:
    """Return what the blocks of code in these languages hold."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [code for language, code in found if language in languages]


def lines(text: str) -> list[str]:
    """Return the commands of a page: lines of its blocks of shell, and those before an output."""
    scripts = [line for code in blocks(text, "sh", "bash") for line in code.splitlines()]
    return scripts + re.findall(r"^\$ (.*)$", text, flags=re.MULTILINE)


def write_files(text: str, folder: Path) -> None:
    """Write the files that a page shows, named by their first lines."""
    for code in blocks(text, "python"):
        if named := re.match(r"# (\w+\.py)\n", code):
            (folder / named[1]).write_text(code, encoding="utf-8")


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this Python in the folder."""
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    environment["BENCHRIGOR_STORE"] = str(folder / "runs.sqlite")
    words = [sys.executable, *argv]
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def git(folder: Path, line: str) -> None:
    """Run a command of git in the folder."""
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *shlex.split(line)]
    subprocess.run(words, cwd=folder, check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a shallow clone, as CI has it, of a repository that holds the files of the front page.

    It measures for a moment.
    """
    origin = tmp_path / "origin"
    origin.mkdir()
    write_files(README, origin)
    settings = f'[tool.benchrigor]\nbudget = "{BUDGET}"\n'
    (origin / "pyproject.toml").write_text(settings, encoding="utf-8")
    for line in ("init -q -b main", "add .", "commit -qm Begin", "branch change"):
        git(origin, line)
    git(tmp_path, f"clone -q --depth=1 --branch=change {origin.as_uri()} clone")
    (fetching,) = (line for line in lines(README) if line.startswith("git "))
    git(tmp_path / "clone", fetching.removeprefix("git "))
    return tmp_path / "clone"


@pytest.mark.parametrize(
    "line", [line for line in lines(README) if line.startswith(("benchrigor ", "pytest "))]
)
def test_commands_of_the_front_page_measure(project: Path, line: str) -> None:
    program, *words = shlex.split(line, comments=True)
    done = run(project, "-m", program, *words)
    assert done.returncode in NO_FAULT[program], done.stdout + done.stderr
    assert re.search(r"\d ?%|no number", done.stdout), done.stdout + done.stderr


def test_only_installing_is_left_to_other_tests() -> None:
    programs = [line.split()[0] for line in lines(README)]
    assert sorted(set(programs)) == ["benchrigor", "git", "pytest", "python3"]
    installing = [line for line in lines(README) if line.startswith("python3 ")]
    assert all("pip install" in line for line in installing)
    assert len(installing) == 2


def test_scripts_of_the_front_page_run(project: Path) -> None:
    scripts = [code for code in blocks(README, "python") if not code.startswith(("#", ">>>"))]
    for script in scripts:
        done = run(project, "-c", re.sub(r"budget_s=\d+", "budget_s=0.2", script))
        assert done.returncode == 0, done.stderr
    assert scripts


def test_tests_of_the_page_of_pytest_run(tmp_path: Path) -> None:
    write_files((ROOT / "docs" / "pytest.md").read_text(encoding="utf-8"), tmp_path)
    (name,) = (path.name for path in tmp_path.glob("test_*.py"))
    done = run(tmp_path, "-m", "pytest", name, f"--bench-budget={BUDGET}")
    assert "test_parsing" in done.stdout
    assert done.returncode in NO_FAULT["pytest"], done.stdout


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_on_pages_are_commands(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in lines(path.read_text(encoding="utf-8")):
        _, verb, *words = [*shlex.split(line, comments=True), "", ""]
        if line.startswith("benchrigor "):
            words = words[:-2] if not verb.startswith("-") else []
            command = main.get_command(click.Context(main), verb)
            assert command is not None, line
            command.make_context(verb, words, parent=click.Context(main))


def test_every_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    unlisted = {"README.md", "plan.md"}
    for path in sorted((ROOT / "docs").glob("*.md")):
        assert path.name in unlisted or f"]({path.name})" in index, path.name


def test_the_front_page_is_short() -> None:
    assert len(README.splitlines()) <= 150
