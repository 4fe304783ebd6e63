"""Recorded readings: a stored run, a saved record, or a file of readings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchrigor.cli.options import existing_store, ignored_lines, rows_to_read, skips_missing
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.sources import RecordedRounds, has_path, name_of, read_rounds
from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.formats.recognition import Result, results_in
from benchrigor.model import Metric, Options, RunRecord
from benchrigor.model.checks import refuse
from benchrigor.model.codec import is_there
from benchrigor.model.metric import describe_metric
from benchrigor.session.replays.file_results import analyse_file, arrange_file
from benchrigor.session.replays.recorded_run import (
    ensure_analysed,
    record_of_readings,
    recording_of,
)
from benchrigor.session.stored_runs import PART_OF
from benchrigor.storage.project_settings import metric_named

_RUN_ID = re.compile(r"[0-9a-f]+")
_SOME = 10  # names that an error lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The place of readings in a file, and their unit."""

    column: str | None = None
    by: str | None = None
    unit: str | None = None

    def read(self, source: str) -> tuple[RecordedRounds, Metric]:
        """Read the readings, and their metric as ``unit``, the project or the cells describe it."""
        is_numbered = self.column is None or self.column.isdigit()
        name = "readings" if is_numbered else str(self.column)
        unit = metric_named(name, self.unit).unit
        rounds = read_rounds(source, self.column, self.by, unit)
        is_asked = bool(self.unit and describe_metric(name, self.unit).unit)
        if unit and rounds.unit not in {"", unit} and not is_asked:
            raise InvalidInput(
                f"{source} has readings in {rounds.unit!r}, and pyproject.toml describes {name} in "
                f"{unit!r}: choose one with --unit"
            )
        return rounds, metric_named(name, self.unit, unit=rounds.unit)

    def check(self, record: RunRecord, source: str) -> None:
        """Refuse options for facts that are in the file of a tool."""
        given = {"--round": self.by, "--unit": self.unit}
        refuse(
            f"{option} is given, but {source} is of {record.subject['tool']}, which says it itself"
            for option, value in given.items()
            if value is not None and "tool" in record.subject
        )


def recording(source: str, columns: Columns, *, store: Path | None) -> RunRecord:
    """Read a run, or make one of the readings of a file.

    ``source`` is a file (results of a tool, a saved record, CSV or JSON), a folder of results, "-"
    for standard input, or else the id of a stored run, or its beginning.
    """
    record = recorded_run(source, columns.column, store=store)
    if record is None:
        return recorded_file(source, columns, Options())
    columns.check(record, source)
    if is_special(record):
        raise InvalidInput(
            f"{source} is {module_for(record).NOUN}, expected readings of one workload: "
            f"`benchrigor show {source}` tells what it found"
        )
    return record


def recordings(
    source: str,
    columns: Columns,
    *,
    store: Path | None,
    wanted: Callable[[str], object] | None = None,
) -> list[RunRecord]:
    """Read all benchmarks of a file that no column chooses from, not analysed; else as one."""
    if source != "-" and not is_there(Path(source)):
        return [recording(source, columns, store=store)]
    found = _read(source, arrange_file, wanted, columns.column)
    if found is None:
        return [recorded_file(source, columns, Options())]
    if columns.column is not None:
        found = [chosen(found, source, columns.column)]
    if any(map(is_special, found)):
        return [recording(source, columns, store=store)]  # which refuses it
    columns.check(found[0], source)
    return found


def recorded_file(source: str, columns: Columns, options: Options) -> RunRecord:
    """Make a run of the readings of a file."""
    rounds, metric = columns.read(source)
    return record_of_readings(
        rounds.series, options, metric, name=name_of(source), weights=rounds.trials
    )


def rounds_in(source: str, columns: Columns) -> tuple[RecordedRounds, Metric]:
    """Read the readings of a column, or of a benchmark of a tool, and their metric."""
    records = recorded_runs(source, column=columns.column)
    if records is None:
        return columns.read(source)
    record = chosen(records, source, columns.column)
    columns.check(record, source)
    found = recording_of(record)
    labels = tuple(map(str, range(len(found.series)))) if len(found.series) > 1 else ()
    told = record.session_notices
    return RecordedRounds(series=found.series, labels=labels, notices=told), found.metric


def recorded_run(source: str, name: str | None = None, *, store: Path | None) -> RunRecord | None:
    """Read a run from results of a tool or the store; None for standard input and other files.

    ``name`` says which benchmark of a file is meant.
    """
    records = all_runs(source, name, store=store)
    if records is None:
        return None
    return records[0] if _is_in_store(source) else chosen(records, source, name)


def all_runs(source: str, name: str | None = None, *, store: Path | None) -> list[RunRecord] | None:
    """Read all runs of a file or folder, or one from the store; None as from `recorded_run`."""
    if not _is_in_store(source):
        return recorded_runs(source, column=name)
    if not _RUN_ID.fullmatch(source):
        raise InvalidInput(f"{source} is neither a file nor the id of a stored run")
    return [stored_run(source, store)]


def _is_in_store(source: str) -> bool:
    return source != "-" and not is_there(Path(source))


def chosen(records: Sequence[RunRecord], source: str, name: str | None) -> RunRecord:
    """Return the run that is meant, the only one if no name is given."""
    named = [record for record in records if name in (None, record.name)]
    if len(named) == 1:
        return named[0]
    names = list(dict.fromkeys(record.name for record in records))
    some = ", ".join(map(repr, names[:_SOME])) + (", ..." if len(names) > _SOME else "")
    found = "" if name is None else f", found {name!r}"
    raise InvalidInput(f"{source} has the benchmarks {some}: choose one with --column{found}")


def recorded_runs(
    source: str, options: Options | None = None, *, column: str | None = None
) -> list[RunRecord] | None:
    """Read all runs of a file or folder, or those with a name; None if no known tool wrote it.

    None also if ``column`` is not a benchmark in it but a path to other readings. A pipe can be
    read only once, so it counts as readings, and so does an empty file, and a file from which
    options leave out lines or rows.
    """

    def arrange(found: Sequence[Result], place: str) -> list[RunRecord]:
        named = [result for result in found if result.name == column]
        return analyse_file(named or found, place, options)

    return _read(source, arrange, None, column)


def _read(
    source: str,
    arrange: Callable[[Sequence[Result], str], list[RunRecord]],
    wanted: Callable[[str], object] | None,
    column: str | None,
) -> list[RunRecord] | None:
    path = Path(source)
    is_full = is_there(path, Path.is_file) and path.stat().st_size > 0
    are_rows = ignored_lines() or rows_to_read() or skips_missing()
    if source == "-" or not (is_full or is_there(path, Path.is_dir)) or are_rows:
        return None
    found = results_in(source, wanted if column is None else column.__eq__)
    is_named = any(result.name == column for result in found or ())
    if found is None or (not is_named and has_path(source, column)):
        return None
    return arrange(found, source)


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
    return record if is_special(record) else ensure_analysed(record)
