"""Where the sides of a gate come from, and what they prove of what they ran."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchrigor.errors import InvalidInput, NotComparable
from benchrigor.gate import Side, Sources
from benchrigor.gate.suite import suite_of

COMMAND = ("pytest", "benchmarks/")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "nothing says what to compare, expected one of --rev REV --rev REV, "),
        ({"revisions": ["main"]}, "--rev is given 1 time, expected twice"),
        ({"folders": [Path()]}, "--old and --new go together"),
        ({"folders": [Path("gone"), Path()]}, "gone is no folder"),
        ({"revisions": ["a", "b"], "pythons": ["x", "y"]}, "--rev and --python says what"),
        ({"folders": [Path(), Path()], "build": ("make",)}, "--build goes with --rev"),
    ],
)
def test_all_problems_of_sides_are_said(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput) as told:
        Sources(words=COMMAND, **given)
    assert problem in str(told.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pytest", "x"), ("py", "-m", "pytest", "x")),
        (("/venv/bin/python3.12", "-m", "asv"), ("py", "-m", "asv")),
        (("env", "{python}", "b.py"), ("env", "py", "b.py")),
    ],
)
def test_an_interpreter_takes_the_place_of_that_of_the_command(
    words: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    with Sources(words=words, pythons=["py", "other"]).sides() as sides:
        assert sides["old"].words == sides["copy"].words == expected
        assert sides["new"].words == tuple("other" if word == "py" else word for word in expected)


def test_the_environment_of_a_project_is_not_in_its_revisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that a side was built with is its own."""
    for place in ("here/.venv/pytest", "here/app", "one/app", "two/app"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    monkeypatch.chdir(tmp_path / "here")
    folders = [tmp_path / "one", tmp_path / "two"]
    for word, expected in ((".venv/pytest", str(Path.cwd() / ".venv" / "pytest")), ("./app",) * 2):
        with Sources(words=[word], folders=folders).sides() as sides:
            assert sides["old"].words == (expected,)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("uv run pytest benchmarks/", "PytestSuite"),
        ("python3 -X dev -m pytest", "PytestSuite"),
        ("hyperfine pytest", "Suite"),
        ("python3 -m asv run", "Suite"),
    ],
)
def test_a_suite_of_pytest_is_known_by_its_command(command: str, expected: str) -> None:
    with suite_of(command.split(), None) as suite:
        assert type(suite).__name__ == expected


def test_a_command_without_an_interpreter_needs_a_place_for_it() -> None:
    sources = Sources(words=("make", "bench"), pythons=["py", "other"])
    with pytest.raises(InvalidInput, match=r"\{python\}"), sources.sides():
        pass


def test_folders_are_sides_and_the_copy_is_of_the_old_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "src" / "ours" / "shop").mkdir(parents=True)
        (tmp_path / name / "src" / "ours" / "shop" / "__init__.py").touch()
    one, two = tmp_path / "one", tmp_path / "two"
    with Sources(words=COMMAND, folders=[one, two]).sides() as sides:
        assert [*sides] == ["old", "new", "copy"]
        assert [side.folder for side in sides.values()] == [one, two, one]
        assert sides["new"].path == (str(two / "src"),)
        assert sides["new"].env["PYTHONPATH"].split(os.pathsep)[0] == str(two / "src")
        assert sides["copy"].others == (two,)


@pytest.mark.parametrize(
    ("modules", "stranger"),
    [
        ({"shop": "new/src/shop/__init__.py", "numpy": "/site/numpy.py"}, None),
        ({"shop": "old/src/shop/__init__.py"}, "shop"),
        ({"shop": "/site-packages/shop/__init__.py"}, "shop"),
        ({"shop.inner": "/site-packages/shop/inner.py"}, None),  # its package is named already
        ({"helpers": "old/helpers.py"}, "helpers"),
        ({"numpy": "old/.venv/lib/python3.12/site-packages/numpy/__init__.py"}, None),
        ({"io": "/usr/lib/python/io.py"}, None),
    ],
)
def test_code_of_the_other_side_is_refused(
    tmp_path: Path, modules: dict[str, str], stranger: str | None
) -> None:
    """As an editable installation gives both sides the same code."""
    for name in ("old", "new"):
        (tmp_path / name / "src" / "shop").mkdir(parents=True)
        (tmp_path / name / "src" / "shop" / "__init__.py").touch()
        (tmp_path / name / "src" / "io.py").touch()
    side = Side(
        role="new",
        label="HEAD",
        folder=tmp_path / "new",
        words=COMMAND,
        top=tmp_path / "new",
        others=(tmp_path / "old",),
        path=(str(tmp_path / "new" / "src"),),
    )
    seen = {name: str(tmp_path / place) for name, place in modules.items()}
    if stranger is None:
        side.check_imports(seen)
        return
    with pytest.raises(NotComparable) as told:
        side.check_imports(seen)
    assert f"imported {stranger} (" in str(told.value)
    assert "pip install -e" in str(told.value)


def test_interpreters_are_sides_of_one_folder() -> None:
    with Sources(words=COMMAND, pythons=[sys.executable, "other"]).sides() as sides:
        assert sides["old"].words[0] == sides["copy"].words[0] == sys.executable
        assert sides["new"].words == ("other", "-m", "pytest", "benchmarks/")
        assert sides["old"].others == ()
