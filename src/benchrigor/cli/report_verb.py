"""``benchrigor report``: results as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_result
from benchrigor.cli.record_kinds import is_special
from benchrigor.cli.recordings import all_runs, compared_files, recorded_file, stored_run
from benchrigor.cli.tables import force_option, refuse_those_there, write_files
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import NotComparable, NotEstimable
from benchrigor.formats.readings import Columns
from benchrigor.model import Options, RunRecord
from benchrigor.model.codec import is_there
from benchrigor.model.run import are_in_turn
from benchrigor.report.html.pages import document_of
from benchrigor.report.html.sheet import DOUBTFUL, Sheet, sheet_of
from benchrigor.report.html.sheets import sheet_of_runs
from benchrigor.safe_text import page
from benchrigor.session.measuring import RunRecords
from benchrigor.session.pairs.run_comparison import compare_runs


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
    print_result(lambda: page(written), files=written)


def _runs_of(source: str) -> list[RunRecord]:
    """Read the runs of a source: one stored, all of a file of results, or one of a table."""
    runs = all_runs(source, Columns())
    return [recorded_file(source, Columns(), Options())] if runs is None else runs


def _sheet_of_source(source: str, runs: list[RunRecord]) -> Sheet:
    return sheet_of(runs[0]) if len(runs) == 1 else sheet_of_runs(runs, source)


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
