"""``benchrigor doctor`` and ``track-record``: whether a machine and intervals can be trusted."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import print_result, remark
from benchrigor.cli.verb_help import Verb
from benchrigor.layout import Part, join_pages, page, wrapped
from benchrigor.model import RunRecord, codec
from benchrigor.model.comparison import TrackRecord
from benchrigor.model.decision import COMPLETE
from benchrigor.model.notice import Fitness, verdict_of
from benchrigor.report.facts.machine_facts import render_findings
from benchrigor.session.fitness import examine
from benchrigor.stats.planning import pair_runs, track_records
from benchrigor.storage import Journal
from benchrigor.units import counted

_CODES = {
    Fitness.OK: ExitCode.RESULT,
    Fitness.DOUBTFUL: ExitCode.TARGET_MISSED,
    Fitness.UNFIT: ExitCode.NOTHING_MEASURED,
}


@click.command(cls=Verb)
@shared.details_option
@shared.json_option
def doctor() -> None:
    """Look whether this machine is fit to be measured on; no setting is changed.

    It does fixed work for a second, and looks at the clock, at what else runs, at the settings of
    the processors, and at what raises alarms. Each finding says what to do, and which Notice it
    leads to in a run. The exit code is 0 where the machine is fit, 3 where that is doubtful, 4
    where it is unfit; unknown findings do not count.

    \b
    Examples:
      benchrigor doctor
      benchrigor doctor --json
      benchrigor doctor && benchrigor run mypackage.bench:parse
    """  # noqa: D301  # click wants the backspace itself
    findings = examine()
    verdict = verdict_of(findings)
    print_result(
        lambda: render_findings(findings, whole=shared.wants_details()),
        verdict=verdict,
        findings=codec.encode(findings),
    )
    leave(_CODES[verdict])


_COUNTS = 14  # Columns of the counts before a name
_NOTHING = (
    "no two stored runs{of} can be compared: it takes two that measured the same thing on one "
    "machine, from the same commit, each until its target was met or out of reach"
)


@click.command(name="track-record", cls=Verb)
@click.option("--name", default="", help="Only runs with this in their name.")
@shared.store_option
@shared.json_option
def track_record(name: str) -> None:
    """Show how often the intervals of stored runs held.

    Runs of the same thing on one machine are taken in pairs, the first with the second, the
    third with the fourth. An interval held if it agrees with the headline of the later run,
    given the error of both. 95% intervals should hold 95 times in 100; if yours hold less often,
    runs differ by more than one run can see.

    Runs are the same when name, command or function, interpreter, commit, metric, statistic, method
    and confidence are; only runs that met their target or found it out of reach count. What changed
    in between without a commit counts against the intervals.

    \b
    Examples:
      benchrigor track-record
      benchrigor track-record --name gzip
      benchrigor track-record --store ci.sqlite --json
    """  # noqa: D301  # click wants the backspace itself
    records = track_records(pair_runs(_complete(shared.existing_store(), name)))
    if records or shared.wants_json():
        documents = [{**codec.encode(record), "share": record.share} for record in records]
        text = partial(join_pages, map(_section, records))
        print_result(text, track_records=documents)
    else:
        sentence = _NOTHING.format(of=f" of {name!r}" if name else "")
        remark(sentence)
    if not records:
        leave(ExitCode.NOTHING_MEASURED)


def _complete(opened: Journal, name: str) -> Iterator[RunRecord]:
    """Load the complete runs, one at a time: they may hold many readings."""
    for run in opened.runs(name):
        if name in run["name"] and run["reason"] in COMPLETE:
            yield opened.load(run["run_id"])


def _section(record: TrackRecord) -> str:
    """Return the sentence, and below it the counts by name."""
    here = record.host == platform.node()
    lines: list[Part] = [str(replace(record, host=None) if here else record)]
    if len(record.by_name) > 1:
        lines.append("")
        for tally in record.by_name:
            counts = f"  {counted(tally.held)} of {counted(tally.pairs)} "
            lines += wrapped(tally.name, f"{counts:<{_COUNTS}}")
    return page(lines)
