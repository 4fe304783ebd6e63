"""``benchrigor changes``: change points and phases of recorded readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import print_result
from benchrigor.cli.picture import plot_option, write_picture
from benchrigor.cli.sources import RecordedRounds, name_of, read_rounds
from benchrigor.control_characters import page
from benchrigor.errors import InvalidInput
from benchrigor.model import Kind, Options, PhaseLabel, StablePhase, codec
from benchrigor.model.metric import describe_metric
from benchrigor.model.text import counted, false_alarms, many, marked, wrapped
from benchrigor.report import plot_phases
from benchrigor.report.text import phase_table
from benchrigor.session.analysis_chain import Material
from benchrigor.session.replays.recorded_phases import phases_of
from benchrigor.stats.changepoints.detector import MIN_SEGMENT


@click.command()
@shared.readings_options
@shared.share_option("--level", "1%", "Chance of any false change point.")
@click.option(
    "--min-segment",
    type=click.IntRange(min=2),
    metavar="N",
    default=MIN_SEGMENT,
    show_default=True,
    help="Least readings between two change points, and at the ends.",
)
@shared.choice_option("--detector", shared.DETECTOR)
@plot_option
@shared.json_option
def changes(
    *,
    source: str,
    column: str | None,
    by: str | None,
    unit: str | None,
    level: float,
    min_segment: int,
    detector: str,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Find the change points and phases of recorded readings.

    SOURCE is a CSV or JSON file, or - for standard input (the default). The phases are those that
    `benchrigor analyze` finds. With --round change points are searched in each round by itself,
    and the phases are those that the rounds share. A step that slow noise explains is a change
    point, but parts no phases. Exit code 4 when there is no stable phase.

    A change needs --min-segment readings on both sides. Fewer at an end that are clearly at another
    level are too few to call: they are no part of the stable phase, and a warning counts them.

    \b
    Examples:
      benchrigor changes readings.csv --column time --unit s
      benchrigor changes readings.csv --unit s --plot trace.png
      benchrigor changes readings.csv --min-segment 5
      benchrigor changes starts.csv --column time --round start --json
    """  # noqa: D301  # click wants the backspace itself
    rounds = read_rounds(source, column, by)
    if rounds.trials is not None:
        raise InvalidInput(f"{name_of(source)} holds counts, expected readings")
    if picture and by is not None:
        raise InvalidInput("--plot draws one series, and --round divides it: leave one of them out")
    metric = describe_metric("readings", unit or "")
    unit = metric.unit
    material = Material(
        metric=metric,
        options=Options(detector=detector),
        kind=Kind.UNIT_READINGS if by is None else Kind.INVOCATIONS,
        series=rounds.series,
    )
    phases = phases_of(material, level=level, min_segment=min_segment)
    if by is None:
        fields = codec.encode(phases[0])
    else:
        named = zip(rounds.labels, phases, strict=True)
        fields = {"rounds": [{"round": name, **codec.encode(each)} for name, each in named]}
    print_result(lambda: page(_report(phases, rounds, unit)), as_json=as_json, **fields)
    if picture:
        title = click.format_filename(name_of(source), shorten=True)
        write_picture(plot_phases(rounds.series[0], phases[0], unit=unit, title=title), picture)
    labels = {part.label for each in phases for part in each.phases}
    if PhaseLabel.STABLE not in labels:
        leave(ExitCode.NOTHING_MEASURED)


def _report(phases: Sequence[StablePhase], rounds: RecordedRounds, unit: str) -> Iterator[str]:
    for index, stable in enumerate(phases):
        if rounds.labels:
            yield f"round {rounds.labels[index]}"
        yield from _phases(stable, unit)


def _phases(stable: StablePhase, unit: str) -> list[str]:
    points = stable.change_points
    where = ", ".join(counted(index) for index in points.indices) or "none"
    size = many(points.n, "reading")
    return [
        *wrapped(f"{where} (of {size}, {false_alarms(points.level)})", "change points: "),
        *(f"  {line}" for line in phase_table(stable, unit)),
        *(line for notice in stable.notices for line in marked(notice)),
    ]
