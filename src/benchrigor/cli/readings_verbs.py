"""``benchrigor analyze``, ``changes``, ``plan``: what readings say, and how many more it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, NoReturn

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.output import (
    plot_option,
    print_json,
    print_result,
    report_of,
    say,
    summary,
    wants_picture,
    write_picture,
)
from benchrigor.cli.recordings import (
    chosen,
    column_options,
    readings_options,
    recorded_file,
    recorded_runs,
    recording,
    rounds_in,
    say_unfinished,
)
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.formats.readings import Columns, name_of
from benchrigor.layout import wrapped
from benchrigor.model import Notice, Options, RunRecord, StablePhase, codec
from benchrigor.model.text import false_alarms
from benchrigor.report import explain as explanation
from benchrigor.report import plot_trace
from benchrigor.report.fact import Fact, list_rows, noticed, page_of_facts, sentence
from benchrigor.report.facts.reading_facts import phase_table
from benchrigor.report.tables import facts_of_runs
from benchrigor.session.replays import analyse_file, record_of_pairs, record_with_changes
from benchrigor.session.sample_size import plan as planned
from benchrigor.stats.readings.given_metrics import SPEED
from benchrigor.units import counted, many


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


@click.command(cls=Verb)
@readings_options
@shared.share_option("--level", "1%", "Chance of any false change point.")
@click.option(
    "--min-segment",
    type=click.IntRange(min=2),
    metavar="N",
    help="Least readings between two change points, and at the ends: 10, or 30 with edm.",
)
@shared.setting("detector")
@shared.details_option
@plot_option
@shared.json_option
def changes(
    *,
    source: str,
    columns: Columns,
    level: float,
    min_segment: int | None,
    detector: str,
) -> None:
    """Find the change points and phases of recorded readings.

    SOURCE is a CSV or JSON file, or - for standard input (the default). The phases are those that
    `benchrigor analyze` finds. With --round change points are searched in each round by itself,
    and the phases are those that the rounds share. A step that slow noise explains is a change
    point, but parts no phases. Exit code 4 when the readings have no mean.

    A change needs --min-segment readings on both sides. Fewer at an end that are clearly at another
    level are too few to call, except by edm: they are not part of the stable phase, and a warning
    counts them.

    \b
    Examples:
      benchrigor changes readings.csv --column time --unit s
      benchrigor changes readings.csv --unit s --plot trace.png
      benchrigor changes readings.csv --min-segment 5
      benchrigor changes starts.csv --column time --round start --json
    """  # noqa: D301  # click wants the backspace itself
    rounds, metric = rounds_in(source, columns)
    if rounds.trials is not None:
        raise InvalidInput(f"{name_of(source)} holds counts, expected readings")
    if wants_picture() and rounds.labels:
        raise InvalidInput("--plot draws one series, and --round divides it: leave one of them out")
    record = record_with_changes(
        rounds.series,
        Options(detector=detector),
        metric,
        name=name_of(source),
        level=level,
        min_segment=min_segment,
    )
    record = replace(record, session_notices=(*rounds.notices, *record.session_notices))
    (analysis,) = record.analyses
    if not rounds.labels:
        fields = codec.encode(analysis.phases[0])
        fields["notices"] = [*codec.encode(record.session_notices), *fields["notices"]]
    else:
        named = zip(rounds.labels, analysis.phases, strict=True)
        fields = {
            "rounds": [{"round": label, **codec.encode(phase)} for label, phase in named],
            "notices": codec.encode(record.notices),
        }
    print_result(facts=lambda: [*_facts_of(record, rounds.labels)], **fields)
    title = click.format_filename(record.name, shorten=True)
    write_picture(lambda: plot_trace(replace(record, name=title)))
    leave(code_for(record))


def _facts_of(record: RunRecord, labels: Sequence[str]) -> Iterator[Fact]:
    """Yield the change points and phases of each round, and what to know about them."""
    (analysis,), shown = record.analyses, list[Notice]()
    for label, stable in zip_longest(labels, analysis.phases):
        if label is not None:
            yield sentence("round", f"round {label}")
        yield from _facts_of_phases(stable, analysis.metric.unit)
        shown += stable.notices
    yield from noticed(notice for notice in record.notices if notice not in shown)


def _facts_of_phases(stable: StablePhase, unit: str) -> list[Fact]:
    points = stable.change_points
    where = ", ".join(counted(index) for index in points.indices) or "none"
    size = many(points.n, "reading")
    text = f"{where} (of {size}, {false_alarms(points.level)})"
    return [
        list_rows("changes", [*wrapped(text, "change points: "), *phase_table(stable, unit)]),
        *noticed(stable.notices),
    ]


@click.command(cls=Verb)
@click.argument("source", metavar="RUN|FILE")
@shared.share_option("--change", "3%", "Change to be seen.")
@shared.share_option("--power", "80%", "Chance of seeing such a change.")
@shared.setting(
    "margin",
    "Changes below this do not matter: the whole interval must lie beyond.",
    default=0.0,
)
@shared.setting("confidence", "Confidence of its interval.", usual="as in the run", default=None)
@click.option(
    "--half-width",
    "half_widths",
    type=shared.SHARE,
    multiple=True,
    default=("5%", "2%", "1%", "0.5%"),
    show_default=True,
    help="Price an interval of this half-width; may be given several times.",
)
@shared.setting("detector", usual="as in the run; ranks for a file", default=None)
@shared.metric_option
@column_options
@shared.store_option
@shared.json_option
def plan(
    source: str,
    *,
    columns: Columns,
    detector: str | None,
    **options: Any,
) -> None:
    """Plan how much to measure to see a change, from an earlier measurement.

    The source is a stored run (the beginning of its id is enough), or a CSV or JSON file of
    readings (- for standard input). A short run is enough: it may have missed its target.

    Sizes are readings, or invocations if the run's rounds were restarted. A comparison needs the
    given size on either side. The range in brackets shows how well the run knows its own noise.
    The prices are for single intervals.

    \b
    Examples:
      benchrigor plan 3f2a
      benchrigor plan 3f2a --change 2% --margin 1% --power 90%
      benchrigor plan 3f2a --half-width 1% --half-width 0.1% --json
      benchrigor plan starts.csv --column time --round start --unit ms
    """  # noqa: D301  # click wants the backspace itself
    record = recording(source, columns)
    if detector is not None:
        (record,) = analyse_file([record], source, replace(record.options, detector=detector))
    sizes = planned(record, **options)
    print_result(lambda: sizes, run_id=record.run_id, plan=sizes)
