"""``benchrigor changes``: change points and phases of recorded readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.output import print_result
from benchrigor.cli.recordings import readings_options, rounds_in
from benchrigor.cli.tables import plot_option, wants_picture, write_picture
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.formats.readings import Columns, name_of
from benchrigor.layout import wrapped
from benchrigor.model import Notice, Options, RunRecord, StablePhase, codec
from benchrigor.model.text import false_alarms
from benchrigor.report import plot_trace
from benchrigor.report.fact import Fact, list_rows, noticed, sentence
from benchrigor.report.facts.reading_facts import phase_table
from benchrigor.session.replays import record_with_changes
from benchrigor.units import counted, many


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
