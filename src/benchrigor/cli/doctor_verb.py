"""``benchrigor doctor``: whether this machine is fit to be measured on."""

from __future__ import annotations

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import print_result
from benchrigor.cli.verb_help import Verb
from benchrigor.model import codec
from benchrigor.model.notice import Fitness, verdict_of
from benchrigor.report.doctor_text import render_findings
from benchrigor.session.fitness import examine

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
