"""What pyproject.toml says of metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.storage.project_settings import defaults, metric_named, time_metric


def described(folder: Path, table: str) -> Path:
    (folder / "pyproject.toml").write_text(f"[tool.benchrigor.metrics]\n{table}\n")
    (folder / "deep").mkdir()
    return folder / "deep"


def test_a_metric_is_what_the_nearest_project_says(tmp_path: Path) -> None:
    folder = described(tmp_path, 'rate = "req/s,harmonic"\ntime = "±5%"')
    assert metric_named("rate", folder=folder).averaging == "harmonic"
    assert metric_named("rate", "op/s", folder=folder).averaging == "auto"
    assert metric_named("other", folder=folder).unit == ""
    assert time_metric(folder).relative_half_width == pytest.approx(0.05)


def test_wall_time_is_in_seconds(tmp_path: Path) -> None:
    assert time_metric(tmp_path).unit == "s"
    with pytest.raises(InvalidInput, match="is in ms, expected s"):
        time_metric(described(tmp_path, 'time = "ms"'))


@pytest.mark.parametrize("table", ["rate = 3", "rate = ", 'rate = "lower,higher"'])
def test_a_wrong_table_is_named(tmp_path: Path, table: str) -> None:
    with pytest.raises(InvalidInput, match=r"pyproject\.toml|expected one direction"):
        metric_named("rate", folder=described(tmp_path, table))


def test_defaults_are_read_as_they_would_be_typed(tmp_path: Path) -> None:
    assert defaults(tmp_path) == {}
    (tmp_path / "pyproject.toml").write_text(
        '[tool.benchrigor]\nbudget = 5\ntarget = "3%"\n[tool.benchrigor.metrics]\ntime = "±1%"\n'
    )
    assert defaults(tmp_path) == {"budget": "5", "target": "3%"}


def test_a_setting_that_nobody_knows_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.benchrigor]\nbugdet = 5\n")
    with pytest.raises(InvalidInput, match=r"has 'bugdet', expected some of target.*budget"):
        defaults(tmp_path)


def test_it_must_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nbenchrigor = 5\n")
    with pytest.raises(InvalidInput, match=r"tool\.benchrigor is 5, expected descriptions by name"):
        defaults(tmp_path)
