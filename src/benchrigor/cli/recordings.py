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

_RUN_ID = re.compile(r"[0-9a-f]+")


def recording(source: str, *, column: str | None, store: Path | None) -> RunRecord | Floats:
    """Read a run or a series of readings.

    ``source`` is a file (CSV, JSON, or a record as ``show --json`` prints it), "-" for standard
    input, or else the id of a stored run, or its beginning.
    """
    is_series = source == "-" or (column is not None and Path(source).is_file())
    record = None if is_series else recorded_run(source, store=store)
    return read_readings(source, column) if record is None else record


def recorded_run(source: str, *, store: Path | None) -> RunRecord | None:
    """Read a run from a file or the store; None for a file of another kind."""
    path = Path(source)
    if path.is_file():
        saved = _saved(path)
        return None if saved is None else retraced(saved)
    if not _RUN_ID.fullmatch(source):
        raise InvalidInput(f"{source} is neither a file nor the id of a stored run")
    return stored_run(source, store)


def stored_run(run_id: str, store: Path | None) -> RunRecord:
    """Load a run by the beginning of its id, analysed also where it was cut off."""
    return retraced(existing_store(store).load(run_id))


def _saved(path: Path) -> RunRecord | None:
    """Read a record that was saved to a file; None for a file of another kind."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_record = isinstance(data, dict) and {"schema", "rounds", "options"} <= data.keys()
    return RunRecord.from_dict(data) if is_record else None
