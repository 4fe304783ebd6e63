"""The full pace of a machine, kept from run to run in the user's data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchrigor.errors import StoreFailed
from benchrigor.files import locked, make_private_folder, write_whole
from benchrigor.model.checks import is_number
from benchrigor.model.pace import COMMAND_REST

_FILE = "full_pace.json"
# A run's fastest tenth differs by about so much from the next one's on an idle machine.
_ALIKE = 0.01
# No machine is so many times as fast as in the fastest tenth of a run: the file is wrong, or of a
# run without the tracing that slows this one down.
_FARTHEST = 10.0
_LEAST_S, _MOST_S = 1e-9, 1e9


def full_pace_path() -> Path:
    """Return the file of the user in which full paces are kept."""
    import platformdirs  # noqa: PLC0415  # needed where a session runs, not where one is imported

    return platformdirs.user_data_path("benchrigor", appauthor=False) / _FILE


def kept_full_pace(machine: str) -> dict[str, float]:
    """Return the best times of a machine's reference so far, in seconds by kind of work.

    Empty where none are known, or the file holds something else.
    """
    return _kept().get(machine, {})


def believed(kept: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    """Return what is known of a machine, without what a run with its own best times contradicts.

    What a start waits for, besides processors, may be next to nothing in another run.
    """
    return {
        kind: value
        for kind, value in kept.items()
        if kind == COMMAND_REST or _FARTHEST * value >= own.get(kind, 0.0)
    }


def keep_full_pace(machine: str, seconds: Mapping[str, float]) -> None:
    """Keep a run's times of a machine's reference that are plainly better than those believed.

    Raises
    ------
    StoreFailed
        When they cannot be written.
    """
    path = full_pace_path()
    if not _better(machine, seconds):
        return
    try:
        make_private_folder(path.parent)
        with locked(path):
            paces = _kept()
            known = believed(paces.get(machine, {}), seconds)
            paces[machine] = known | _better(machine, seconds)
            write_whole(path, json.dumps(paces, indent=1, sort_keys=True), private=True)
    except OSError as error:
        raise StoreFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _better(machine: str, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the times that are plainly better than those believed."""
    known = believed(kept_full_pace(machine), seconds)
    return {
        kind: value
        for kind, value in seconds.items()
        if kind not in known or value < (1.0 - _ALIKE) * known[kind]
    }


def _kept() -> dict[str, dict[str, float]]:
    try:
        found = json.loads(full_pace_path().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        machine: {kind: float(value) for kind, value in seconds.items() if _is_time(value)}
        for machine, seconds in found.items()
        if isinstance(seconds, dict)
    }


def _is_time(value: object) -> bool:
    return is_number(value) and _LEAST_S <= value <= _MOST_S
