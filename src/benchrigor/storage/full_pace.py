"""Full and quiet paces of machines, kept from run to run in the user's data folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchrigor.errors import StoreFailed
from benchrigor.files import locked, make_private_folder, write_whole
from benchrigor.model.checks import is_number
from benchrigor.model.pace import COMMAND_REST

_FILE, _QUIET_FILE = "full_pace.json", "quiet_pace.json"
_MOST_QUIET_RUNS = 50  # of each kind, the newest
# A run's fastest tenth differs by about that much from the next one's on an idle machine.
_ALIKE = 0.01
# No machine is that many times as fast as in the fastest tenth of a run: the file is wrong, or of a
# run without the tracing that slows this one down.
_FARTHEST = 10.0
_LEAST_S, _MOST_S = 1e-9, 1e9


def full_pace_path() -> Path:
    """Return the file of the user in which full paces are kept."""
    import platformdirs  # noqa: PLC0415  # needed to run a session, not to import one

    return platformdirs.user_data_path("benchrigor", appauthor=False) / _FILE


def kept_full_pace(machine: str) -> dict[str, float]:
    """Return the best times of a machine's reference so far, in seconds by kind of work.

    Empty if none are known, or the file holds something else.
    """
    return _read_values(full_pace_path(), _is_time).get(machine, {})


def believe(kept: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    """Return the kept times of a machine that a run's own best times do not contradict.

    The waits of a start, except for processors, may be nearly 0 in another run.
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
    if not _better(machine, seconds):
        return

    def keep(paces: dict[str, dict[str, Any]]) -> None:
        known = believe(paces.get(machine, {}), seconds)
        paces[machine] = known | _better(machine, seconds)

    _change(full_pace_path(), _is_time, keep)


def kept_quiet_runs(machine: str) -> dict[str, list[float]]:
    """Return the median references of a machine's quiet runs, in seconds by kind of work."""
    return _read_values(_quiet_path(), _are_times).get(machine, {})


def keep_quiet_run(machine: str, medians: Mapping[str, float]) -> None:
    """Add the median references of a quiet run to the ones of its machine.

    Raises
    ------
    StoreFailed
        When they cannot be written.
    """
    if not medians:
        return

    def keep(runs: dict[str, dict[str, Any]]) -> None:
        of_machine = runs.setdefault(machine, {})
        for kind, median in medians.items():
            of_machine[kind] = [*of_machine.get(kind, ()), median][-_MOST_QUIET_RUNS:]

    _change(_quiet_path(), _are_times, keep)


def _quiet_path() -> Path:
    return full_pace_path().with_name(_QUIET_FILE)


def _change(
    path: Path, fits: Callable[[object], bool], change: Callable[[dict[str, dict[str, Any]]], None]
) -> None:
    """Change the contents of a file, while no other process does."""
    try:
        make_private_folder(path.parent)
        with locked(path):
            contents = _read_values(path, fits)
            change(contents)
            write_whole(path, json.dumps(contents, indent=1, sort_keys=True), private=True)
    except OSError as error:
        raise StoreFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _better(machine: str, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the times that are plainly better than those believed."""
    known = believe(kept_full_pace(machine), seconds)
    return {
        kind: value
        for kind, value in seconds.items()
        if kind not in known or value < (1.0 - _ALIKE) * known[kind]
    }


def _read_values(path: Path, fits: Callable[[object], bool]) -> dict[str, dict[str, Any]]:
    """Return the contents of a file by machine and kind, without values that do not fit."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        machine: {kind: value for kind, value in by_kind.items() if fits(value)}
        for machine, by_kind in found.items()
        if isinstance(by_kind, dict)
    }


def _is_time(value: object) -> bool:
    return is_number(value) and _LEAST_S <= value <= _MOST_S


def _are_times(values: object) -> bool:
    return isinstance(values, list) and all(map(_is_time, values))
