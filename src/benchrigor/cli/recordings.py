"""What was recorded before: a stored run, a saved record, or a file of readings."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from benchrigor.cli.options import existing_store
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.sources import decoded, name_of, read_rounds
from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.files import readable
from benchrigor.model import Metric, Options, RunRecord
from benchrigor.model.codec import is_there
from benchrigor.session import retraced
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.session.stored_runs import PART_OF
from benchrigor.storage.project_settings import metric_named

_RUN_ID = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where in a file the readings stand, and what they are."""

    column: str | None = None
    by: str | None = None
    unit: str | None = None

    @property
    def are_named(self) -> bool:
        """Whether a file must be one of columns, rather than a saved record."""
        return self.column is not None or self.by is not None

    @property
    def metric(self) -> Metric:
        """The metric of the readings, described by ``unit`` or by the project."""
        is_numbered = self.column is None or self.column.isdigit()
        return metric_named("readings" if is_numbered else str(self.column), self.unit)


def recording(
    source: str, columns: Columns, *, store: Path | None, options: Options | None = None
) -> RunRecord:
    """Read a run, or make one of the readings of a file.

    ``source`` is a file (CSV, JSON, or a record as ``show --json`` prints it), "-" for standard
    input, or else the id of a stored run, or its beginning.
    """
    is_series = source == "-" or (columns.are_named and is_there(Path(source), Path.is_file))
    record = None if is_series else recorded_run(source, store=store)
    if record is None:
        return recorded_file(source, columns, options or Options())
    if is_special(record):
        raise InvalidInput(
            f"{source} is {module_for(record).NOUN}, expected readings of one workload: "
            f"`benchrigor show {source}` tells what it found"
        )
    return record


def recorded_file(source: str, columns: Columns, options: Options) -> RunRecord:
    """Make a run of the readings of a file."""
    rounds = read_rounds(source, columns.column, columns.by)
    return record_of_readings(
        rounds.series, options, columns.metric, name=name_of(source), weights=rounds.trials
    )


def recorded_run(source: str, *, store: Path | None) -> RunRecord | None:
    """Read a run from a file or the store; None for a file of another kind."""
    path = Path(source)
    if is_there(path, Path.is_file):
        saved = _saved(path)
        return None if saved is None else retraced(saved)
    if not _RUN_ID.fullmatch(source):
        raise InvalidInput(f"{source} is neither a file nor the id of a stored run")
    return stored_run(source, store)


def stored_run(run_id: str | None, store: Path | None) -> RunRecord:
    """Load a run by the beginning of its id, or the last one, analysed also if it was cut off."""
    opened = existing_store(store)
    chosen = run_id
    if chosen is None:
        chosen = next((run["run_id"] for run in opened.runs()), None)
        if chosen is None:
            raise StoreFailed(f"there is no run in {opened.path}, expected one")
    record = opened.load(chosen)
    if run_id is None and PART_OF in record.subject:
        record = opened.load(record.subject[PART_OF])
    return record if is_special(record) else retraced(record)


def _saved(path: Path) -> RunRecord | None:
    """Read a record that was saved to a file; None for a file of another kind."""
    try:
        data = json.loads(decoded(readable(path).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None
    is_record = isinstance(data, dict) and {"schema", "rounds", "options"} <= data.keys()
    if not is_record:
        return None
    try:
        return RunRecord.from_dict(data)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {each}" for each in error.problems) from error
