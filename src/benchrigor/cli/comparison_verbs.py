"""``benchrigor ab`` and ``compare``: whether a candidate is better or worse than a baseline."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import code_of, leave
from benchrigor.cli.output import live_line, print_result, remark, table_options
from benchrigor.cli.recordings import (
    code_of_suites,
    columns_options,
    compared_files,
    compile_filter,
    recordings,
)
from benchrigor.cli.targets import command_target, gentle_interrupt, interpreter_target
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput, NotComparable
from benchrigor.formats.readings import Columns
from benchrigor.model import Code, Comparison, Options, RunRecord, StopReason
from benchrigor.model.checks import refuse
from benchrigor.model.codec import is_there
from benchrigor.model.comparison import SuiteComparison
from benchrigor.model.run import BASELINE, CANDIDATE, Provenance
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Workload
from benchrigor.report.fact import facts_of
from benchrigor.report.tables import facts_of_places
from benchrigor.safe_text import hide_secrets
from benchrigor.session import measure_pair
from benchrigor.session.engine import Engine
from benchrigor.session.pairs.compared_sides import label_of
from benchrigor.session.pairs.ratio import Ratio
from benchrigor.session.pairs.run_comparison import compare_named, rank_runs
from benchrigor.session.replays import is_bare
from benchrigor.session.stored_runs import StoredRuns
from benchrigor.units import first_few, many
from benchrigor.workloads.named_functions import imported, names_function
from benchrigor.workloads.worktrees import Checkout, is_changed, worktrees

_SOME = 4  # benchmarks that an error lists
# Warnings of differences other than in readings.
_WARNINGS = {
    *(Code.NOT_CONVERGED, Code.DISTURBED, Code.HOSTS_DIFFER, Code.METRICS_DIFFER),
    *(Code.NO_COMMON_PACE, Code.FUNCTIONS_DIFFER, Code.FAILED_RUNS, Code.SEVERAL_MODES),
}


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["worse", "undecided", "never"]),
    help="Which verdicts end with an exit code other than 0: worse (7); undecided (3) or worse; "
    "none.  [default: worse; never for runs that share no reference and were not measured in turn]",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """A run, or the readings of a file; ``origin`` describes their source for programs."""

    label: str
    given: RunRecord
    origin: dict[str, Any]
    is_file: bool


@click.command(
    cls=Verb,
    usual="--statistic --margin --confidence --direction --fail-on --paired --column --filter "
    "--unit --store --details --markdown --json",
)
@click.argument("sources", nargs=-1, required=True, metavar="BASELINE CANDIDATE [MORE]...")
@shared.setting("statistic", usual="as in the runs; mean for files", default=None)
@shared.settings("margin", "confidence")
@click.option(
    "--direction",
    type=click.Choice(["lower", "higher"]),
    help="Which way is better.  [default: by the metric, as its unit says]",
)
@shared.metric_option
@shared.setting("detector", usual="as in each run; ranks for files", default=None)
@fail_on_option
@click.option(
    "--same-machine",
    is_flag=True,
    help="Compare nothing of another host, processor, number of cores or system.",
)
@click.option(
    "--filter",
    "pattern",
    metavar="PATTERN",
    help="Compare the benchmarks with a match of this regular expression in their names.",
)
@click.option("--paired", is_flag=True, help="Compare files line by line, runs of ab in pairs.")
@columns_options
@shared.store_option
@shared.details_option
@table_options
@shared.json_option
def compare(
    sources: tuple[str, ...],
    *,
    metric: str | None,
    detector: str | None,
    same_machine: bool,
    pattern: str | None,
    columns: Columns,
    chosen: tuple[str, ...],
    fail_on: str | None,
    paired: bool,
    **asked: Any,
) -> None:
    """Compare a candidate with a baseline, or rank more than two.

    Each is a stored run (the beginning of its id is enough), a CSV or JSON file of readings, or
    what another tool wrote. Files of several benchmarks are compared with the first one by name,
    in a table, and judged together (docs/formats.md); --column chooses one benchmark instead.
    Given for each, it compares columns or benchmarks of one file.

    Warm-up and cool-down are left out. Restarted rounds, and commands run once a round, count
    one by one; a single series counts for its own process only, and a warning says so. More than
    two are ranked: the best first, those that do not differ beyond chance in one place.

    It is worse when the whole interval of the ratio lies beyond the margin, equivalent when all
    of it lies within, else undecided. Which way is better follows from --direction, else from the
    unit (s, B: lower; anything per second: higher); where it is not known, a change is
    "different". Runs that share no reference and were not measured in turn may differ by the
    machine: the verdict is about "these two runs", and ends with 0 unless --fail-on is given.

    Exit codes: 0 a result, 3 undecided with --fail-on undecided, 4 a side allows no number, 7
    worse, 8 not comparable, such as runs that mostly failed.

    \b
    Examples:
      benchrigor compare 3f2a 81bc
      benchrigor compare old.csv new.csv --column time --unit s --margin 2%
      benchrigor compare both.csv --column old --column new
      benchrigor compare old.csv new.csv --paired --statistic median --json
      benchrigor compare --paired 3f2a 81bc
      benchrigor compare 3f2a 81bc 9d07
      benchrigor compare old.json new.json --filter '^sort' --markdown table.md
    """  # noqa: D301  # click wants the backspace itself
    options: dict[str, Any] = {"metric": metric, "detector": detector, **asked}
    found = compile_filter(pattern)
    wanted = found and found.search
    sources, labels, named = _with_columns(sources, chosen)
    read = [
        recordings(source, replace(columns, column=column), wanted=wanted)
        for source, column in zip(sources, named, strict=True)
    ]
    if same_machine:
        _check_machine(chain(*read))
    if pattern is not None or any(len(runs) > 1 for runs in read):
        every = dict.fromkeys(repr(run.name) for runs in read for run in runs)
        problems = _wrong(labels, sources, [*every])
        if paired:
            problems.append("--paired is for two files of one benchmark: choose it with --column")
        refuse(problems)
        files = [*zip(labels, read, strict=True)]
        suites = compared_files(files, found, **options)
        _tell_suites(suites, fail_on)
    sides = [_side(*one, metric) for one in zip(sources, labels, chain(*read), strict=True)]
    _check(sides, sources, metric=metric, paired=paired)
    if len(sides) > 2:
        del options["margin"]  # places need none
        _rank(sides, **options)
        return
    _compare_two(sides, fail_on, paired=paired, **options)


def _compare_two(sides: Sequence[_Side], fail_on: str | None, **options: Any) -> None:
    """Print the comparison of two sides, and leave with the exit code of its verdict."""
    opened = None if any(side.is_file for side in sides) else shared.open_store()
    known = opened is not None and is_there(opened.path)
    stored = StoredRuns(opened) if opened is not None and known else None
    given = {side.label: side.given for side in sides}
    comparison = compare_named(given, stored=stored, **options)
    print_comparison(
        comparison,
        [*given],
        baseline=sides[0].origin,
        candidate=sides[1].origin,
        warnings=[str(notice) for notice in comparison.notices if notice.code in _WARNINGS],
    )
    leave(code_of(comparison, fail_on))


def _tell_suites(suites: SuiteComparison, fail_on: str | None) -> NoReturn:
    """Print the table of several files, and leave with the exit code of all verdicts."""
    print_result(facts=lambda: facts_of(suites), suites=suites)
    leave(code_of_suites(suites, fail_on))


def _check_machine(runs: Iterable[RunRecord]) -> None:
    """Raise NotComparable if the runs are of several machines."""
    places = [run.provenance or Provenance() for run in runs]
    for name in ("host", "cpu", "cores", "system"):
        several = sorted({str(getattr(place, name)) for place in places})
        if len(several) > 1:
            of = "" if name == "host" else f"{name} "
            raise NotComparable(
                f"the runs are of {of}{' and '.join(several)}, expected one machine"
            )


def _side(source: str, label: str, given: RunRecord, metric: str | None) -> _Side:
    """Return a side; both files of a tool have the same benchmarks, so their labels name them."""
    given = given if label == source else replace(given, name=label)
    is_file = is_bare(given)
    analysis = given.analysis(None if is_file else metric)
    if analysis is None:
        raise InvalidInput(f"the run of {given.name} holds no readings")
    origin = {"source": source, "run_id": given.run_id, "name": given.name}
    origin |= {"metric": analysis.metric.name, "unit": analysis.metric.unit}
    origin["host"] = given.provenance.host if given.provenance else None
    label = label if "tool" in given.subject else label_of(given)
    return _Side(label=label, given=given, origin=origin, is_file=is_file)


def _with_columns(
    sources: Sequence[str], columns: Sequence[str]
) -> tuple[tuple[str, ...], list[str], Sequence[str | None]]:
    """Return sources, their labels, and their columns: the only one, or one for each.

    Its column names a part of a file that has several.
    """
    if len(sources) == 1:
        sources = tuple(sources) * max(len(columns), 1)
    each: Sequence[str | None] = columns
    if len(columns) < 2:
        each = (columns[0] if columns else None,) * len(sources)
    if len(each) != len(sources):
        raise InvalidInput(
            f"--column is given {len(columns)} times for {len(sources)} sources, expected once "
            "for all, or once for each"
        )
    if sources.count("-") > 1:
        raise InvalidInput(
            "standard input is given twice, and is read only once: write it to a file"
        )
    sides = zip(sources, each, strict=True)
    labels = [column if column and sources.count(name) > 1 else name for name, column in sides]
    return tuple(sources), labels, each


def _check(
    sides: Sequence[_Side], sources: Sequence[str], *, metric: str | None, paired: bool
) -> None:
    """Raise once for all options and sources that do not go together."""
    runs = [side for side in sides if not side.is_file]
    problems = _wrong([side.label for side in sides], sources)
    if paired and (len(runs) == 1 or len(sides) != 2):
        problems.append("--paired is for two files, taken line by line, or both runs of ab")
    if metric and not runs:
        problems.append("--metric is for runs, and there are files only: --column names theirs")
    refuse(problems)


def _wrong(labels: Sequence[str], sources: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """Return the problems: fewer than two sides, or one given twice; ``names`` are in the files."""
    of_one = f" ({first_few(names, _SOME)})" if names else ""
    cure = f": compare columns or benchmarks of one file{of_one} with a --column for each"
    cure = cure if any(is_there(Path(source)) for source in sources) else ""
    alone = [f"{labels[0]} stands alone, expected a baseline and a candidate{cure}"]
    double = sorted({label for label in labels if labels.count(label) > 1})
    twice = [f"{label} is given twice, expected each once{cure}" for label in double]
    return [*(alone if len(labels) < 2 else ()), *twice]


def _unit(sides: Sequence[_Side]) -> str:
    return next((side.origin["unit"] for side in sides if side.origin["unit"]), "")


def print_comparison(
    comparison: Comparison, labels: Sequence[str], next_verb: str = "", **fields: Any
) -> None:
    """Print the page of a comparison of two sides with these names, or all that is known."""
    named = replace(comparison, names=tuple(labels))
    print_result(
        facts=lambda: facts_of(named),
        next_verb=next_verb,
        comparison=comparison,
        **fields,
    )


def _rank(sides: Sequence[_Side], **options: Any) -> None:
    """Print the places of more than two sides."""
    places, notices = rank_runs({side.label: side.given for side in sides}, **options)
    facts = facts_of_places(places, notices, statistic=options["statistic"], unit=_unit(sides))
    print_result(
        facts=lambda: facts,
        places=places,
        sides=[side.origin for side in sides],
        warnings=[str(notice) for notice in notices],
    )


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
    _check_pair(words, given)
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


def _check_pair(words: Sequence[str], given: dict[str, Any]) -> None:
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
