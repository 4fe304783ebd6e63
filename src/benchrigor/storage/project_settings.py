"""What ``[tool.benchrigor]`` of pyproject.toml says: defaults of options, and what metrics are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.files import readable
from benchrigor.model.checks import refuse
from benchrigor.model.metric import Metric, describe_metric

# Options that a project may give defaults for, by their names on the command line.
SETTINGS = (
    *("target", "confidence", "statistic", "budget", "batch", "gc", "preset", "margin"),
    "store",
)


def metric_named(
    name: str, description: str | None = None, *, unit: str = "", folder: Path | None = None
) -> Metric:
    """Make a metric by its description, or else as the project's pyproject.toml describes it.

    The project is the one of ``folder``, None for the current one; ``unit`` is for descriptions
    without a unit.
    """
    description = description or described_metrics(folder or Path.cwd()).get(name, "")
    metric = describe_metric(name, description)
    return metric if metric.unit else describe_metric(name, ",".join((unit, description)))


def time_metric(folder: Path | None = None) -> Metric:
    """Make the metric of wall time, which is in seconds; the project may want a width of it.

    Raises
    ------
    InvalidInput
        When the project's pyproject.toml describes it otherwise.
    """
    metric = metric_named("time", unit="s", folder=folder)
    if not metric.is_duration:
        raise InvalidInput(
            f"tool.benchrigor.metrics.time in pyproject.toml is in {metric.unit or 'no unit'}, "
            "expected s: wall time is measured in seconds"
        )
    return metric


def defaults(folder: Path | None = None) -> Mapping[str, str]:
    """Return the settings in ``[tool.benchrigor]`` of the nearest pyproject.toml, as typed.

    Raises
    ------
    InvalidInput
        When the file is not TOML, benchrigor is not a table in it, or a setting is not known.
    """
    path, settings = _settings(folder or Path.cwd())
    given = {name: value for name, value in settings.items() if name != "metrics"}
    refuse(
        f"{path}: tool.benchrigor has {name!r}, expected some of {', '.join(SETTINGS)}, or the "
        "table metrics"
        for name in sorted(given.keys() - set(SETTINGS))
    )
    return {name: str(value) for name, value in given.items()}


def described_metrics(folder: Path) -> Mapping[str, str]:
    """Return the descriptions of metrics in the nearest pyproject.toml, by name.

    Raises
    ------
    InvalidInput
        When the file is not TOML, or the table holds something else.
    """
    path, settings = _settings(folder)
    metrics = settings.get("metrics", {})
    if not isinstance(metrics, dict) or not all(isinstance(text, str) for text in metrics.values()):
        raise InvalidInput(
            f"{path}: tool.benchrigor.metrics is {metrics!r}, expected descriptions by name, such "
            'as rate = "req/s,higher,harmonic"'
        )
    return metrics


def _settings(folder: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """Return the nearest pyproject.toml and its table ``[tool.benchrigor]``."""
    places = (parent / "pyproject.toml" for parent in (folder, *folder.parents))
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return None, {}
    try:
        table: Any = tomllib.loads(readable(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    for key in ("tool", "benchrigor"):
        table = table.get(key, {}) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        raise InvalidInput(
            f"{path}: tool.benchrigor is {table!r}, expected descriptions by name in a table "
            "metrics, or settings such as budget = 5"
        )
    return path, table
