"""What was recorded before: a stored run, a saved record, or a file of readings."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchrigor.cli.options import existing_store
from benchrigor.cli.sources import read_readings
from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, RunRecord
from benchrigor.session import retraced

__all__ = ["recorded_run", "recording"]

_RUN_ID = re.compile(r"[0-9a-f]+")


def recording(source: str, *, column: str | None, store: Path | None) -> RunRecord | Floats:
    """Read a run or a series of readings.

    Parameters
    ----------
    source
        Path of a file (CSV, JSON, or a record as ``show --json`` prints it), "-" for standard
        input, or else the id of a stored run, or its beginning.
    column
        As for `read_readings`.
    store
        Where runs are kept.

    Raises
    ------
    InvalidInput
        When the file holds no readings, or there is neither a file nor such an id.
    StoreFailed
        When the store has no such run.
    """
    if source == "-" or (column is not None and Path(source).is_file()):
        return read_readings(source, column)
    record = recorded_run(source, store=store)
    return read_readings(source, column) if record is None else record


def recorded_run(source: str, *, store: Path | None) -> RunRecord | None:
    """Read a run; None for a file of another kind.

    Raises
    ------
    InvalidInput
        When there is neither a file nor such an id.
    StoreFailed
        When the store has no such run.
    """
    path = Path(source)
    if path.is_file():
        saved = _saved(path)
        return None if saved is None else retraced(saved)
    if not _RUN_ID.fullmatch(source):
        raise InvalidInput(f"{source} is neither a file nor the id of a stored run")
    return retraced(existing_store(store).load(source))


def _saved(path: Path) -> RunRecord | None:
    """Read a record that was saved to a file; None for a file of another kind."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_record = isinstance(data, dict) and {"schema", "rounds", "options"} <= data.keys()
    return RunRecord.from_dict(data) if is_record else None
