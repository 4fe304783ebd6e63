"""``benchrigor ab``: two functions or commands, measured in turn, and a verdict on their ratio."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.compare_verb import fail_on_option, print_comparison
from benchrigor.cli.driving import gentle_interrupt
from benchrigor.cli.exits import code_of, leave
from benchrigor.cli.output import live_line, remark
from benchrigor.cli.tables import table_options
from benchrigor.cli.targets import command_target, interpreter_target
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.model import Comparison, Options, StopReason
from benchrigor.model.checks import refuse
from benchrigor.model.run import BASELINE, CANDIDATE
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Workload
from benchrigor.safe_text import hide_secrets
from benchrigor.session import measure_pair
from benchrigor.session.engine import Engine
from benchrigor.session.pairs.ratio import Ratio
from benchrigor.units import many
from benchrigor.workloads.named_functions import imported, names_function
from benchrigor.workloads.worktrees import Checkout, is_changed, worktrees


@click.command(
    cls=Verb,
    usual="--fresh --python --rev --build --margin --statistic --budget --timeout "
    "--fail-on --details --no-store --store --json",
)
@click.argument("words", nargs=-1, required=True, metavar="OLD NEW | TARGET")
@click.option(
    "--fresh", is_flag=True, help="Measure functions in a fresh interpreter for each round."
)
@click.option(
    "--python",
    multiple=True,
    metavar="PROGRAM",
    help="An interpreter; twice for one function under two of them.",
)
@click.option(
    "--rev",
    multiple=True,
    metavar="REVISION",
    help="Twice: one function or command in two revisions of the repository here, checked out for "
    "a while in folders of their own.",
)
@click.option("--build", metavar="COMMAND", help="Run in each revision first, up to an hour.")
@shared.shell_option
@shared.process_options
@shared.setting("margin")
@shared.setting("target", "Half-width of the ratio wanted.", usual="half the margin", default=None)
@shared.settings(
    "confidence", "statistic", "detector", "budget_s", "preset", "gc", "batch", "timeout_s"
)
@fail_on_option
@shared.setting("seed")
@shared.kept_options
@shared.details_option
@table_options
@shared.json_option
def ab(words: tuple[str, ...], **given: Any) -> None:
    """Measure two functions or commands in turn, and say whether the new one is better or worse.

    Readings come in blocks old-new-new-old or the reverse, so that drift of the machine cancels;
    with --fresh, revisions and commands, whole processes do. Fresh interpreters run side by side,
    and hand over every three milliseconds. It ends when the ratio is known well enough, never
    because a verdict appeared. A command with arguments stands in quotes; no shell reads it without
    --shell. Ctrl-C ends it after the round under way, with the result so far. Each side is kept
    as a run: compare --paired reads both again.

    Exit codes: 0 a result, 3 undecided with a --target that was given and missed, or with --fail-on
    undecided, 4 no number, 5 one failed, 7 worse.

    \b
    Examples:
      benchrigor ab mypackage.bench:parse mypackage.bench:parse_fast
      benchrigor ab --fresh mypackage.bench:parse mypackage.bench:parse_fast
      benchrigor ab 'gzip -k -c big.log' 'zstd -k -c big.log'
      benchrigor ab --python python3.11 --python python3.13 mypackage.bench:parse
      benchrigor ab --rev main --rev HEAD mypackage.bench:parse
      benchrigor ab --rev v1.0 --rev HEAD --build 'make' './program --version'
    """  # noqa: D301  # click wants the backspace itself
    _check(words, given)
    chosen = ("margin", "target", "confidence", "statistic", "detector")
    options = {name: given[name] for name in (*chosen, "budget_s", "preset", "seed")}
    goals = list[Ratio]()
    with (
        _label_sides(words, given) as (named, sides),
        live_line() as line,
        redirect_stdout(sys.stderr),
        ExitStack() as stack,
    ):
        labels = [hide_secrets(name) for name in named]

        def began(pairs: Engine[Ratio]) -> None:
            goals.append(pairs.goal)
            pairs.goal.command_line = shared.command_line()
            stack.enter_context(gentle_interrupt([pairs], None, line))

        options |= {"began": began, "progress": line, "store": shared.store_to_keep()}
        if callable(sides[0]):
            options |= {"gc": given["gc"], "batch": given["batch"]}
        line.follow(" / ".join(labels), Options(budget_s=given["budget_s"]))
        comparison = measure_pair(*sides, **options)
    _tell(comparison, labels, [run for goal in goals for run in goal.runs], given)


def _check(words: Sequence[str], given: dict[str, Any]) -> None:
    """Raise once for all that does not go together."""
    problems = []
    twice = [name for name in ("python", "rev") if len(given[name]) == 2]
    wanted = 1 if twice else 2
    if len(words) != wanted:
        problems.append(f"{many(len(words), 'target')} given, expected {wanted}")
    if len(twice) > 1:
        problems.append("--python and --rev are both given twice, expected one of them")
    problems += [
        f"--{name} is given {many(len(given[name]), 'time')}, expected {often}"
        for name, often in (("python", "once or twice"), ("rev", "twice"))
        if len(given[name]) > 2 or (name == "rev" and len(given[name]) == 1)
    ]
    if given["build"] and not given["rev"]:
        problems.append("--build goes with --rev")
    if given["shell"] and not given["build"] and all(map(names_function, words)):
        problems.append("--shell is for commands")
    kinds = {names_function(word) for word in words}
    if len(kinds) > 1:
        problems.append(f"{words[0]} and {words[1]} are of two kinds: a function and a command")
    refuse(problems)
    for text in (*words, given["build"] or ""):
        words_of(text, by_shell=given["shell"])
    if False in kinds:
        wrong = shared.flags_given(given, "fresh", *shared.FRESH, "batch")
        refuse(f"{flag} is for functions" for flag in wrong)
    elif not (given["fresh"] or given["python"] or given["rev"]):
        wrong = shared.flags_given(given, *shared.OF_PROCESSES, "timeout_s")
        refuse(f"{flag} goes with --fresh" for flag in wrong)


@contextmanager
def _label_sides(
    words: Sequence[str], given: dict[str, Any]
) -> Iterator[tuple[list[str], list[Any]]]:
    """Give the names of both sides, and both: functions, or workloads."""
    if given["rev"]:
        build = given["build"] and words_of(given["build"], by_shell=given["shell"])
        with worktrees(given["rev"], build=build) as checkouts:
            if is_changed():
                remark("uncommitted changes are in neither revision")
            python = given["python"][0] if given["python"] else None
            made = [_process(words[0], given, python=python, at=checkout) for checkout in checkouts]
            yield [f"{words[0]} at {commit}" for commit in given["rev"]], made
        return
    if len(given["python"]) == 2:
        made = [_process(words[0], given, python=python) for python in given["python"]]
        yield [f"{words[0]} under {python}" for python in given["python"]], made
        return
    python = given["python"][0] if given["python"] else None
    if given["fresh"] or python or not names_function(words[0]):
        made = [_process(word, given, python=python) for word in words]
        yield list(words), made
        return
    yield list(words), [imported(word, str(Path.cwd())) for word in words]


def _process(
    word: str, given: dict[str, Any], *, python: str | None = None, at: Checkout | None = None
) -> Workload:
    """Make a workload that runs rounds in fresh processes."""
    cwd = None if at is None else str(at.folder)
    if not names_function(word):
        argv = words_of(word, by_shell=given["shell"])
        if not argv:
            raise InvalidInput(f"{word!r} is not a command, expected a program and its arguments")
        return command_target(argv, given, cwd=cwd)
    return interpreter_target(
        word,
        given,
        python=python,
        cwd=cwd,
        inside=None if at is None else at.top,
        path=None if at is None else [str(at.folder), *at.path([re.split("[.:]", word)[0]])],
    )


def _tell(
    comparison: Comparison, labels: Sequence[str], runs: Sequence[str], given: dict[str, Any]
) -> None:
    """Print the comparison and the ids of its runs; leave with the exit code of its verdict."""
    sides = dict(zip((BASELINE, CANDIDATE), labels, strict=True))
    kept = {"run_ids": list(runs)} if runs and all(runs) else {}
    print_comparison(comparison, labels, "compare --paired", **sides, **kept)
    missed = shared.is_given("target") and comparison.reason is not StopReason.SATISFIED
    leave(code_of(comparison, given["fail_on"], target_missed=missed))
