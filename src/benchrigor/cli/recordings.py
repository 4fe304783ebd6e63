"""Recorded readings: a stored run, a saved record, or a file of readings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from benchrigor.cli.exits import ExitCode, code_of_family
from benchrigor.cli.options import existing_store, together
from benchrigor.cli.output import is_special, module_for, remark
from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.formats.readings import Columns, RecordedRounds, has_path, name_of
from benchrigor.formats.recognition import Result, results_in
from benchrigor.model import Code, Metric, Options, RunRecord
from benchrigor.model.checks import refuse
from benchrigor.model.codec import is_there
from benchrigor.model.comparison import SuiteComparison
from benchrigor.model.metric import describe_metric
from benchrigor.model.run import PART_OF
from benchrigor.session.pairs.run_comparison import compare_suites
from benchrigor.session.replays import (
    analyse_file,
    arrange_file,
    ensure_analysed,
    record_of_readings,
    recording_of,
)
from benchrigor.storage.user_settings import metric_named
from benchrigor.units import first_few

_RUN_ID = re.compile(r"[0-9a-f]+")
_SOME = 10  # names that an error lists
_analyse = partial(analyse_file, options=None)

_COLUMN = (
    "Name or number (from 0) of the CSV column, key of the JSON objects, path in JSON "
    "(results.0.times), or name of the benchmark in what another tool wrote."
)


def _condition(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not (column and equals):
        raise click.BadParameter(f"{text!r} selects no rows, expected COLUMN=VALUE")
    return column, value


def _gathered(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb one `Columns` for the options that say where readings stand."""

    @wraps(command)
    def verb(**given: Any) -> Any:
        own = {
            field.name: given.pop(field.name) for field in fields(Columns) if field.name in given
        }
        return command(columns=Columns(**own), **given)

    return verb


_place_options = together(
    click.option(
        "--ignore-lines",
        "ignored",
        type=click.IntRange(min=0),
        metavar="N",
        default=0,
        help="Do not read the first N lines of a file.",
    ),
    click.option(
        "--missing",
        "skips_missing",
        callback=lambda _context, _option, value: value == "skip",
        type=click.Choice(["fail", "skip"]),
        default="fail",
        show_default=True,
        help="What to do with a row whose reading is empty or N/A.",
    ),
    click.option(
        "--where",
        type=_condition,
        multiple=True,
        metavar="COLUMN=VALUE",
        help="Read only rows with this value in this column; repeat it to narrow further.",
    ),
    click.option(
        "--round",
        "by",
        metavar="COLUMN",
        help="Column, or key, that says of which restarted round a reading is: each has its own "
        "warm-up.",
    ),
    click.option(
        "--unit",
        metavar="UNIT[,WORD]...",
        help="Unit of a file's readings, and words for their kind: lower, higher; arithmetic, "
        "harmonic; time, rate, share, other; ±2% (half-width wanted).",
    ),
    _gathered,
)

column_options = together(click.option("--column", help=_COLUMN), _place_options)

columns_options = together(
    click.option("--column", "chosen", multiple=True, help=f"{_COLUMN} Once, or once for each."),
    _place_options,
)

readings_options = together(click.argument("source", default="-"), column_options)


def read_with_metric(source: str, columns: Columns) -> tuple[RecordedRounds, Metric]:
    """Read the readings, and their metric as ``unit``, the project or the cells describe it."""
    is_numbered = columns.column is None or columns.column.isdigit()
    name = "readings" if is_numbered else str(columns.column)
    unit = metric_named(name, columns.unit).unit
    rounds = say_unfinished(columns.read(source, unit), source)
    is_asked = bool(columns.unit and describe_metric(name, columns.unit).unit)
    if unit and rounds.unit not in {"", unit} and not is_asked:
        raise InvalidInput(
            f"{source} has readings in {rounds.unit!r}, and pyproject.toml describes {name} in "
            f"{unit!r}: choose one with --unit"
        )
    return rounds, metric_named(name, columns.unit, unit=rounds.unit)


def say_unfinished(rounds: RecordedRounds, source: str) -> RecordedRounds:
    """Say on stderr that the last line of a file has not ended."""
    if rounds.unfinished is not None:
        remark(f"{name_of(source)} {rounds.unfinished}")
    return rounds


def recording(source: str, columns: Columns) -> RunRecord:
    """Read a run, or make one of the readings of a file.

    ``source`` is a file (results of a tool, a saved record, CSV or JSON), a folder of results, "-"
    for standard input, or else the id of a stored run, or its beginning.
    """
    records = all_runs(source, columns)
    if records is None:
        return recorded_file(source, columns, Options())
    record = chosen(records, source, columns)
    if is_special(record):
        raise InvalidInput(
            f"{source} is {module_for(record).noun_of(record)}, expected readings of one workload: "
            f"`benchrigor show {source}` shows its result"
        )
    return record


def recordings(
    source: str,
    columns: Columns,
    *,
    wanted: Callable[[str], object] | None = None,
) -> list[RunRecord]:
    """Read all benchmarks of a file that no column chooses from, not analysed; else as one."""
    found = recorded_runs(source, columns, arrange_file, wanted)
    if found is not None and columns.column is not None:
        found = [chosen(found, source, columns)]
    if found is None or any(map(is_special, found)):
        return [recording(source, columns)]
    _check_options(found[0], source, columns)
    return found


def recorded_file(source: str, columns: Columns, options: Options) -> RunRecord:
    """Make a run of the readings of a file."""
    rounds, metric = read_with_metric(source, columns)
    return record_of_readings(
        rounds.series, options, metric, name=name_of(source), weights=rounds.trials
    )


def rounds_in(source: str, columns: Columns) -> tuple[RecordedRounds, Metric]:
    """Read the readings of a column, or of a benchmark of a tool, and their metric."""
    records = recorded_runs(source, columns)
    if records is None:
        return read_with_metric(source, columns)
    record = chosen(records, source, columns)
    found = recording_of(record)
    labels = tuple(map(str, range(len(found.series)))) if len(found.series) > 1 else ()
    notices = record.session_notices
    return RecordedRounds(series=found.series, labels=labels, notices=notices), found.metric


def recorded_run(source: str, name: str | None = None) -> RunRecord | None:
    """Read a run from results of a tool or the store; None for standard input and other files.

    ``name`` says which benchmark of a file is meant.
    """
    columns = Columns(column=name)
    records = all_runs(source, columns)
    return None if records is None else chosen(records, source, columns)


def all_runs(source: str, columns: Columns) -> list[RunRecord] | None:
    """Read all runs of a file or folder, or one from the store; None as from `recorded_runs`."""
    if not _is_in_store(source):
        return recorded_runs(source, columns)
    if not _RUN_ID.fullmatch(source):
        raise InvalidInput(f"{source} is neither a file nor the id of a stored run")
    return [stored_run(source)]


def _is_in_store(source: str) -> bool:
    return source != "-" and not is_there(Path(source))


def chosen(records: Sequence[RunRecord], source: str, columns: Columns) -> RunRecord:
    """Return the run that is meant, the only one if no column names it; from the store, its own."""
    name = None if _is_in_store(source) else columns.column
    named = [record for record in records if name in (None, record.name)]
    if len(named) == 1:
        _check_options(named[0], source, columns)
        return named[0]
    names = list(dict.fromkeys(record.name for record in records))
    some = ", ".join(map(repr, names[:_SOME])) + (", ..." if len(names) > _SOME else "")
    found = "" if name is None else f", found {name!r}"
    raise InvalidInput(f"{source} has the benchmarks {some}: choose one with --column{found}")


def _check_options(record: RunRecord, source: str, columns: Columns) -> None:
    """Refuse options for facts that are in the file of a tool."""
    given = {"--round": columns.by, "--unit": columns.unit}
    refuse(
        f"{option} is given, but {source} is of {record.subject['tool']}, which says it itself"
        for option, value in given.items()
        if value is not None and "tool" in record.subject
    )


def recorded_runs(
    source: str,
    columns: Columns,
    arrange: Callable[[Sequence[Result], str], list[RunRecord]] = _analyse,
    wanted: Callable[[str], object] | None = None,
) -> list[RunRecord] | None:
    """Read all runs of a file or folder, or those with a name; None if no known tool wrote it.

    None also if the column is not a benchmark in it but a path to other readings. A pipe can be
    read only once, so it counts as readings, and so does an empty file, and a file from which
    lines or rows are left out.
    """
    path, column = Path(source), columns.column
    is_full = is_there(path, Path.is_file) and path.stat().st_size > 0
    if source == "-" or not (is_full or is_there(path, Path.is_dir)) or columns.leaves_out:
        return None
    found = results_in(source, wanted if column is None else column.__eq__)
    named = [result for result in found or () if result.name == column]
    if found is None or (not named and has_path(source, column)):
        return None
    return arrange(named or found, source)


def stored_run(run_id: str | None) -> RunRecord:
    """Load a run by the beginning of its id, or the last one, analysed also if it was cut off."""
    opened = existing_store()
    chosen = run_id
    if chosen is None:
        chosen = next((run["run_id"] for run in opened.runs()), None)
        if chosen is None:
            raise StoreFailed(f"no run in {opened.path}, expected one")
    record = opened.load(chosen)
    if run_id is None and PART_OF in record.subject:
        record = opened.load(record.subject[PART_OF])
    return record if is_special(record) else ensure_analysed(record)


_SOME_NAMES = 10  # names that an error lists


def compared_files(
    files: Sequence[tuple[str, Sequence[RunRecord]]],
    pattern: re.Pattern[str] | None,
    **options: Any,
) -> SuiteComparison:
    """Compare files with the first one; ``pattern`` is searched for in the names."""
    suites = dict(
        zip(
            _short([file for file, _ in files]),
            ({run.name: run for run in runs} for _, runs in files),
            strict=True,
        )
    )
    if pattern is not None:
        suites = _filter_suites(suites, pattern)
    return compare_suites(suites, **options)


def compile_filter(pattern: str | None) -> re.Pattern[str] | None:
    """Compile what --filter says."""
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise InvalidInput(
            f"--filter is {pattern!r}, expected a regular expression: {error}"
        ) from error


def _filter_suites(
    suites: Mapping[str, Mapping[str, RunRecord]], pattern: re.Pattern[str]
) -> dict[str, dict[str, RunRecord]]:
    kept = {
        file: {name: run for name, run in suite.items() if pattern.search(name)}
        for file, suite in suites.items()
    }
    if not any(kept.values()):
        every = dict.fromkeys(repr(name) for suite in suites.values() for name in suite)
        names = first_few([*every], _SOME_NAMES)
        raise InvalidInput(
            f"--filter is {pattern.pattern!r}, which is in none of the names: {names}"
        )
    return kept


def _short(sources: Sequence[str]) -> Sequence[str]:
    """Return the names of files, without their folders if these names differ."""
    names = [Path(source).name or source for source in sources]
    return names if len(set(names)) == len(names) else sources


def code_of_suites(suites: SuiteComparison, fail_on: str | None) -> ExitCode:
    """Return the exit code of all verdicts: worse if any is, else the greatest.

    Benchmarks that a file lacks are undecided: a change in them would go unseen.
    """
    codes = [code_of_family(family, fail_on) for family in suites.families.values()]
    codes += [
        ExitCode.NOT_COMPARABLE if why.code is Code.NOT_COMPARED else ExitCode.NOTHING_MEASURED
        for refused in suites.refused.values()
        for why in refused.values()
    ]
    if any(suites.missing.values()) and fail_on == "undecided":
        codes.append(ExitCode.TARGET_MISSED)
    return ExitCode.WORSE if ExitCode.WORSE in codes else max(codes, default=ExitCode.RESULT)
