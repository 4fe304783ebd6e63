"""What ``[tool.benchrigor]`` of pyproject.toml says: defaults of options, and what metrics are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import toml_tables as toml
from benchrigor.model.checks import refuse, wrong_setting
from benchrigor.model.metric import Metric, describe_metric
from benchrigor.model.toml_tables import TomlTables
from benchrigor.settings import SETTINGS as ROWS
from benchrigor.settings import Setting, settings_in, typed_name

# Options that a project may give defaults for, by their names on the command line.
SETTINGS = (*map(typed_name, settings_in("project")), "store")
TIME = "time"  # the metric of wall time
_OURS = ("tool", "benchrigor")
_path = toml.reader_of(lambda value: isinstance(value, str), "the path of a file")
_description = toml.reader_of(
    lambda value: isinstance(value, str), 'a description such as "req/s,higher,harmonic"'
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


def picked_metrics(descriptions: Mapping[str, str | None]) -> dict[str, Metric]:
    """Make metrics by their names and descriptions; a time of a round without a unit is in s."""
    return {
        name: metric_named(name, description, unit="s" if name == TIME else "")
        for name, description in descriptions.items()
    }


def time_metric(folder: Path | None = None) -> Metric:
    """Make the metric of wall time, which is in seconds; the project may want a width of it.

    Raises
    ------
    InvalidInput
        When the project's pyproject.toml describes it otherwise.
    """
    metric = metric_named(TIME, unit="s", folder=folder)
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
    tables = _tables(folder or Path.cwd())
    readers = {typed_name(name): _checked(ROWS[name]) for name in settings_in("project")}
    given = tables.table(_OURS, {**readers, "store": _path, "metrics": toml.table_of})
    tables.refuse()
    return {name: str(value) for name, value in given.items() if name != "metrics"}


def _checked(row: Setting) -> toml.Reader:
    """Return what checks a value, and leaves it as it was typed: verbs read it once more."""

    def check(name: str, value: Any) -> Any:
        try:
            read = row.kind.read(value) if isinstance(value, str) else value
        except ValueError as error:
            raise InvalidInput(f"{name}: {error}") from None
        refuse(wrong_setting(name, row, read))
        return value

    return check


def described_metrics(folder: Path) -> Mapping[str, str]:
    """Return the descriptions of metrics in the nearest pyproject.toml, by name.

    Raises
    ------
    InvalidInput
        When the file is not TOML, or the table holds something else.
    """
    tables = _tables(folder)
    keys = (*_OURS, "metrics")
    metrics = tables.table(keys, dict.fromkeys(toml.items_of(tables.at(*keys)), _description))
    tables.refuse()
    return metrics


def _tables(folder: Path) -> TomlTables:
    """Return the nearest pyproject.toml, with a problem if it has no table of ours."""
    places = (parent / "pyproject.toml" for parent in (folder, *folder.parents))
    path = next((place for place in places if place.is_file()), None)
    tables = TomlTables({}) if path is None else TomlTables.of_file(path)
    for keys in (_OURS[:1], _OURS):
        if (item := tables.at(*keys)) is not None:
            tables.attempt(keys, toml.table_of, ".".join(keys), item)
    return tables
