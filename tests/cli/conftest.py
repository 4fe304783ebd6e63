import json
from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest

from benchrigor.cli import main


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs are kept by default; the test runs in the folder beside it."""
    path = tmp_path / "runs.sqlite"
    monkeypatch.setenv("BENCHRIGOR_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return path


@pytest.fixture
def cli(store: Path) -> Callable[..., click.testing.Result]:
    """Call the command line within this process."""
    runner = click.testing.CliRunner()
    return lambda *words, **given: runner.invoke(main, [str(word) for word in words], **given)


@pytest.fixture
def strict() -> Callable[[str], object]:
    """Parse JSON that knows no NaN and no Infinity, as other languages do."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return lambda text: json.loads(text, parse_constant=refuse)
