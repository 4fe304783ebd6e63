"""The command line: one file per verb."""

from __future__ import annotations

import click

from benchrigor.cli import (
    analyze_verb,
    changes_verb,
    compare_verb,
    explain_verb,
    interference_verb,
    list_verb,
    plan_verb,
    rate_verb,
    replay_verb,
    resume_verb,
    run_verb,
    show_verb,
    trackrecord_verb,
)
from benchrigor.cli.exits import Verbs

__all__ = ["main"]


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 79},
)
@click.version_option(package_name="benchrigor")
def main() -> None:
    """Benchmark numbers whose error bars can be believed.

    \b
    Examples:
      benchrigor run gzip -k -f big.log
      benchrigor run --target 1% mypackage.bench:parse
      benchrigor analyze readings.csv --column time --unit s

    \b
    Exit codes:
      0    satisfied: the interval is as narrow as was asked for
      2    bad input: an option, a file or a reading that cannot be worked with
      3    not converged: a budget was spent, or the run was stopped, before that;
           or undecided: of a comparison
      4    nothing measured: the readings allow no number
      5    the workload failed
      6    the store cannot be read or written, or has no such run
      7    worse: the candidate of a comparison, by more than the margin
      130  interrupted twice
    """  # noqa: D301  # click wants the backspace itself


for _verb in (
    run_verb.run,
    analyze_verb.analyze,
    changes_verb.changes,
    compare_verb.compare,
    replay_verb.replay,
    list_verb.list_runs,
    show_verb.show,
    explain_verb.explain,
    interference_verb.interference,
    rate_verb.rate,
    plan_verb.plan,
    trackrecord_verb.track_record,
    resume_verb.resume,
):
    main.add_command(_verb)
