"""``benchrigor analyze``: what recorded readings say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.output import print_json, report_of, say, summary
from benchrigor.cli.recordings import (
    chosen,
    readings_options,
    recorded_file,
    recorded_runs,
    say_unfinished,
)
from benchrigor.cli.tables import plot_option, wants_picture, write_picture
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.formats.readings import Columns, name_of
from benchrigor.model import Options, RunRecord
from benchrigor.report import explain as explanation
from benchrigor.report import plot_trace
from benchrigor.report.fact import page_of_facts
from benchrigor.report.tables import facts_of_runs
from benchrigor.session.replays import analyse_file, record_of_pairs
from benchrigor.stats.readings.given_metrics import SPEED


@click.command(
    cls=Verb,
    usual="--column --round --unit --work --target --confidence --statistic --trim --explain "
    "--details --plot --json",
)
@readings_options
@click.option("--work", metavar="COLUMN", help="Work amount of each round; --unit is theirs.")
@shared.setting("target", "Half-width wanted; exit code 3 when it is not reached.", default=None)
@shared.settings(
    *("confidence", "statistic", "method", "autocorrelation_limit", "trim", "detector")
)
@click.option("--explain", "explained", is_flag=True, help="Explain how the number came about.")
@shared.details_option
@plot_option
@shared.json_option
def analyze(
    *,
    source: str,
    columns: Columns,
    work: str | None,
    explained: bool,
    **given: Any,
) -> None:
    """Estimate the mean or a quantile of recorded readings, warm-up and cool-down removed.

    SOURCE is a CSV or JSON file, or - for standard input (the default), or what another tool wrote
    (pyperf, pytest-benchmark, hyperfine, ...; docs/formats.md). The readings of a column count as
    one continuous series, in the order in which they stand; with --round as readings of restarted
    rounds. Cells such as 998/1000 are successes of trials, one round each.

    With --work the readings are the durations, in seconds, of rounds with those amounts of work,
    and the speed is estimated: the line duration = overhead + work / speed.

    \b
    Examples:
      benchrigor analyze readings.csv --column time --unit s
      some-program | benchrigor analyze --explain
      benchrigor analyze readings.csv --unit s --statistic median --plot trace.png
      benchrigor analyze result.json --column latencies --target 2% --json
      benchrigor analyze starts.csv --column time --round start --unit ms
      benchrigor analyze load.csv --column rate --unit req/s,harmonic
      benchrigor analyze hyperfine.json --statistic median
      benchrigor analyze rounds.csv --work bytes --column seconds --unit B
    """  # noqa: D301  # click wants the backspace itself
    given |= {"target_given": True, "analysis": "auto" if work is None else "wps"}
    options = Options(**given)
    analyse = partial(analyse_file, options=options)
    records = recorded_runs(source, columns, analyse) if work is None else None
    are_all = columns.column is None and not (explained or wants_picture())
    if records is not None and len(records) > 1 and are_all:
        _show_all(records)
    if records is not None:
        record = chosen(records, source, columns)
    elif work is None:
        record = recorded_file(source, columns, options)
    elif columns.by is not None:
        raise InvalidInput("--work and --round are both given: each pair of --work is a round")
    else:
        pairs = columns.read_pairs(source, work)
        amounts, seconds = say_unfinished(pairs, source).series
        metric = replace(SPEED, unit=f"{columns.unit or ''}/s")
        record = record_of_pairs(amounts, seconds, options, metric, name=name_of(source))
    if shared.wants_json():
        print_json(summary(record))
    else:
        say(explanation(record) if explained else report_of(record))
    write_picture(lambda: plot_trace(record))
    leave(code_for(record))


def _show_all(records: Sequence[RunRecord]) -> NoReturn:
    """Show the benchmarks of a file as a table, and leave."""
    if shared.wants_json():
        print_json([summary(record) for record in records])
    else:
        say(page_of_facts(facts_of_runs(records)))
    leave(max(map(code_for, records)))
