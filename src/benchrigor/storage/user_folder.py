"""The user's data folder, and full speeds of machines in it: levels of the reference in runs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import StoreFailed
from benchrigor.files import locked, make_private_folder, write_whole
from benchrigor.model.checks import is_number

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
