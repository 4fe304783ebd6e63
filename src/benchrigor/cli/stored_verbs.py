"""What is done with stored runs and results: show, explain, export, convert, report."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from benchrigor import safe_text
from benchrigor.cli import options as shared
from benchrigor.cli.output import (
    are_wanted,
    force_option,
    is_replaced,
    is_special,
    module_for,
    outline,
    plot_option,
    print_json,
    print_record,
    print_result,
    refuse_those_there,
    remark,
    table_options,
    write_files,
    write_picture,
    write_tables,
)
from benchrigor.cli.recordings import (
    all_runs,
    compared_files,
    recorded_file,
    recorded_run,
    stored_run,
)
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput, NotComparable, NotEstimable
from benchrigor.formats.readings import Columns
from benchrigor.layout import page, wrapped
from benchrigor.model import Options, RunRecord
from benchrigor.model.codec import is_there
from benchrigor.model.run import are_in_turn
from benchrigor.model.text_tables import csv_text
from benchrigor.report import explain as explanation
from benchrigor.report import plot_trace
from benchrigor.report.fact import facts_of
from benchrigor.report.facts.reading_facts import explain_reading
from benchrigor.report.figures import TABLES
from benchrigor.report.html import DOUBTFUL, Sheet, document_of, sheet_of
from benchrigor.report.sheets import sheet_of_runs
from benchrigor.report.writers import FORMATS, format_of, write_records
from benchrigor.session.measuring import RunRecords
from benchrigor.session.pairs.run_comparison import compare_runs
from benchrigor.units import many


@click.command(cls=Verb)
@shared.last_run_argument
@shared.store_option
@shared.details_option
@plot_option
@table_options
@shared.json_option
def show(run_id: str | None) -> None:
    """Show the report of a stored run.

    The beginning of RUN_ID is enough; without one it is the last run. With --json the whole
    record is printed, raw readings included.

    \b
    Examples:
      benchrigor show
      benchrigor show 3f2a
      benchrigor show 3f2a --plot trace.png
      benchrigor show 3f2a --json > record.json
    """  # noqa: D301  # click wants the backspace itself
    record = stored_run(run_id)
    special = module_for(record) if is_special(record) else None
    if special is not None and are_wanted():
        raise InvalidInput(
            f"--markdown and --csv are for runs, and this is {special.noun_of(record)}"
        )
    if shared.wants_json():
        print_json(record.to_dict())
    elif special is not None:
        special.show(record)
    elif not is_replaced():
        print_record(record)
    if special is None:
        write_tables(lambda: facts_of(record))
    write_picture(lambda: plot_trace(record) if special is None else special.draw(record))


@click.command(cls=Verb)
@click.argument("source", required=False, metavar="[RUN|FILE]")
@shared.metric_option
@click.option("--column", metavar="NAME", help="Which benchmark of a file of several.")
@click.option(
    "--reading",
    type=int,
    metavar="N",
    help="Why a reading of the whole run counts, or does not; the first is 0.",
)
@shared.store_option
@shared.json_option
def explain(
    source: str | None, *, metric: str | None, column: str | None, reading: int | None
) -> None:
    """Explain step by step how the number of a run came about.

    That is a stored run (the beginning of its id is enough; without one the last), or a file of
    results: a saved record, or what another tool wrote.

    \b
    Examples:
      benchrigor explain
      benchrigor explain 3f2a
      benchrigor explain 3f2a --metric rate --json
      benchrigor explain 3f2a --reading 17
      benchrigor explain hyperfine.json --column "sleep 1"
    """  # noqa: D301  # click wants the backspace itself
    is_stored = source is None or not is_there(Path(source))
    record = stored_run(source) if is_stored else recorded_run(str(source), column)
    if record is None:
        raise InvalidInput(
            f"{source} is of no known tool: `benchrigor analyze --explain` reads columns"
        )
    if is_special(record) and reading is None:
        module_for(record).explain(record)
        return
    if reading is not None:
        told = explain_reading(record, reading, metric)
        print_result(lambda: page(wrapped(told["sentence"])), run_id=record.run_id, **told)
        return
    chosen = record.analysis(metric)
    print_result(
        lambda: explanation(record, metric),
        run_id=record.run_id,
        name=record.name,
        analysis=None if chosen is None else outline(chosen),
        decision=record.decision,
    )


@click.command(cls=Verb)
@click.argument("source", metavar="[RUN]", required=False)
@click.option(
    "--output",
    "-o",
    "folder",
    type=shared.OutputPath(file_okay=False, path_type=Path),
    required=True,
    help="Where to write them; made if it is not there.",
)
@force_option
@shared.store_option
@shared.json_option
def export(source: str | None, *, folder: Path, force: bool) -> None:
    """Write a run as CSV files, for other programs.

    RUN is a stored run (the beginning of its id is enough) or a saved record; without one it is the
    last run. Into the folder go

    \b
      readings.csv  every reading: metric, unit, round, index in the round, value,
                    phase, and whether it is kept
      rounds.csv    every round: work, durations, delay, and whether it counts
      summary.csv   the number of each metric: value, interval, n, method, notices

    Numbers have all their digits: read again they are the same.

    \b
    Examples:
      benchrigor export -o results
      benchrigor export record.json -o results --force
    """  # noqa: D301  # click wants the backspace itself
    record = stored_run(None) if source is None else recorded_run(source)
    if record is None:
        raise InvalidInput(f"{source} is not a saved record, expected one that show --json printed")
    paths = {name: folder / name for name in TABLES}
    refuse_those_there([*paths.values()], force=force)
    write_files({path: csv_text(TABLES[name](record)) for name, path in paths.items()})
    written = [str(path) for path in paths.values()]
    print_result(lambda: safe_text.page(written), run_id=record.run_id, files=written)


@click.command(cls=Verb)
@click.argument("source", metavar="IN")
@click.argument("output", metavar="OUT", type=shared.OutputPath(dir_okay=False, path_type=Path))
@click.option(
    "--to",
    "to",
    type=click.Choice(list(FORMATS)),
    help="The format.  [default: by the ending of OUT]",
)
@shared.metric_option
@force_option
@shared.store_option
@shared.json_option
def convert(
    source: str,
    output: Path,
    *,
    to: str | None,
    metric: str | None,
    force: bool,
) -> None:
    """Write results in the format of another tool.

    IN is a stored run (the beginning of its id is enough), a saved record, or what another tool
    wrote, with all of its benchmarks. OUT is one file, compressed if its name ends in .gz:

    \b
      pyperf   .json      readings of one metric; its warm-up is what does
                          not count
      csv      .csv       all readings: benchmark, metric, unit, round, index,
                          value, phase, and whether it is kept
      bencher  .bmf.json  numbers with intervals, of all metrics
      github              numbers with intervals of one metric, for
                          github-action-benchmark

    Exit codes: 8 if most runs failed, and the format cannot say so.

    \b
    Examples:
      benchrigor convert hyperfine.json pyperf.json
      benchrigor convert 3f2a readings.csv
      benchrigor convert suite.json.gz results.bmf.json
      benchrigor convert jmh.json history.json --to github --force
    """  # noqa: D301  # click wants the backspace itself
    to = to or format_of(str(output))
    refuse_those_there([output], force=force)
    records = _records(source)
    document = write_records(records, to, metric)
    content = document.text.encode(errors="backslashreplace")
    if output.name.lower().endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    write_files({output: content})
    for sentence in document.remarks:
        remark(sentence)
    done = f"{output}: {many(document.size, 'benchmark')} for {to}"
    told: dict[str, Any] = {"file": str(output), "format": to, "remarks": document.remarks}
    print_result(lambda: safe_text.page([done]), **told)


def _records(source: str) -> list[RunRecord]:
    """Read all benchmarks of a file or folder, or a stored run."""
    if source == "-":
        raise InvalidInput("'-' is not a path here, expected a file, a folder or a stored run")
    records = all_runs(source, Columns())
    if records is None:
        raise InvalidInput(f"{source} is of no known tool, expected results of one, or a run")
    special = next(filter(is_special, records), None)
    if special is not None:
        raise InvalidInput(f"{source} is {module_for(special).noun_of(special)}, expected readings")
    return records


@click.command(cls=Verb)
@click.argument("sources", nargs=-1, metavar="[RUN|FILE]...")
@click.option(
    "--output",
    "-o",
    "target",
    type=shared.OutputPath(dir_okay=False, path_type=Path),
    required=True,
    help="The HTML file to write.",
)
@force_option
@shared.store_option
@shared.json_option
def report(sources: tuple[str, ...], *, target: Path, force: bool) -> None:
    """Write what was found as one HTML file that a browser shows without a network.

    Each is a stored run (the beginning of its id is enough; without any the last), or a file of
    results. Of one file of several benchmarks each has its own part; several runs or files are
    compared with the first one, as `benchrigor compare` does.

    It needs `pip install 'benchrigor[report]'`.

    \b
    Examples:
      benchrigor report -o result.html
      benchrigor report 3f2a 81bc -o change.html
      benchrigor report old.json new.json -o suites.html --force
    """  # noqa: D301  # click wants the backspace itself
    refuse_those_there([target], force=force)
    read = {source: _runs_of(source) for source in sources} or {"": [stored_run(None)]}
    sheets = [_sheet_of_source(source, runs) for source, runs in read.items()]
    if len(read) > 1 and not any(is_special(run) for runs in read.values() for run in runs):
        sheets = [replace(_compared(read), members=sheets)]
    title = ", ".join(sheet.name for sheet in sheets)
    write_files({target: document_of(sheets, title)})
    written = [str(target)]
    print_result(lambda: safe_text.page(written), files=written)


def _runs_of(source: str) -> list[RunRecord]:
    """Read the runs of a source: one stored, all of a file of results, or one of a table."""
    runs = all_runs(source, Columns())
    return [recorded_file(source, Columns(), Options())] if runs is None else runs


def _sheet_of_source(source: str, runs: list[RunRecord]) -> Sheet:
    first, *more = runs
    if more:
        return sheet_of_runs(runs, source)
    made: Sheet = module_for(first).sheet(first) if is_special(first) else sheet_of(first)
    return made


def _compared(read: Mapping[str, list[RunRecord]]) -> Sheet:
    """Return the comparison of sources with the first one, or why there is none."""
    try:
        if any(len(runs) > 1 for runs in read.values()):
            return sheet_of(compared_files([*read.items()], None))
        runs = {source: run for source, (run,) in read.items()}
        if len(runs) > 2:
            return replace(sheet_of(RunRecords(runs)), members=())
        opened = shared.open_store()
        store = opened if is_there(opened.path) else None
        sides = [*runs.values()]
        return sheet_of(compare_runs(*sides, store=store, paired=are_in_turn(sides)))
    except (NotComparable, NotEstimable) as why:
        return Sheet(
            name=" and ".join(read),
            asked="How do they compare?",
            answer=str(why),
            tone=DOUBTFUL,
        )
