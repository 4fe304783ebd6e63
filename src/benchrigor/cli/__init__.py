"""The command line: one file per verb."""

from __future__ import annotations

import click

from benchrigor import __version__
from benchrigor.cli.verbs import Verbs

__all__ = ["main"]


@click.group(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 79}
)
@click.version_option(__version__)
def main() -> None:
    """Benchmark numbers whose error bars can be believed.

    \b
    Examples:
      benchrigor run gzip -k -f big.log
      benchrigor run --target 1% mypackage.bench:parse
      benchrigor analyze readings.csv --column time --unit s

    \b
    Exit codes:
      0    a result; of a comparison: better, equivalent, undecided, or different
           (which way is better is not known)
      2    bad input: an option, a file or a reading that cannot be worked with
      3    a target that was asked for, by --target or with the metric, was not
           reached; or undecided, with --fail-on undecided; or doubtful: of
           doctor
      4    nothing measured: the readings allow no number; or unfit: of doctor
      5    the workload failed
      6    the store cannot be read or written, or has no such run; or the result,
           or the output of a command, cannot be written
      7    worse: the candidate of a comparison, by more than the margin
      8    not comparable: units differ, or most runs of a side failed
      130  interrupted twice; 128 + N: ended by signal N, such as 143 by SIGTERM,
           or 141 where nothing reads the output any more
    """  # noqa: D301  # click wants the backspace itself
