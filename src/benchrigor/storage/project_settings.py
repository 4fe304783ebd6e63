"""What metrics are, as the table ``[tool.benchrigor.metrics]`` of pyproject.toml describes them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import Metric
from benchrigor.model.metric import describe_metric


def metric_named(
    name: str, description: str | None = None, *, unit: str = "", folder: Path | None = None
) -> Metric:
    """Make a metric by its description, or else as the project's pyproject.toml describes it.

    The project is that of ``folder``, None for the current one; ``unit`` is that of metrics that
    are described without one.
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


def described_metrics(folder: Path) -> Mapping[str, str]:
    """Return the descriptions of metrics in the nearest pyproject.toml, by name.

    Raises
    ------
    InvalidInput
        When the file is no TOML, or the table holds something else.
    """
    path = next(
        (
            each / "pyproject.toml"
            for each in (folder, *folder.parents)
            if (each / "pyproject.toml").is_file()
        ),
        None,
    )
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
    metrics: Any = table
    for key in ("tool", "benchrigor", "metrics"):
        metrics = metrics.get(key, {}) if isinstance(metrics, dict) else metrics
    if not isinstance(metrics, dict) or not all(isinstance(each, str) for each in metrics.values()):
        raise InvalidInput(
            f"{path}: tool.benchrigor.metrics is {metrics!r}, expected descriptions by name, such "
            'as rate = "req/s,higher,harmonic"'
        )
    return metrics
