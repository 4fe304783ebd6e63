"""``benchrigor convert``: results as a file that another tool reads."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_result, remark
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.recordings import all_runs
from benchrigor.cli.tables import force_option, refuse_those_there, write_files
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.formats.readings import Columns
from benchrigor.model import RunRecord
from benchrigor.report.writers.formats import FORMATS, format_of, write_records
from benchrigor.safe_text import page
from benchrigor.units import many


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
    print_result(lambda: page([done]), **told)


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
