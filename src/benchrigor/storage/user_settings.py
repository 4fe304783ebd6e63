"""Settings of users and projects: full speeds of machines, defaults of options, metrics."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.files import locked, make_private_folder, write_whole
from benchrigor.model import toml_tables as toml
from benchrigor.model.checks import is_number, refuse, wrong_setting
from benchrigor.model.metric import Metric, describe_metric
from benchrigor.model.toml_tables import TomlTables
from benchrigor.settings import SETTINGS as ROWS
from benchrigor.settings import Setting, settings_in, typed_name

_FILE = "full_speed.json"
_MOST_RUNS = 20  # of each kind of reference
_LONGEST_S = 14 * 86_400.0  # for which a level is remembered
_LEAST_S, _MOST_S = 1e-9, 1e9
# By platform: the variable that names the data folder, and its usual place below home.
_DATA_FOLDERS = {
    "win32": ("LOCALAPPDATA", "AppData/Local"),
    "darwin": ("XDG_DATA_HOME", "Library/Application Support"),
}

Kept = tuple[float, float]
"""Level of a reference in seconds, and the share of its run that it held."""


def data_folder() -> Path:
    """Return the folder in which we keep data of the user.

    ``benchrigor`` in ``$XDG_DATA_HOME``, without it in ``~/.local/share`` (``~/Library/Application
    Support`` on macOS); in ``%LOCALAPPDATA%`` on Windows.

    Raises
    ------
    StoreFailed
        When the user has no home folder.
    """
    variable, below_home = _DATA_FOLDERS.get(sys.platform, ("XDG_DATA_HOME", ".local/share"))
    folder = Path(os.environ.get(variable, ""))
    if not folder.is_absolute():  # the XDG specification has relative paths ignored
        try:
            folder = Path.home() / below_home
        except RuntimeError as error:
            raise StoreFailed(f"you have no home folder: set {variable} to a folder") from error
    return folder / "benchrigor"


def kept_levels(machine: str) -> dict[str, list[Kept]]:
    """Return the fastest levels of a machine's reference in its newest runs, by kind of work.

    Empty if none are known, or the file holds something else.
    """
    known = _read().get(machine, {})
    return {kind: [(level, share) for _, level, share in rows] for kind, rows in known.items()}


def keep_levels(machine: str, levels: Mapping[str, Kept]) -> None:
    """Add the fastest levels of a run; forget levels of old runs.

    Raises
    ------
    StoreFailed
        When they cannot be written.
    """
    path = data_folder() / _FILE
    try:
        make_private_folder(path.parent)
        with locked(path):
            contents = _read()
            of_machine = contents.setdefault(machine, {})
            for kind, level in levels.items():
                row = (time.time(), *level)
                of_machine[kind] = [*of_machine.get(kind, ()), row][-_MOST_RUNS:]
            write_whole(path, json.dumps(contents, indent=1, sort_keys=True), private=True)
    except OSError as error:
        raise StoreFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _read() -> dict[str, dict[str, list[tuple[float, float, float]]]]:
    """Return the contents by machine and kind: times, levels and shares that are not too old."""
    try:
        found = json.loads((data_folder() / _FILE).read_text(encoding="utf-8")).items()
    except (OSError, StoreFailed, ValueError, RecursionError, AttributeError):
        return {}
    now_s = time.time()
    return {
        machine: {
            kind: fitting
            for kind, rows in by_kind.items()
            if isinstance(rows, list)
            and (fitting := [r for r in rows if _fits(r) and abs(r[0] - now_s) <= _LONGEST_S])
        }
        for machine, by_kind in found
        if isinstance(by_kind, dict)
    }


def _fits(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != 3 or not all(map(is_number, row)):
        return False
    _, level, share = row
    return bool(_LEAST_S <= level <= _MOST_S and 0.0 < share <= 1.0)


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
