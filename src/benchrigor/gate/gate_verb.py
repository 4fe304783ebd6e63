"""``benchrigor gate``: whether a change makes any benchmark of a suite slower."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import LiveLine, live_line, print_result, remark, table_options
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.gate.measuring import measure_gate
from benchrigor.gate.ratios import Ratios
from benchrigor.gate.result import Gate
from benchrigor.gate.sides import Sources
from benchrigor.model import Progress
from benchrigor.model.shell_words import words_of
from benchrigor.report.fact import facts_of
from benchrigor.report.figures import markdown_of
from benchrigor.session.schedules import check_seed
from benchrigor.units import many, positive_seconds_of, show_duration
from benchrigor.workloads.worktrees import is_changed

_FOLDER = click.Path(file_okay=False, path_type=Path)
_SUMMARY = "GITHUB_STEP_SUMMARY"


@click.command(
    cls=Verb,
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND [ARG]...")
@click.option(
    "--rev",
    multiple=True,
    metavar="REVISION",
    help="Twice: the old and the new revision of the repository here, checked out for a while in "
    "folders of their own.",
)
@click.option("--old", type=_FOLDER, metavar="DIR", help="The folder of the old code.")
@click.option("--new", type=_FOLDER, metavar="DIR", help="The folder of the new code.")
@click.option(
    "--python",
    multiple=True,
    metavar="PROGRAM",
    help="Twice: the old and the new interpreter of Python, for the code here.",
)
@click.option("--build", metavar="COMMAND", help="Run in each revision first, up to an hour.")
@click.option(
    "--results",
    metavar="FILE",
    help="The file that the command writes its results to, in the folder of each side.  [default: "
    "what it prints; of pytest nothing need be named]",
)
@click.option(
    "--budget",
    "budget_s",
    type=shared.Typed("duration", positive_seconds_of),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="The time for all of it, such as 90, 5m or 1h; builds do not count.",
)
@shared.setting("margin", default=0.02)
@shared.setting("confidence")
@click.option(
    "--fail-on",
    type=click.Choice(["worse", "undecided", "never"]),
    default="worse",
    show_default=True,
    help="Which verdicts end with an exit code other than 0: worse (7); undecided (3) or worse; "
    "none.",
)
@shared.setting("seed")
@table_options
@click.option(
    "--summary",
    is_flag=True,
    help=f"Add the Markdown to the summary of a GitHub workflow, the file that {_SUMMARY} names.",
)
@shared.json_option
def gate(words: tuple[str, ...], **given: Any) -> None:
    """Run a suite of benchmarks in old and new code, in turn.

    The suite is a command: pytest with the fixture bench or benchmark, or any tool whose results
    `benchrigor compare` reads. It runs as it is, in a fresh process of each side, in blocks whose
    order is drawn. The first six blocks hold everything; then time goes to the benchmark that needs
    the least of it: tests of pytest by themselves, those of other tools if the command has a place
    for names ({filter}, a regular expression). It ends at the budget, or when every interval is
    narrower than the margin; never because a verdict appeared.

    All benchmarks are judged together. Some blocks also run a second copy of the old code: if it
    seems to differ from the first, no verdict can be believed, and the report says so.

    Exit codes: 0 a result, also undecided; 2 the budget is too short for six blocks, or bad input;
    3 undecided, with --fail-on undecided; 4 no benchmark has numbers of both sides; 5 a build or
    the command failed, or a benchmark fails on the new side only; 7 worse; 8 both sides would
    measure the same code.

    \b
    Examples:
      benchrigor gate --rev main --rev HEAD --budget 5m -- pytest benchmarks/
      benchrigor gate --rev main --rev HEAD --build 'cargo build --release' \\
          --results out.json -- hyperfine -N ./app --export-json out.json
      benchrigor gate --old old/ --new new/ -- go test -run - -bench {filter} -count 1
      benchrigor gate --python python3.12 --python python3.13 -- pytest bench/
    """  # noqa: D301  # click wants the backspace itself
    sources = Sources(
        words=words,
        revisions=given["rev"],
        folders=[place for place in (given["old"], given["new"]) if place is not None],
        pythons=given["python"],
        build=words_of(given["build"], by_shell=False) if given["build"] else (),
    )
    if given["summary"] and not os.environ.get(_SUMMARY):
        raise InvalidInput(f"--summary needs {_SUMMARY}, the file that workflows of GitHub name")
    if given["rev"] and is_changed():
        remark("uncommitted changes are in neither revision")
    if given["rev"] and not given["build"] and Path(".gitmodules").exists():
        remark("submodules are in neither revision: --build 'git submodule update --init'")
    asked = {name: given[name] for name in ("results", "margin", "budget_s", "confidence")}
    try:
        with live_line() as line, redirect_stdout(sys.stderr):
            found = measure_gate(
                sources, **asked, seed=check_seed(given["seed"]), progress=_shown_on(line)
            )
    except (BenchrigorError, KeyboardInterrupt) as error:
        so_far = getattr(error, "record", None)
        if isinstance(so_far, Gate) and so_far.family is not None:
            _tell(so_far, in_summary=given["summary"])
        raise
    _tell(found, in_summary=given["summary"])
    leave(_code_of(found, given["fail_on"]))


def _tell(found: Gate, *, in_summary: bool) -> None:
    """Print the report, and add it to the summary of a workflow."""
    print_result(facts=lambda: facts_of(found), gate=found.to_dict())
    if in_summary:
        _summarise(found)


def _shown_on(line: LiveLine) -> Any:
    def show(progress: Progress, ratios: Ratios) -> None:
        known, total = ratios.known
        left = show_duration(progress.seconds_left or 0.0)
        so_far = f"{known} of {many(total, 'benchmark')} known"
        line.show(f"{so_far} · block {progress.rounds} · at most {left} to go")

    return show


def _summarise(found: Gate) -> None:
    """Add the report to the summary of a workflow."""
    place = os.environ[_SUMMARY]
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{markdown_of(facts_of(found))}\n")
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error.strerror or error}") from error


def _code_of(found: Gate, fail_on: str) -> ExitCode:
    """Return the exit code: what broke counts first."""
    if found.broken:
        return ExitCode.WORKLOAD_FAILED
    if found.family is None:
        return ExitCode.NOTHING_MEASURED
    if not found.fails(fail_on):
        return ExitCode.RESULT
    return ExitCode.WORSE if found.verdict == "worse" else ExitCode.TARGET_MISSED
