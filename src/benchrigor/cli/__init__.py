"""The command line: one file per verb."""

from __future__ import annotations

import click

from benchrigor.cli.analyze_verb import analyze
from benchrigor.cli.changes_verb import changes
from benchrigor.cli.compare_verb import compare
from benchrigor.cli.exits import Verbs
from benchrigor.cli.explain_verb import explain
from benchrigor.cli.export_verb import export
from benchrigor.cli.interference_verb import interference
from benchrigor.cli.list_verb import list_runs
from benchrigor.cli.plan_verb import plan
from benchrigor.cli.rate_verb import rate
from benchrigor.cli.replay_verb import replay
from benchrigor.cli.resume_verb import resume
from benchrigor.cli.run_verb import run
from benchrigor.cli.show_verb import show
from benchrigor.cli.trackrecord_verb import track_record

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
      0    satisfied: the interval is as narrow as was asked for; of a comparison:
           better, equivalent, or different (which way is better is not known)
      2    bad input: an option, a file or a reading that cannot be worked with
      3    not converged: a budget was spent, or the run was stopped, before that;
           or undecided: of a comparison
      4    nothing measured: the readings allow no number
      5    the workload failed
      6    the store cannot be read or written, or has no such run
      7    worse: the candidate of a comparison, by more than the margin
      130  interrupted twice
    """  # noqa: D301  # click wants the backspace itself


_verbs = [run, analyze, changes, compare, replay, list_runs, show, explain, export]
_verbs += [interference, rate, plan, track_record, resume]
for _verb in _verbs:
    main.add_command(_verb)
