"""Full speeds of machines: the levels of the reference in the newest runs, in the user's folder."""

from __future__ import annotations

import json
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

Kept = tuple[float, float]
"""Level of a reference in seconds, and the share of its run that it held."""


def full_pace_path() -> Path:
    """Return the file of the user in which full speeds are kept."""
    import platformdirs  # noqa: PLC0415  # needed to run a session, not to import one

    return platformdirs.user_data_path("benchrigor", appauthor=False) / _FILE


def kept_levels(machine: str) -> dict[str, list[Kept]]:
    """Return the fastest levels of a machine's reference in its newest runs, by kind of work.

    Empty if none are known, or the file holds something else.
    """
    known = _read(full_pace_path()).get(machine, {})
    return {kind: [(level, share) for _, level, share in rows] for kind, rows in known.items()}


def keep_levels(machine: str, levels: Mapping[str, Kept]) -> None:
    """Add the fastest levels of a run; forget those of old runs.

    Raises
    ------
    StoreFailed
        When they cannot be written.
    """
    path = full_pace_path()
    try:
        make_private_folder(path.parent)
        with locked(path):
            contents = _read(path)
            of_machine = contents.setdefault(machine, {})
            for kind, level in levels.items():
                row = (time.time(), *level)
                of_machine[kind] = [*of_machine.get(kind, ()), row][-_MOST_RUNS:]
            write_whole(path, json.dumps(contents, indent=1, sort_keys=True), private=True)
    except OSError as error:
        raise StoreFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _read(path: Path) -> dict[str, dict[str, list[tuple[float, float, float]]]]:
    """Return the contents by machine and kind: times, levels and shares that are not too old."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    now_s = time.time()
    return {
        machine: {
            kind: fitting
            for kind, rows in by_kind.items()
            if isinstance(rows, list)
            and (fitting := [r for r in rows if _fits(r) and abs(r[0] - now_s) <= _LONGEST_S])
        }
        for machine, by_kind in found.items()
        if isinstance(by_kind, dict)
    }


def _fits(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != 3 or not all(map(is_number, row)):
        return False
    _, level, share = row
    return bool(_LEAST_S <= level <= _MOST_S and 0.0 < share <= 1.0)
