"""``benchrigor peak``: the greatest load at which a server keeps its limits."""

from __future__ import annotations

import math
import platform
import shlex
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from benchrigor import machine
from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import plot_option, print_result, say, write_picture
from benchrigor.cli.targets import command_words, refuse_hidden, trailing_words
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.files import readable
from benchrigor.layout import page, row
from benchrigor.model import RunRecord, codec
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.codec import is_there
from benchrigor.model.shell_words import words_of
from benchrigor.model.toml_tables import TomlTables
from benchrigor.storage import Journal
from benchrigor.units import percent, show_duration, show_value
from benchrigor.workbench import peak_run
from benchrigor.workbench.campaign import telling_what_was_cut
from benchrigor.workbench.data import (
    FAILED,
    Limit,
    PeakRate,
    PeakStatus,
    Trial,
    limit_of,
    limit_of_good,
)
from benchrigor.workbench.loadgen.sending import REQUEST, HttpRequest
from benchrigor.workbench.peak_run import PeakRun, Prepared
from benchrigor.workbench.picture import plot_peak
from benchrigor.workbench.planning.published_search import plan_runlength
from benchrigor.workbench.planning.search import PeakSearch, expected_costs, wrong_budget
from benchrigor.workbench.pool import hosts_of, prefix_of
from benchrigor.workbench.report import explain_peak, facts_of_peak, trial_line
from benchrigor.workbench.settings import HOSTS, LOAD, SEARCH, SENDING
from benchrigor.workloads import Pick
from benchrigor.workloads.named_functions import names_function

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchrigor.report.html import Sheet

_PILOTS, _LENGTHS = 5, (0.5, 1.0, 2.0)  # trials per length; lengths over the search's own length
_FEWEST_PILOTS = 2  # of one length
_WAYS = {"url": "--url", "mix": "--requests", "target": "MODULE:COROUTINE", "command": "COMMAND"}
_SENT_BY_HOSTS = ("names", "prefix", "python", "scheduler")
# Options that go with some kinds of targets only.
_ONLY_WITH = {
    **dict.fromkeys(("method", "header", "body", "status"), ("--url",)),
    **dict.fromkeys(_SENT_BY_HOSTS, ("--url", "--requests")),
    **dict.fromkeys((*SENDING, "slos"), ("--url", "--requests", "MODULE:COROUTINE")),
    **dict.fromkeys(("load", "read"), ("COMMAND",)),
}


@click.command(
    cls=Verb,
    usual="--url --requests --mean --p95 --slo --limit --load --read --accuracy "
    "--budget --dry-run --details --json",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, metavar="MODULE:COROUTINE | -- COMMAND [ARG]")
@click.option("--url", help="Send HTTP requests to this URL.")
@click.option("--method", default="GET", show_default=True, help="Method of these requests.")
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="Send this header, too.")
@click.option("--body", default="", help="Send this body; @FILE reads it from a file.")
@click.option("--status", type=int, help="The status that is expected.  [default: 200 to 299]")
@click.option(
    "--requests",
    "mix",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Kinds of requests with their weights, as TOML: [[request]] with url, method, headers, "
    "body, status, weight.",
)
# Limits of time need their unit: a bare 100 usually means 100ms.
@click.option(
    "--mean", "mean_s", type=shared.WITH_UNIT, help="Limit of the mean response, such as 40ms."
)
@click.option(
    "--p95",
    "p95_s",
    type=shared.WITH_UNIT,
    help="Limit of the 95th percentile of responses, such as 200ms.",
)
@shared.share_option("--failed", None, "Limit of the share of requests that fail.")
@click.option(
    "--limit",
    "others",
    multiple=True,
    metavar="METRIC=VALUE",
    help="A further limit: p99=500ms, or any metric that --read names.",
)
@click.option(
    "--slo",
    "slos",
    multiple=True,
    metavar="CONDITIONS: SHARE",
    help="Limit of the share of good requests, which keep all conditions: response, first-byte and "
    "chunk-gap, as in 'response<200ms and first-byte<50ms: 99%'. p99<200ms means response where "
    "the share is 99%.",
)
@shared.settings_of(LOAD | SEARCH | SENDING)
@click.option("--host", "names", multiple=True, metavar="NAME", help="Send from this host, too.")
@click.option(
    "--prefix",
    metavar="COMMAND",
    help="What runs a command on a host, such as 'ssh {host}'; without it, hosts are processes of "
    "this machine.",
)
@shared.settings_of(HOSTS, "python", "scheduler", python="host-python")
@click.option("--prepare", metavar="COMMAND", help="Run this before each trial.")
@click.option("--recover", metavar="COMMAND", help="Run this when the server broke down.")
@click.option("--read", multiple=True, metavar="PICK", help="A value that COMMAND prints.")
@click.option("--dry-run", is_flag=True, help="Show the cost of the search, and offer no load.")
@click.option(
    "--plan",
    "plan_only",
    is_flag=True,
    help="Run five trials each of half, once and twice the length at --seed-load, and show how "
    "many of each length the accuracy takes, with their cost.",
)
@shared.shell_option
@plot_option
@shared.store_option
@shared.details_option
@shared.json_option
def peak(
    *,
    words: tuple[str, ...],
    dry_run: bool,
    plan_only: bool,
    **given: Any,
) -> None:
    """Find the greatest load at which a server keeps its limits.

    Requests are sent at random times (an open loop), and their responses count from the moment that
    they were to be sent. Short trials bracket the peak; where it may be, further ones narrow it,
    until its interval is as narrow as wanted. A trial's response is the greatest of its values
    over their limits.

    COMMAND is another load generator: {load} and {seconds} are replaced in its arguments. What
    wrk2, vegeta, k6, oha, h2load and fortio print is known; of others, --read says where the
    values stand. Options of peak stand before it, or before MODULE:COROUTINE.

    Each trial is kept: `benchrigor resume` goes on, `explain` says why each was run. The exit code
    is 3 where --accuracy was given and not reached, 4 without a peak.

    A good request keeps all conditions of --slo: its whole response, the first byte of the answer's
    body (both from when it was to be sent), and the longest gap between two parts of it. One that
    fails is not good.

    \b
    Examples:
      benchrigor peak --url http://127.0.0.1:8000/ --p95 200ms --failed 1%
      benchrigor peak --url http://127.0.0.1:8000/ --mean 40ms --dry-run
      benchrigor peak --url http://127.0.0.1/ --mean 40ms --plan --seed-load 150
      benchrigor peak --url http://127.0.0.1/ --slo 'first-byte<50ms: 99%'
      benchrigor peak --requests mix.toml --limit p99=500ms --plot peak.png
      benchrigor peak --limit p99=50ms -- wrk2 -R{load} -d{seconds} --latency URL
      benchrigor peak --p95 50ms --load connections \\
        --read 'p95:s=regex:95% in (.+) secs' -- hey -c {load} -z {seconds}s URL
      benchrigor peak --mean 40ms my_client:request
      benchrigor peak --host elm --host oak --prefix 'ssh {host}' \\
        --url http://server:8000/ --p95 200ms
    """  # noqa: D301  # click wants the backspace itself
    problems: list[str] = []
    way = attempt(problems, _way, words, given)
    limits = (way and attempt(problems, _limits, words, given)) or []
    target = (way and attempt(problems, _target, way, words, given)) or {}
    accuracy_given = shared.is_given("accuracy")  # else it may be missed
    own = {name: given[name] for name in SEARCH if given[name] is not None}
    own |= {"budget_s": None} if own.get("budget_s") == math.inf else {}
    if not accuracy_given:
        own.pop("accuracy")
    search = peak_run.search_options(
        own,
        load=given["load"],
        limits=limits,
        # A plan is of the response, as it was published.
        accuracy=peak_run.PUBLISHED_ACCURACY if plan_only else given["accuracy"],
    )
    if limits:
        attempt(problems, lambda: PeakSearch(**search))
    refuse(problems or wrong_budget(search))
    planned = PeakSearch(**search)
    generator = {name: given[name] for name in ("load", "prepare", "recover", "read", *SENDING)}
    generator |= _by_shell(given) | target
    generator |= {"cwd": str(Path.cwd()), "accuracy_given": accuracy_given}
    offering = peak_run.generator_of(generator, planned.limits)
    if dry_run:
        announce(planned, search)
        return
    if plan_only:
        plan_lengths(planned, offering, budget_s=given["budget_s"])
        return
    run = PeakRun(
        planned,
        name=f"peak of {generator['name']}",
        options={**search, "limits": codec.encode(limits)},
        generator=generator,
        provenance=machine.provenance(full=True),
        store=shared.open_store(),
    )
    leave(carry_out(run, offering, accuracy_given=accuracy_given))


def _way(words: Sequence[str], given: Mapping[str, Any]) -> str:
    """Return the kind of the target; InvalidInput with options that do not go with it."""
    if words and names_function(words[0]) and not is_there(Path(words[0])):
        refuse(trailing_words(words, several=False))
    is_target = len(words) == 1 and names_function(words[0])
    ways = [way for way in ("url", "mix") if given[way]]
    ways += ["target" if is_target else "command"] * bool(words)
    if len(ways) != 1:
        raise InvalidInput(
            "expected one of --url, --requests FILE, MODULE:COROUTINE, or -- COMMAND"
        )
    known = {option.name: option for option in click.get_current_context().command.params}
    refuse(
        f"{known[name].opts[0]} is given, expected {' or '.join(only)} with it"
        for name, only in _ONLY_WITH.items()
        if _WAYS[ways[0]] not in only and given[name] and given[name] != known[name].default
    )
    return ways[0]


def _limits(words: Sequence[str], given: Mapping[str, Any]) -> list[Limit]:
    """Return the given limits, which the search checks; InvalidInput without any."""
    named = {"mean": given["mean_s"], "p95": given["p95_s"], FAILED: given["failed"]}
    found = [Limit(metric=name, at_most=most) for name, most in named.items() if most is not None]
    units = {pick.metric: pick.unit for pick in map(Pick.parse, given["read"])}
    problems: list[str] = []
    others = [attempt(problems, _limit, text, units) for text in given["others"]]
    others += [attempt(problems, limit_of_good, slo) for slo in given["slos"]]
    refuse(problems)
    if not (found or others):
        where = " before COMMAND, to which all that follows belongs" if words else ""
        raise InvalidInput(
            f"no limit is given{where}, expected --p95, --mean, --failed, --limit or --slo, such "
            "as --p95 200ms"
        )
    return found + [limit for limit in others if limit is not None]


def _limit(text: str, units: Mapping[str, str]) -> Limit:
    """Read a further limit."""
    metric, equals, most = text.partition("=")
    if not equals:
        raise InvalidInput(f"--limit is {text!r}, expected METRIC=VALUE, such as p99=500ms")
    try:
        return limit_of(metric, most, units.get(metric, ""))
    except ValueError as error:
        raise InvalidInput(f"--limit {text}: {error}") from None


def _target(way: str, words: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target of the load, as `generator_of` needs it."""
    if words:
        if way == "command":
            words = command_words(words, shell=given["shell"])
        return {"kind": way, "words": list(words), "name": shlex.join(words)}
    kinds = _kinds(given["mix"]) if way == "mix" else [_kind(given)]
    return {
        "kind": "http",
        "requests": [asdict(request) for request in kinds],
        "name": given["url"] or click.format_filename(given["mix"], shorten=True),
        **_hosts(given),
    }


def _by_shell(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the commands around trials that sh reads."""
    texts = {name: given[name] for name in ("prepare", "recover") if given["shell"]}
    return {name: shlex.join(words_of(text, by_shell=True)) for name, text in texts.items() if text}


def _hosts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sending hosts and their owner, as `generator_of` needs it; empty without any."""
    hosts = {name: given[name] for name in _SENT_BY_HOSTS if given[name]}
    if not hosts:
        return {}
    if given["processes"] is not None:
        raise InvalidInput("--processes is given, expected none with hosts: each sends from one")
    if "prefix" in hosts:
        hosts["prefix"] = prefix_of("--prefix", hosts["prefix"])
    return {
        "hosts": codec.encode(hosts_of(hosts)),
        "owner": f"{uuid.uuid4().hex[:8]}, a search for a peak by {platform.node()}",
    }


def _kind(given: Mapping[str, Any]) -> HttpRequest:
    headers = {}
    for header in given["header"]:
        name, colon, value = header.partition(":")
        if not colon:
            raise InvalidInput("--header has no colon, expected NAME:VALUE")  # it may be a secret
        headers[name.strip()] = value.strip()
    body = given["body"]
    if body.startswith("@"):
        try:
            body = readable(body[1:]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidInput(f"--body {body}: {error}") from error
    rest = {name: given[name] for name in ("url", "method", "status")}
    return HttpRequest(**rest, headers=headers, body=body)


def _kinds(path: Path) -> list[HttpRequest]:
    """Read the kinds of requests in a file."""
    tables = TomlTables.of_file(path)
    if not isinstance(tables.at("request"), list):
        raise InvalidInput(f"{path} has no [[request]], expected one for each kind of request")
    given = {place: tables.table(place, REQUEST, ["url"]) for place in tables.places("request")}
    kinds = [
        tables.attempt(place, HttpRequest, **table)
        for place, table in given.items()
        if "url" in table
    ]
    tables.refuse()
    return [kind for kind in kinds if kind is not None]


def announce(search: PeakSearch, options: Mapping[str, Any]) -> None:
    """Print the expected cost of a search."""
    expected = expected_costs(options)
    first = search.ask()
    assert first is not None  # noqa: S101  # it has not begun
    trials, seconds = [len(peak.trials) for peak in expected], [peak.cost_s for peak in expected]
    statuses = [peak.status for peak in expected]

    def text() -> str:
        unit, cut = search.unit, statuses.count(None)
        begun = f"{show_value(first.load, unit)} for {first.duration_s:.3g} s"
        n = _span([str(count) for count in sorted(trials)], cut)
        took = _span([show_duration(spent_s) for spent_s in sorted(seconds)], cut)
        peaks = f"peaks of 2 to 100 times {show_value(search.goal.seed_load, unit)}"
        others = Counter(status for status in statuses if status not in (None, PeakStatus.FOUND))
        ended = [f"{n} of {len(statuses)} end {status}" for status, n in others.items()]
        lines = row("first", [f"{begun}, then on to where the limits are not kept any more"])
        lines += row("expected", [f"{n} trials, {took}: simulated with {peaks}", *ended])
        return page(lines)

    print_result(text, first=first, trials=trials, seconds=seconds, statuses=statuses)


def plan_lengths(search: PeakSearch, generator: Prepared, *, budget_s: float | None) -> None:
    """Run pilot trials of several lengths at the first load, and print the costs by length."""
    first = search.ask()
    assert first is not None  # noqa: S101  # it has not begun
    lengths = [first.duration_s * times for times in _LENGTHS] * _PILOTS
    load = show_value(first.load, search.unit)
    planned = f"{len(lengths)} trials at {load}, {show_duration(sum(lengths))} in all"
    if budget_s is not None and sum(lengths) > budget_s:
        raise InvalidInput(f"--budget is {budget_s:g} s, and --plan takes {planned}: allow more")
    say(planned, err=True)
    generator.check()
    try:
        for number, seconds in enumerate(lengths):
            pilot = replace(first, id=number, duration_s=seconds, reason="pilot")
            search.recall(pilot, generator.offer(pilot))
    finally:
        generator.close()
    trials = search.result().trials
    why = _why_left_out(trials)
    valid = [trial for trial in trials if trial.counts and not trial.result.crashed]
    pilots = {
        seconds: [trial.ratio or 0.0 for trial in valid if trial.asked.duration_s == seconds]
        for seconds in lengths
    }
    if min(map(len, pilots.values())) < _FEWEST_PILOTS:
        raise InvalidInput(f"too few trials at {load} count: {reason}" for reason in why)
    if why:
        say(f"{len(trials) - len(valid)} of them left out: {'; '.join(why)}", err=True)
    if not any(trial.ratio for trial in valid):
        raise InvalidInput(
            f"nothing that is limited differs from 0 at {load}, expected responses that vary: give "
            "--mean or --p95, or a greater --seed-load"
        )
    setup_s = max(0.0, sum(trial.cost_s for trial in trials) - sum(lengths)) / len(trials)
    wanted = {"accuracy": search.goal.accuracy, "confidence": search.goal.confidence}
    plan = plan_runlength(pilots, **wanted, setup_s=setup_s)
    accuracy, confidence = map(percent, wanted.values())
    said = f"the response at {load} within {accuracy} at {confidence}; near the peak it takes more"
    print_result(
        lambda: page([*str(plan).splitlines(), said]),
        **{**wanted, "load": first.load, "setup_s": setup_s, **asdict(plan)},
    )


def _why_left_out(trials: Sequence[Trial]) -> list[str]:
    """Return why trials do not count, once per remedy."""
    said = [trial.invalid or "the server broke down" * trial.result.crashed for trial in trials]
    first = {why.partition(": ")[2]: why for why in reversed(said) if why}
    return [why for _, why in sorted(first.items())]


def _span(ascending: Sequence[str], cut: int) -> str:
    """Show the range; if searches were cut off, as more than the greatest."""
    least, most = ascending[0], ascending[-1]
    if cut:
        return f"{f'{least} to ' if cut < len(ascending) else ''}more than {most}"
    return least if least == most else f"{least} to {most}"


# --- stored searches


def noun_of(_record: RunRecord) -> str:
    """Return what such a run is called."""
    return "a search for a peak"


def show(record: RunRecord) -> None:
    """Print the report of a stored search."""
    _print_peak(peak_run.peak_of(record), run_id=record.run_id)


def explain(record: RunRecord) -> None:
    """Print how a stored search reached its result."""
    found = peak_run.peak_of(record)
    print_result(
        lambda: explain_peak(found, record.name),
        run_id=record.run_id,
        name=record.name,
        peak=codec.encode(found),
    )


def sheet(record: RunRecord) -> Sheet:
    """Return what HTML shows of a stored search."""
    from benchrigor.workbench.sheets import sheet_of_peak  # noqa: PLC0415  # slow to load

    return sheet_of_peak(peak_run.peak_of(record), record.name)


def draw(record: RunRecord) -> Axes:
    """Draw the trials of a stored search."""
    return plot_peak(peak_run.peak_of(record), title=record.name)


def resume(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> NoReturn:
    """Resume a stored search, with a new budget for all of it if one is given."""
    described = record.subject["generator"]
    accuracy_given = described.get("accuracy_given", False)
    if record.decision is not None and not budget:  # it is over: no server is needed
        show(record)
        leave(_code_of(peak_run.peak_of(record), accuracy_given=accuracy_given))
    refuse_hidden(record)
    search = peak_run.search_of(record, **budget)
    generator = peak_run.generator_of(described, search.limits)
    run = PeakRun.resumed(search, record, store)
    leave(carry_out(run, generator, accuracy_given=accuracy_given))


def carry_out(run: PeakRun, generator: Prepared, *, accuracy_given: bool) -> ExitCode:
    """Carry out a search, with a line per trial on stderr; return the exit code."""

    def print_() -> None:
        _print_peak(run.result(), run_id=run.campaign.run_id)

    def say_trial(*told: Any) -> None:
        say(trial_line(*told, budget_s=run.search.goal.budget_s), err=True)

    with telling_what_was_cut(run.campaign, print_):
        found = peak_run.find_peak(run, generator, after=say_trial)
    _print_peak(found, run_id=run.campaign.run_id)
    write_picture(lambda: plot_peak(found, title=run.record().name))
    return _code_of(found, accuracy_given=accuracy_given)


def _print_peak(found: PeakRate, *, run_id: str | None) -> None:
    """Print the report of a search, or its fields as JSON."""
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    if found.load is not None and found.load.is_bracket:
        fields["load"] = {**codec.encode(found.load), "confidence": None}
    print_result(
        facts=lambda: facts_of_peak(found),
        next_verb="explain",
        run_id=run_id,
        **fields,
    )


def _code_of(found: PeakRate, *, accuracy_given: bool) -> ExitCode:
    cut_short = (PeakStatus.BUDGET_SPENT, PeakStatus.FAILED)
    if found.status in cut_short and found.load is not None:
        return ExitCode.TARGET_MISSED if accuracy_given else ExitCode.RESULT
    bounded = (PeakStatus.NOT_SATURATED, PeakStatus.SATURATED_AT_LOWEST)
    known = found.load is not None or (found.status in bounded and found.at_least != found.at_most)
    return ExitCode.RESULT if known else ExitCode.NOTHING_MEASURED
