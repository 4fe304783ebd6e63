"""``benchrigor run``, ``timeit`` and ``resume``: measure a command, a function or a statement.

They read work amounts as people write them: 1000, 64KiB, 1MB:1GB.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.output import is_special, module_for, print_records
from benchrigor.cli.targets import (
    Chosen,
    chosen_function,
    command_target,
    command_words,
    drive_and_print,
    driven_in_turn,
    log_option,
    logged_to,
    metrics_for,
    session_of,
    statement_target,
    workload_of,
)
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, Options, Progress, StopReason
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.codec import is_there
from benchrigor.model.options import Work, check_work
from benchrigor.model.run import AGAIN, PAIR, PART_OF
from benchrigor.session import Session
from benchrigor.session.measuring import TIME, pieces_for
from benchrigor.stats.readings.given_metrics import SPEED
from benchrigor.units import show_duration
from benchrigor.workloads import Pick
from benchrigor.workloads.named_functions import names_function

_AMOUNT = re.compile(
    r"""((?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?)  # 1e6, 0.5
        (?:([kKMGTP])(i?))?(B?)                                                    # kB, MiB""",
    re.VERBOSE,
)
_POWERS = "KMGTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """The work of all rounds, or the range of their work amounts, as in `Options`."""

    work: Work
    speed_unit: str = "/s"  # "B/s" for amounts in bytes


def amounts(text: str) -> Amounts:
    """Read an amount or a range: ``AMOUNT``, ``LOW:HIGH``, ``LOW:`` (no largest), ``:HIGH``.

    An amount may end in k, M, G, T or P (thousands), Ki, Mi and so on (1024), and in B (bytes).
    """
    low, colon, high = text.strip().partition(":")
    work: Work = (_amount(low or "0"), _amount(high) if high else None) if colon else _amount(low)
    try:
        check_work(work)
    except InvalidInput as error:
        raise click.BadParameter(f"{text!r}: {error}") from None
    return Amounts(work=work, speed_unit="B/s" if "B" in text else "/s")


def _amount(text: str) -> float:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(
            f"{text!r} is not an amount of work, expected one such as 1000, 1e6, 64KiB or 1MB, "
            "or a range such as 1MB:1GB"
        )
    number, power, binary, _ = match.groups()
    step = 1024 if binary else 1000
    amount = Decimal(number) * (step ** (_POWERS.index(power.upper()) + 1) if power else 1)
    return int(amount) if amount == amount.to_integral_value() else float(amount)


_THOROUGH_S = 60.0


@click.command(
    cls=Verb,
    usual="--target --statistic --budget --work --read --timeout --in-process "
    "--name --no-store --store --details --json",
    # What follows the command belongs to it: `benchrigor run gzip -k file`.
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND [ARG]... | MODULE:FUNCTION...")
@shared.settings(work={"type": amounts}, pieces={"default": None})
@click.option("--thorough", is_flag=True, help=f"Short for --budget {_THOROUGH_S:g}.")
@click.option(
    "--read",
    multiple=True,
    metavar="PICK",
    help="One reading per round from the command's output: NAME[:UNIT[,WORD]...]=regex:PATTERN, "
    "=column:N or =json:KEY. The words say its kind: lower, higher; arithmetic, harmonic; time, "
    "rate, share, other; optional; ±2% (half-width wanted).",
)
@click.option(
    "--read-units",
    multiple=True,
    metavar="PICK",
    help="Readings of successive units of work from its output, one per match.",
)
@click.option(
    "--accept-exit",
    type=int,
    multiple=True,
    metavar="CODE",
    help="Exit code that is not a failure; may be given again.  [default: 0]",
)
@shared.shell_option
@shared.settings("timeout_s", "gc", "batch", gc={"default": None})
@click.option(
    "--in-process",
    is_flag=True,
    help="Measure a function in this process. Otherwise each round is a fresh interpreter, which "
    "needs neither benchrigor nor numpy: what differs from one process to the next is in the "
    "interval.",
)
@click.option("--fresh", is_flag=True, hidden=True)  # the default of most functions
@shared.fresh_options
@click.option(
    "--over",
    type=shared.IN_MINUTES,
    help="Spread the pieces over this long, with pauses between them; a bare number is in minutes.",
)
@click.option("--name", help="Name of the run.")
@log_option
@shared.setting("seed")
@shared.kept_options
@shared.details_option
@shared.json_option
def run(words: tuple[str, ...], **given: Any) -> None:
    """Measure a command or a function until its interval is narrow enough.

    Options stand before the command; what follows belongs to it. A function is called without
    arguments, or with the work amount if it has one. It is imported and called in a fresh
    interpreter for each round, where its output to stdout is lost. Generator functions,
    functions made inside of others, and those with --work, --pieces or --timeout stay in this
    process, and the report says so; their output goes to stderr. Several functions take turns
    in it, a piece of each, so that all see the same minutes, and are ranked, the best first;
    `benchrigor ab` gives a verdict and its exit code.

    A command under way when the budget is spent is asked to end, and killed two seconds later; of
    its output, whole lines of --read-units count. Ctrl-C finishes the round under way,
    and reports what there is. Readings of a command that goes on, as a server or a load generator
    does, are piped into `benchrigor analyze -`.

    \b
    Examples:
      benchrigor run gzip -k -f big.log
      benchrigor run --target 1% --budget 300 mypackage.bench:parse
      benchrigor run --statistic p99 --batch 1 mypackage.bench:parse
      benchrigor run mypackage.bench:parse mypackage.bench:parse_fast
      benchrigor run --pieces 6 --over 10 mypackage.bench:parse
      benchrigor run --in-process mypackage.bench:parse
      benchrigor run --python .venv/bin/python mypackage.bench:parse
      benchrigor run --shell 'sort big.log | uniq -c'
      benchrigor run --timeout 30 --accept-exit 0 --accept-exit 1 ./bench.sh
      benchrigor run --read 'rate:req/s=regex:rps: ([0-9.]+)' ./load.sh
      benchrigor run --read 'ok:share,higher=regex:ok ([0-9]+/[0-9]+)' ./load.sh
      benchrigor run --work 1000 ./sort --lines '{work}'
      benchrigor run --work 1MB:1GB -- ./copy.sh --bytes '{work}'
      benchrigor run --work 1000:1e6 mypackage.bench:sort
    """  # noqa: D301  # click wants the backspace itself
    is_function = names_function(words[0]) and not is_there(Path(words[0]))
    targets = words if is_function and all(map(names_function, words)) else words[:1]
    problems = [] if is_function else _wrong_for_command(words[0], given)
    options = attempt(problems, partial(_options, given, in_turn=len(targets) > 1))
    if problems or options is None:
        raise InvalidInput(problems)
    over_s = given["over"]
    if over_s and over_s < options.budget_s:
        raise InvalidInput(
            f"--over is {show_duration(over_s)}, expected as long as --budget at least, "
            f"{show_duration(options.budget_s)}"
        )
    if len(targets) > 1:
        _in_turn(targets, given, options, over_s)
        return
    speed = _metric_of_work(given, options)
    choose = chosen_function if is_function else _command
    workload, metrics, subject, *notices = choose(words, given, speed)
    begin = partial(
        session_of,
        (workload, _satisfying(metrics, speed, options), subject, *notices),
        options,
        name=given["name"] or subject["name"],
        seed=given["seed"],
        store=shared.store_to_keep(),
    )
    with logged_to(given["log"]):
        drive_and_print(begin, workload, over_s=over_s)


def _in_turn(
    targets: tuple[str, ...], given: dict[str, Any], options: Options, over_s: float | None
) -> None:
    """Measure several functions in turn; print a line of each, and end with the worst exit code."""
    twice = sorted({target for target in targets if targets.count(target) > 1})
    refuse(
        [f"{target} is given {targets.count(target)} times, expected once" for target in twice],
        ["--name is for one function, and several are given"] if given["name"] else [],
    )
    chosen = {target: chosen_function((target,), given, None, in_turn=True) for target in targets}
    with logged_to(given["log"]):
        records, error = driven_in_turn(chosen, options, seed=given["seed"], over_s=over_s)
        if records:
            print_records(records)
        if error is not None:
            raise error
        leave(max(map(code_for, records.values())))


def _wrong_for_command(name: str, given: dict[str, Any]) -> list[str]:
    wrong = ("gc", "batch", "pieces", "over", "fresh", "in_process", *shared.FRESH)
    flags = shared.flags_given(given, *wrong)
    return [f"{flag} is for functions, and {name} is a command" for flag in flags]


def _command(words: tuple[str, ...], given: dict[str, Any], speed: Metric | None) -> Chosen:
    words = tuple(command_words(words, shell=given["shell"]))
    flag = "--work" if given["work"] else "--analysis wps"
    if (given["work"] or speed) and not any("{work}" in word for word in words):
        raise InvalidInput(f"{flag} is given, but no argument of the command holds {{work}}")
    picks = [
        *(Pick.parse(text) for text in given["read"]),
        *(Pick.parse(text, unit_readings=True) for text in given["read_units"]),
    ]
    codes = given["accept_exit"] or (0,)
    workload = command_target(words, given, picks=picks, accept_exit=codes)
    return workload, metrics_for(picks, speed), {**workload.describe(), "name": shlex.join(words)}


def _options(given: dict[str, Any], *, in_turn: bool) -> Options:
    """Make Options of all options that are named like one of its fields."""
    named = shared.given_options(given)
    if given["thorough"]:
        if shared.is_given("budget_s"):
            raise InvalidInput(
                f"--thorough is short for --budget {_THOROUGH_S:g}, and --budget is given too: "
                "leave one of them out"
            )
        named["budget_s"] = _THOROUGH_S
    if named["pieces"] is None:
        named["pieces"] = pieces_for(named["budget_s"]) if in_turn or given["over"] else 1
    return Options(**{**named, "work": given["work"] and given["work"].work})


def _metric_of_work(given: dict[str, Any], options: Options) -> Metric | None:
    """Return the metric of rounds of various work; None if all have the same work."""
    if options.work_range is None:
        return None
    return replace(SPEED, unit=given["work"].speed_unit) if given["work"] else SPEED


def _satisfying(
    metrics: tuple[Metric, ...], speed: Metric | None, options: Options
) -> tuple[Metric, ...]:
    """Let only the speed count if --analysis asks for it; it is a mean."""
    if speed is not None and options.analysis == "wps":
        others = (metric for metric in metrics if metric.name != speed.name)
        metrics = (speed, *(replace(other, must_satisfy=False) for other in others))
    if speed in metrics and options.statistic != "mean":
        raise InvalidInput(
            f"--statistic is {options.statistic}, expected mean: a speed has no other"
        )
    return metrics


@click.command(cls=Verb)
@click.argument("lines", nargs=-1, required=True, metavar="STATEMENT [LINE]...")
@click.option(
    "-s", "--setup", "setup", multiple=True, metavar="STATEMENT", help="Run once before; by lines."
)
@shared.settings(
    *("target", "confidence", "statistic", "detector", "budget_s", "max_rounds"),
    *("budget_readings", "gc", "batch", "seed"),
)
@shared.kept_options
@shared.details_option
@shared.json_option
def timeit(lines: tuple[str, ...], **given: Any) -> None:
    """Measure a statement of Python until its interval is narrow enough.

    Several statements, and several of --setup, are lines of one program, indented as they are
    given. As `python -m timeit` does, the statement stands in the timed loop itself, what --setup
    defines is local to it, and imports look in the current folder first.

    \b
    Examples:
      benchrigor timeit '"-".join(map(str, range(100)))'
      benchrigor timeit -s 'rows = list(range(999, 0, -1))' 'sorted(rows)'
      benchrigor timeit 'for i in range(9):' '  str(i)' --json
    """  # noqa: D301  # click wants the backspace itself
    subject = {
        "kind": "statement",
        "name": lines[0] if len(lines) == 1 else f"{lines[0]} [...]",
        "statement": "\n".join(lines),
        "setup": "\n".join(given["setup"]),
        "gc": given["gc"],
        "batch": given["batch"],
        "cwd": str(Path.cwd()),
    }
    begin = partial(
        Session,
        Options(**shared.given_options(given)),
        (TIME,),
        name=subject["name"],
        subject=subject,
        seed=given["seed"],
        store=shared.store_to_keep(),
    )
    drive_and_print(begin, statement_target(subject))


@click.command(cls=Verb)
@shared.run_id_argument
@shared.setting("budget_s", usual="as in the run", default=None)
@shared.settings("max_rounds", "budget_readings")
@log_option
@shared.store_option
@shared.details_option
@shared.json_option
def resume(run_id: str, *, log: Path | None, **limits: Any) -> None:
    """Take up a run that was killed, stopped or ran out of budget.

    The beginning of RUN_ID is enough. Finished rounds count, each once. Limits are as in the
    run unless new ones are given, and are meant for the whole run, finished rounds included.

    \b
    Examples:
      benchrigor resume 3f2a
      benchrigor resume 3f2a --budget 5m
    """  # noqa: D301  # click wants the backspace itself
    opened = shared.existing_store()
    before = opened.load(run_id)
    if PAIR in before.subject:
        again = before.subject.get(AGAIN) or "benchrigor ab"
        raise InvalidInput(
            f"run {before.run_id} is one side of a comparison: both go on in turn, with: {again}"
        )
    if PART_OF in before.subject:
        whole = before.subject[PART_OF]
        raise InvalidInput(
            f"run {before.run_id} is a part of run {whole}, which goes on with: "
            f"{shared.hint('resume', whole)}"
        )
    if is_special(before):
        special, budget_s = module_for(before), limits.pop("budget_s")
        refuse(
            f"{name} is given, and {before.run_id} is {special.noun_of(before)}: expected --budget"
            for name, limit in limits.items()
            if limit is not None
        )
        no_limit = None if budget_s == math.inf else budget_s
        budget = {} if budget_s is None else {"budget_s": no_limit}
        special.resume(before, opened, budget)
    workload = workload_of(before)
    new = {name: limit for name, limit in limits.items() if limit is not None}
    told = before.options
    if told.pieces > 1 and "budget_s" in new:  # further pieces as long as those there are
        new["pieces"] = max(1, round(told.pieces * new["budget_s"] / told.budget_s))
    options = replace(told, **new, target_given="target" in new or told.target_given)

    def begin(progress: Callable[[Progress], object]) -> Session:
        session = Session.resume(opened, run_id, options=options, progress=progress)
        ended = session.decision.reason if session.decision else None
        if ended is not None and ended is not StopReason.SATISFIED:
            raise InvalidInput(
                f"run {before.run_id} has nothing left to spend ({ended.replace('-', ' ')}): "
                "give it more with --budget, --max-rounds or --max-readings"
            )
        return session

    with logged_to(log):
        drive_and_print(begin, workload)
