"""``benchrigor peak``: the greatest load at which a server keeps its limits."""

from __future__ import annotations

import math
import platform
import shlex
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchrigor import machine
from benchrigor.cli import options as shared
from benchrigor.cli.picture import plot_option
from benchrigor.cli.targets import command_words, names_function, trailing_words
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.files import readable
from benchrigor.model import codec
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.codec import is_there
from benchrigor.model.shell_words import words_of
from benchrigor.model.toml_tables import TomlTables
from benchrigor.workbench.data import FAILED, Limit
from benchrigor.workbench.good_requests import read_slo
from benchrigor.workbench.loadgen.arrivals import ARRIVALS
from benchrigor.workbench.loadgen.http_requests import REQUEST, HttpRequest
from benchrigor.workbench.loadgen.limit_texts import limit_of
from benchrigor.workbench.peak_run import PeakRun
from benchrigor.workbench.planning.expected_cost import wrong_budget
from benchrigor.workbench.planning.search import ADAPTIVE, POLICIES, PeakSearch
from benchrigor.workbench.pool.host_table import HostTable, wrong_names, wrong_ways
from benchrigor.workbench.searches import (
    BUDGET_S,
    LOADS,
    PUBLISHED_ACCURACY,
    announce,
    carry_out,
    generator_of,
    plan_lengths,
)
from benchrigor.workloads import Pick

_SEARCH = ("accuracy", "confidence", "policy", "seed_load", "min_load", "max_load", "width")
_OFFERED = ("arrivals", "timeout_s", "processes", "prepare", "recover", "read")


def _limit_option(flag: str, name: str, text: str) -> shared.Decorator:
    """Add a limit of responses, which needs its unit: a bare 100 usually means 100ms."""
    return click.option(flag, name, type=shared.WITH_UNIT, help=text)


def _load_option(flag: str, text: str, default: float | None = None) -> shared.Decorator:
    return click.option(
        flag, type=float, metavar="LOAD", default=default, show_default=True, help=text
    )


@click.command(
    cls=Verb,
    usual="--url --requests --mean --p95 --slo --limit --load --read --accuracy "
    "--budget --dry-run --details --json",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, metavar="MODULE:COROUTINE | -- COMMAND [ARG]")
@click.option("--url", help="Send HTTP requests to this URL.")
@click.option("--method", default="GET", show_default=True, help="Of these requests.")
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
@_limit_option("--mean", "mean_s", "Limit of the mean response, such as 40ms.")
@_limit_option("--p95", "p95_s", "Limit of the 95th percentile of responses, such as 200ms.")
@click.option("--failed", metavar="SHARE", help="Limit of the share of requests that fail.")
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
@click.option(
    "--load",
    type=click.Choice([*LOADS]),
    default="rate",
    show_default=True,
    help="What a load is: requests per second; or, of a COMMAND, users or connections that each "
    "wait for an answer.",
)
@_load_option("--seed-load", "The first load.", 50.0)
@_load_option("--min-load", "The least load that is tried.", 1.0)
@_load_option("--max-load", "The greatest load that is tried.")
@shared.share_option("--accuracy", "5%", "Half-width wanted of the peak; published policies 10%.")
@shared.share_option(
    "--width", "10%", "The published policies take a response this near to the limit for the peak."
)
@shared.setting("confidence")
@click.option(
    "--trial-time",
    "trial_s",
    type=shared.DURATION,
    help="Length of each trial.  [default: as the policy wants: 3min, strawman 5min, adaptive as "
    "the interval needs]",
)
@click.option(
    "--budget",
    "budget_s",
    type=shared.LIMIT,
    help="The search takes no longer than this; none for no limit.  [default: 240; none for the "
    "published policies]",
)
@shared.choice_option(
    "--policy", "How loads are chosen; all but the first are published.", POLICIES
)
@shared.choice_option("--arrivals", "How requests follow each other.", ARRIVALS)
@click.option(
    "--timeout",
    "timeout_s",
    type=shared.DURATION,
    help="A request without an answer by then failed.  [default: 10s, or 3 times the greatest "
    "limit]",
)
@click.option("--processes", type=int, metavar="N", help="Send from so many, at least.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Send from this host, too.")
@click.option(
    "--prefix",
    metavar="COMMAND",
    help="What runs a command on a host, such as 'ssh {host}'; without it, hosts are processes of "
    "this machine.",
)
@click.option(
    "--host-python", metavar="PATH", help="The interpreter on the hosts.  [default: as here]"
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Hosts are workers of this Dask scheduler: all, or those that --host names.",
)
@click.option("--prepare", metavar="COMMAND", help="Run this before each trial.")
@click.option("--recover", metavar="COMMAND", help="Run this when the server broke down.")
@click.option("--read", multiple=True, metavar="PICK", help="A value that COMMAND prints.")
@click.option("--dry-run", is_flag=True, help="Show what it would take, and offer no load.")
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
    mean_s: float | None,
    p95_s: float | None,
    failed: str | None,
    others: tuple[str, ...],
    slos: tuple[str, ...],
    load: str,
    dry_run: bool,
    plan_only: bool,
    picture: Path | None,
    store: Path | None,
    as_json: bool,
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

    Each trial is kept: `benchrigor resume` goes on, `explain` tells why each was run. The exit code
    is 3 where --accuracy was given and not reached, 4 where there is no peak to tell.

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
    limits = _limits(mean_s, p95_s, failed, others, given["read"]) + _shares(slos)
    limits = _check_limits(words, limits)
    accuracy_given = shared.is_given("accuracy")  # else it may be missed
    if (plan_only or given["policy"] != ADAPTIVE) and not accuracy_given:
        given["accuracy"] = PUBLISHED_ACCURACY  # of the response, as it was published
    search = {
        **{name: given[name] for name in _SEARCH},
        "budget_s": _budget(given["budget_s"], given["policy"]),
        "trial_s": given["trial_s"],
        "limits": limits,
        "whole": load != "rate",
        "unit": LOADS[load],
    }
    generator = {name: given[name] for name in _OFFERED} | _by_shell(given) | _target(words, given)
    generator |= {"load": load, "cwd": str(Path.cwd()), "accuracy_given": accuracy_given}
    planned = _planned(search)
    offering = generator_of(generator, planned.limits)
    if dry_run:
        announce(planned, search, as_json=as_json)
        return
    if plan_only:
        plan_lengths(planned, offering, budget_s=given["budget_s"], as_json=as_json)
        return
    run = PeakRun(
        planned,
        name=f"peak of {generator['name']}",
        options={**search, "limits": codec.encode(limits)},
        generator=generator,
        provenance=machine.provenance(full=True),
        store=shared.open_store(store),
    )
    carry_out(
        run, planned, offering, accuracy_given=accuracy_given, as_json=as_json, picture=picture
    )


def _planned(search: Mapping[str, Any]) -> PeakSearch:
    """Return the search; InvalidInput if its budget is shorter than a trial."""
    refuse(wrong_budget(search))
    return PeakSearch(**search)


def _budget(given_s: float | None, policy: str) -> float | None:
    """Return the limit of the total cost; None without one, as for published policies."""
    if given_s is None:
        return BUDGET_S if policy == ADAPTIVE else None
    return None if math.isinf(given_s) else given_s


def _limits(
    mean_s: float | None,
    p95_s: float | None,
    failed: str | None,
    others: Sequence[str],
    read: Sequence[str],
) -> list[Limit]:
    """Return the given limits, which the search checks."""
    units = {pick.metric: pick.unit for pick in map(Pick.parse, read)}
    found = [
        Limit(metric=name, at_most=value)
        for name, value in (("mean", mean_s), ("p95", p95_s))
        if value is not None
    ]
    if failed is not None:
        found.append(_limit("--failed", FAILED, failed))
    for text in others:
        metric, equals, most = text.partition("=")
        if not equals:
            raise InvalidInput(f"--limit is {text!r}, expected METRIC=VALUE, such as p99=500ms")
        found.append(_limit("--limit", metric, most, units.get(metric, "")))
    return found


def _check_limits(words: Sequence[str], limits: list[Limit]) -> list[Limit]:
    """Return the limits; InvalidInput without any, and for options after the target."""
    if words and names_function(words[0]) and not is_there(Path(words[0])):
        refuse(trailing_words(words, several=False))
    if not limits:
        where = " before COMMAND, to which all that follows belongs" if words else ""
        raise InvalidInput(
            f"no limit is given{where}, expected --p95, --mean, --failed, --limit or --slo, such "
            "as --p95 200ms"
        )
    return limits


def _shares(slos: Sequence[str]) -> list[Limit]:
    """Return the limits of shares of good requests; InvalidInput with all problems."""
    problems: list[str] = []
    read = [attempt(problems, read_slo, slo) for slo in slos]
    refuse(problems)
    return [Limit(metric=slo[0], at_most=slo[1]) for slo in read if slo is not None]


def _limit(option: str, metric: str, text: str, unit: str = "") -> Limit:
    """Read a limit; a bare number has the unit of its metric."""
    try:
        return limit_of(metric, text, unit)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _target(words: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target of the load, as `generator_of` needs it."""
    url, mix = given["url"], given["mix"]
    if sum(map(bool, (url, mix, words))) != 1:
        raise InvalidInput(
            "expected one of --url, --requests FILE, MODULE:COROUTINE, or -- COMMAND"
        )
    _check_unused(words, mix)
    if words:
        kind = "target" if _is_target(words) else "command"
        if kind == "command":
            words = command_words(words, shell=given["shell"])
        return {"kind": kind, "words": list(words), "name": shlex.join(words)}
    kinds = _kinds(mix) if mix else [_kind(given)]
    return {
        "kind": "http",
        "requests": [asdict(request) for request in kinds],
        "name": url or click.format_filename(mix, shorten=True),
        **_hosts(given),
    }


def _by_shell(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the commands around trials that sh reads."""
    texts = {name: given[name] for name in ("prepare", "recover") if given["shell"]}
    return {name: shlex.join(words_of(text, by_shell=True)) for name, text in texts.items() if text}


def _check_unused(words: Sequence[str], mix: Path | None) -> None:
    """Refuse options of other kinds of targets."""
    unused: tuple[str, ...] = ("method", "header", "body", "status") if words or mix else ()
    hosts = ("hosts", "prefix", "host_python", "scheduler")
    if words:
        unused += hosts
    elif any(map(shared.is_given, hosts)) and shared.is_given("processes"):
        raise InvalidInput("--processes is given, expected none with hosts: each sends from one")
    if words and not _is_target(words):
        unused += ("arrivals", "timeout_s", "processes", "slos")
    options = [flag for flag in click.get_current_context().command.params if flag.name in unused]
    refuse(
        f"{option.opts[0]} is given, expected none with "
        + (
            "--requests"
            if not words
            else "MODULE:COROUTINE: hosts send HTTP requests alone"
            if _is_target(words) and option.name in hosts
            else "COMMAND"
        )
        for option in options
        if shared.is_given(str(option.name))
    )


def _hosts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sending hosts and their owner, as `generator_of` needs it; empty without any."""
    instead = "put it into a script"
    prefix = given["prefix"] and words_of(given["prefix"], "--prefix", instead=instead)
    hosts = {
        "names": list(given["hosts"]),
        "prefix": prefix,
        "python": given["host_python"],
        "scheduler": given["scheduler"],
    }
    hosts = {name: value for name, value in hosts.items() if value not in (None, [])}
    if not hosts:
        return {}
    if not {*hosts} & {"names", "scheduler"}:
        raise InvalidInput(
            f"{' '.join(hosts)} of hosts is given, expected --host or --scheduler, too"
        )
    problems = [problem.replace("names", "--host", 1) for problem in wrong_names(given["hosts"])]
    refuse(problems, (f"--{problem}" for _, problem in wrong_ways(hosts)))
    return {
        "hosts": codec.encode(HostTable(**hosts)),
        "owner": f"{uuid.uuid4().hex[:8]}, a search for a peak by {platform.node()}",
    }


def _is_target(words: Sequence[str]) -> bool:
    """Return whether words name a coroutine function, not a command."""
    return len(words) == 1 and names_function(words[0])


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
    return HttpRequest(
        url=given["url"],
        method=given["method"],
        headers=headers,
        body=body,
        status=given["status"],
    )


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
