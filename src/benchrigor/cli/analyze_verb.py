"""``benchrigor analyze``: what recorded readings say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import print_json, summary
from benchrigor.cli.picture import plot_option, write_picture
from benchrigor.cli.sources import name_of, read_readings
from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, Options, Round, RunRecord
from benchrigor.report import explain as explanation
from benchrigor.report import plot_trace, render
from benchrigor.session import Engine
from benchrigor.session.replays.recorded_run import record_of_pairs
from benchrigor.session.traces import SPEED


@click.command(short_help="Estimate the mean or a quantile of recorded readings.")
@shared.readings_options
@click.option("--work", metavar="COLUMN", help="Work amount of each round; --unit is theirs.")
@shared.share_option("--target", None, "Half-width wanted; exit code 3 when it is not reached.")
@shared.confidence_option()
@shared.statistic_options
@shared.trim_option
@shared.choice_option("--detector", shared.DETECTOR)
@click.option("--explain", "explained", is_flag=True, help="Explain how the number came about.")
@plot_option
@shared.json_option
def analyze(
    *,
    source: str,
    column: str | None,
    work: str | None,
    unit: str,
    explained: bool,
    picture: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Estimate the mean or a quantile of recorded readings, warm-up and cool-down removed.

    SOURCE is a CSV or JSON file, or - for standard input (the default). The readings count as
    one continuous series, in the order in which they stand.

    With --work the readings are the durations, in seconds, of rounds with those amounts of work,
    and the speed is estimated: the line duration = overhead + work / speed.

    \b
    Examples:
      benchrigor analyze readings.csv --column time --unit s
      some-program | benchrigor analyze --explain
      benchrigor analyze readings.csv --unit s --statistic median --plot trace.png
      benchrigor analyze result.json --column latencies --target 2% --json
      benchrigor analyze rounds.csv --work bytes --column seconds --unit B
    """  # noqa: D301  # click wants the backspace itself
    options = Options(**given)
    if work is None:
        name = "readings" if column is None or column.isdigit() else column
        record = _of_readings(source, column, options, Metric(name=name, unit=unit))
    else:
        record = _of_pairs(source, (work, column), options, replace(SPEED, unit=f"{unit}/s"))
    if as_json:
        print_json(summary(record))
    else:
        click.echo(explanation(record) if explained else render(record))
    if picture:
        write_picture(plot_trace(record), picture)
    estimate = record.estimate()
    if estimate is None:
        leave(ExitCode.NOTHING_MEASURED)
    if options.target is not None and estimate.relative_half_width > options.target:
        leave(ExitCode.NOT_CONVERGED)


def _of_readings(source: str, column: str | None, options: Options, metric: Metric) -> RunRecord:
    readings = read_readings(source, column)
    whole = replace(options, readings_per_round=readings.size)
    engine = Engine(whole, (metric,), name=name_of(source), recorded=True)
    plan = engine.ask()
    assert plan is not None  # noqa: S101  # a new engine always has a plan
    engine.tell(Round(plan=plan, elapsed_ns=0, unit_readings={metric.name: readings}))
    return engine.result()


def _of_pairs(
    source: str, columns: tuple[str, str | None], options: Options, metric: Metric
) -> RunRecord:
    if source == "-":
        raise InvalidInput("--work reads two columns, expected a file rather than standard input")
    work, seconds = (read_readings(source, column) for column in columns)
    return record_of_pairs(work, seconds, options, metric, name=name_of(source))
