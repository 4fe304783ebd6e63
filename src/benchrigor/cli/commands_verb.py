"""``benchrigor commands``: several commands measured in turn, and ranked.

Options -L and -P give the values of their parameters.
"""

from __future__ import annotations

import itertools
import math
import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple

import click

from benchrigor.cli import options as shared
from benchrigor.cli.comparison_verbs import fail_on_option
from benchrigor.cli.exits import code_for, code_of_family, leave
from benchrigor.cli.options import wants_details
from benchrigor.cli.output import print_result, shown_depth, summary, table_options
from benchrigor.cli.targets import Chosen, command_target, driven_in_turn
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput, NotEstimable, WorkloadFailed
from benchrigor.layout import Page, page
from benchrigor.model import Metric, Options, RunRecord
from benchrigor.model.checks import refuse
from benchrigor.model.comparison import Family
from benchrigor.model.shell_words import words_of
from benchrigor.report.fact import Depth, page_of, page_of_facts
from benchrigor.report.tables import facts_of_commands
from benchrigor.safe_text import HIDDEN, Veiled, hide_secrets, hide_value
from benchrigor.session.measuring import TIME
from benchrigor.session.pairs.ranking import Ranking, compare_with, notices_of_ranking, rank_in_turn
from benchrigor.stats.comparison.samples import comparable_statistic
from benchrigor.stats.comparison.two_sample import family_of
from benchrigor.workloads import CommandWorkload
from benchrigor.workloads.processes.command_line import PLACES

_COMMA = re.compile(r"(?<!\\),")
_MOST_VALUES, _MOST_PLACES, _LARGEST = 1000, 30, Decimal("1e30")


def parameter_values(
    lists: Sequence[tuple[str, str]], ranges: Sequence[tuple[str, str, str]], step: str | None
) -> dict[str, list[str]]:
    """Return the values by parameter, from -L and -P."""
    problems = []
    values = {
        name: [value.replace(r"\,", ",") for value in _COMMA.split(text)] for name, text in lists
    }
    problems += [
        f"-L {name} has a value that is empty, expected values between commas"
        for name, texts in values.items()
        if not all(texts)
    ]
    for name, first, last in ranges:
        place = _last_place(first, last)
        by = step or _default_step(first, last, place)
        values[name] = _numbers_between(first, last, by)
        low, high = (hide_value(name, end) for end in (first, last))
        span = f"-P {name} is {low} to {high} in steps of {by}"
        if not values[name]:
            problems.append(f"{span}, expected numbers that rise")
        elif len(values[name]) > _MOST_VALUES:
            problems.append(f"{span}, expected at most {_MOST_VALUES:,} values: give a --step")
        elif step is None and Decimal(values[name][-1]) != Decimal(last):
            problems.append(f"{span}, which miss {high}: give another --step, such as {place}")
    times = Counter([*(name for name, _ in lists), *(name for name, *_ in ranges)])
    problems += [f"parameter {name} is given {n} times" for name, n in times.items() if n > 1]
    if step is not None and not ranges:
        problems.append("--step is given without the -P that it is for")
    refuse(problems)
    return values


def _last_place(first: str, last: str) -> str:
    """Return 1 in the last decimal place of either number; 1 of whole ones, and of no numbers."""
    try:
        exponents = [int(Decimal(text).as_tuple().exponent) for text in (first, last)]
    except (ArithmeticError, ValueError):
        return "1"
    return f"{Decimal(1).scaleb(max(min(0, *exponents), -_MOST_PLACES)):f}"


def _default_step(first: str, last: str, place: str) -> str:
    """Return 1, or 1 in the last decimal place of numbers that are less than 1 apart."""
    try:
        is_close = 0 < Decimal(last) - Decimal(first) < 1
    except ArithmeticError:
        return "1"
    return place if is_close else "1"


def _numbers_between(first: str, last: str, step: str) -> list[str]:
    """Return numbers with as many decimals as they need; none unless they rise."""
    try:
        low, high, by = map(Decimal, (first, last, step))
        rises = low <= high < _LARGEST and by > 0
        steps = int((high - low) / by) if rises else -1
    except ArithmeticError:  # no numbers, or infinite ones
        return []
    return [f"{low + index * by:f}" for index in range(min(steps, _MOST_VALUES) + 1)]


_MOST_COMMANDS = 10_000  # with all values of parameters
_PLACE = re.compile(r"(?<!\$)\{(\w+)\}")
_CPU = tuple(
    Metric(name=name, unit="s", must_satisfy=False) for name in ("user_time", "system_time")
)


class _Command(NamedTuple):
    """A command with values for its parameters."""

    text: Veiled
    hooks: Mapping[str, Veiled]
    shown: Mapping[str, str]  # values of its parameters, without secrets


@click.command(
    cls=Verb,
    usual="-L -P --runs --warmup --baseline --prepare --shell --ignore-failure --memory "
    "--target --budget --details --json",
)
@click.argument("commands", nargs=-1, required=True, metavar="COMMAND...")
@click.option(
    "-L",
    "lists",
    nargs=2,
    multiple=True,
    metavar="NAME VALUES",
    help="Values of {NAME}, between commas; write a comma within a value as \\,.",
)
@click.option(
    "-P",
    "ranges",
    nargs=3,
    multiple=True,
    metavar="NAME FIRST LAST",
    help="Numbers for {NAME}, both ends included.",
)
@click.option(
    "-D",
    "--step",
    metavar="STEP",
    help="From one number of -P to the next.  [default: 1; of numbers less than 1 apart, 1 in "
    "their last decimal place]",
)
@shared.count_option("--runs", text="Run each exactly this number of times, whatever that takes.")
@shared.count_option("--warmup", text="Runs of each before, which do not count.", least=0)
@click.option("--baseline", type=click.IntRange(min=1), metavar="N", help="Compare with the Nth.")
@click.option(
    "--setup",
    metavar="COMMAND",
    help="Run once before all runs of each command, up to an hour; outside of the budget.",
)
@click.option(
    "--prepare", metavar="COMMAND", help="Run before each run; not timed. It ends with the budget."
)
@click.option("--conclude", metavar="COMMAND", help="Run after each run; not timed.")
@click.option(
    "--cleanup", metavar="COMMAND", help="Run once after all runs of each command, up to a minute."
)
@shared.shell_option
@click.option(
    "--input",
    "stdin",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="What commands read from standard input.  [default: nothing]",
)
@click.option(
    "--output",
    type=shared.OutputPath(),
    default="null",
    show_default=True,
    metavar="null|inherit|FILE",
    help="Where the output of commands goes.",
)
@click.option("--ignore-failure", is_flag=True, help="Count runs that fail apart, and go on.")
@click.option("--memory", is_flag=True, help="Show the peak memory, from a run of its own.")
@shared.setting("timeout_s")
@shared.setting("margin", "Change that does not matter, with --baseline.")
@shared.setting(
    "target",
    "Half-width of each time, as measured, at which to stop; only one that you give can be missed.",
)
@shared.settings(
    *("confidence", "statistic", "detector", "budget_s", "max_rounds", "budget_readings")
)
@fail_on_option
@shared.setting("seed")
@shared.kept_options
@shared.details_option
@table_options
@shared.json_option
def commands(commands: tuple[str, ...], **given: Any) -> None:
    """Measure commands in turn, and rank them or compare them with one.

    A round runs every command once, in a new random order, so that all see the same minutes. The
    budget applies to every command. The first column is the time at full speed, as in run; the
    wall time as measured follows if it differs. Ratios within rounds rank and compare the commands,
    as in ab. The target is for the wall times, not for the ratios.

    Every value replaces {NAME} in commands and hooks; several parameters give all combinations.
    Other braces stay. No shell reads a command without --shell.

    Exit codes: 0 a result, 3 a --target that was given is missed, 4 no number, 5 a command failed,
    7 one is worse than the baseline.

    \b
    Examples:
      benchrigor commands 'gzip -kfc big.log' 'zstd -kfc big.log'
      benchrigor commands 'gzip -{n} -kfc big.log' -L n 1,6,9 --runs 20 --warmup 3
      benchrigor commands 'make -j{threads}' -P threads 1 8 --prepare 'make clean'
      benchrigor commands 'sleep {s}' -P s 0.1 0.5 -D 0.2
      benchrigor commands --baseline 1 --memory 'sort a.txt' 'sort -u a.txt'
    """  # noqa: D301  # click wants the backspace itself
    hooks = {place: given[place] for place in PLACES if given[place]}
    chosen = _expand(
        commands, hooks, parameter_values(given["lists"], given["ranges"], given["step"])
    )
    position = given["baseline"]
    if position is not None and position > len(chosen):
        raise InvalidInput(f"--baseline is {position}, expected at most {len(chosen)}")
    if position is not None and len(chosen) == 1:
        raise InvalidInput("--baseline is given, and there is nothing else to compare with it")
    if position is None and given["fail_on"]:
        raise InvalidInput("--fail-on is for comparisons: give a --baseline too")
    asked = shared.given_options(given) | _exactly(given["runs"])
    comparable_statistic(asked["statistic"])
    options = Options(rounds="restarted", **asked)
    runs: dict[str, Chosen] = {}
    for label, command in chosen.items():
        workload = _workload(command, given)
        runs[label] = (workload, (TIME, *_CPU), {**workload.describe(), "name": label})
    records, error = driven_in_turn(runs, options, seed=given["seed"], by_round=True)
    family = None
    if records:
        family = _tell(records, chosen, given, whole=len(records) == len(chosen))
    if error is not None:
        raise error
    codes = [*map(code_for, records.values())]
    if family is not None:
        codes.append(code_of_family(family, given["fail_on"]))
    leave(max(codes))


def _exactly(runs: int | None) -> dict[str, Any]:
    """Return the options for this number of runs; only an explicit budget ends them earlier."""
    if runs is None:
        return {}
    if shared.is_given("max_rounds"):
        raise InvalidInput("--runs and --max-rounds are both given, expected one of them")
    rounds = {"min_rounds": runs, "max_rounds": runs}
    return rounds if shared.is_given("budget_s") else {**rounds, "budget_s": math.inf}


def _expand(
    commands: Sequence[str], hooks: Mapping[str, str], values: Mapping[str, list[str]]
) -> dict[str, _Command]:
    """Return the commands with every combination of the parameters they use, by their labels."""
    number = math.prod(map(len, values.values()))
    if number > _MOST_COMMANDS:
        raise InvalidInput(f"parameters have {number:,} combinations, expected {_MOST_COMMANDS:,}")
    own = [_parameters_in(command, values) for command in commands]
    around = [name for hook in hooks.values() for name in _parameters_in(hook, values)]
    unused = values.keys() - {*around}.union(*own)
    refuse(f"parameter {name} is used nowhere: write {{{name}}}" for name in sorted(unused))
    expanded: dict[str, _Command] = {}
    for command, shown in zip(commands, own, strict=True):
        names = list(dict.fromkeys([*shown, *around]))
        for combination in itertools.product(*(values[name] for name in names)):
            given = dict(zip(names, combination, strict=True))
            text = _fill(command, given)
            filled = {place: _fill(hook, given) for place, hook in hooks.items()}
            shown_as = _without_secrets(given, [command, *hooks.values()], [text, *filled.values()])
            unseen = ", ".join(f"{name}={shown_as[name]}" for name in names if name not in shown)
            seen = _fill(command, shown_as)
            label = first = hide_secrets(f"{seen} ({unseen})" if unseen else seen)
            for time in itertools.count(2):
                if label not in expanded:
                    break
                label = f"{first} #{time}"  # the same command again, or the same but for a secret
            veiled = {
                place: Veiled(filled[place], _fill(hook, shown_as)) for place, hook in hooks.items()
            }
            expanded[label] = _Command(Veiled(text, seen), veiled, shown_as)
    return expanded


def _without_secrets(
    given: Mapping[str, str], templates: Sequence[str], filled: Sequence[str]
) -> dict[str, str]:
    """Return the values of parameters, hidden by their names and by the texts that name them."""
    hidden = {
        name
        for template, text in zip(templates, filled, strict=True)
        for name in _parameters_in(template, given)
        if given[name] not in hide_secrets(text)
    }
    return {
        name: HIDDEN if name in hidden else hide_value(name, value) for name, value in given.items()
    }


def _parameters_in(text: str, values: Collection[str]) -> list[str]:
    """Return the parameters that a text names; other braces are its own."""
    return [name for name in _PLACE.findall(text) if name in values]


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def _veil(text: Veiled) -> list[str]:
    """Return the words of a command, paired with the words to show."""
    words, shown = words_of(text), words_of(text.shown)
    if len(words) != len(shown):  # a secret holds spaces
        shown = [word if word in shown else HIDDEN for word in words]
    return [Veiled(*pair) for pair in zip(words, shown, strict=True)]


def _workload(command: _Command, given: Mapping[str, Any]) -> CommandWorkload:
    def argv(text: Veiled) -> list[str]:
        words = words_of(text, by_shell=True) if given["shell"] else _veil(text)
        if not words:
            raise InvalidInput(
                f"{text.shown!r} is not a command, expected a program and its arguments"
            )
        if not command.hooks and shutil.which(words[0]) is None:  # a command before it may make it
            raise WorkloadFailed(
                f"{text.shown} cannot be started: no program {hide_secrets(words)[0]}"
            )
        return words

    output = given["output"]
    return command_target(
        argv(command.text),
        given,
        hooks={place: argv(text) for place, text in command.hooks.items()},
        stdin=given["stdin"],
        stdout=None if output == "null" else output,
        ignore_failure=given["ignore_failure"],
        memory=given["memory"],
        cpu_times=True,
        warm_up=given["warmup"] or 0,
    )


def _tell(
    records: Mapping[str, RunRecord],
    chosen: Mapping[str, _Command],
    given: Mapping[str, Any],
    *,
    whole: bool,
) -> Family | None:
    """Print the places of all, or how they compare with the baseline, and return that."""
    told: dict[str, Any] = {
        "commands": {
            label: {"values": chosen[label].shown, "run": summary(record)}
            for label, record in records.items()
        }
    }
    family, ranking = None, Ranking()
    if given["baseline"] is not None and whole:
        baseline = list(records)[given["baseline"] - 1]
        ratios = compare_with(baseline, records, margin=given["margin"])
        family = told["family"] = family_of(ratios, notices=notices_of_ranking(records))
    else:
        with suppress(NotEstimable):
            ranking = rank_in_turn(records)
        told |= {"places": ranking.places}
        told["ratios"] = {name: ratio.ratio for name, ratio in ranking.against_first.items()}
    facts = facts_of_commands(records, family or ranking, spent=_CPU)

    def show() -> Page:
        reports = records.values() if wants_details() else ()
        runs = (part for record in reports for part in ("", page_of(record, Depth.DETAILS)))
        return page([page_of_facts(facts, shown_depth()), *runs])

    print_result(show, facts=lambda: facts, **told)
    return family
