"""The file that says what a map varies, what it measures, and how a server is run meanwhile."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchrigor.cli.targets import names_function
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.session.measuring import TIME
from benchrigor.storage.toml_tables import (
    Keys,
    Reader,
    TomlTables,
    as_it_is,
    choice_of,
    flag_of,
    list_of,
    reader_of,
    seconds_of,
    several_of,
    share_of,
    table_of,
    text_of,
    whole_of,
    words_of,
)
from benchrigor.units import Direction
from benchrigor.workbench.data import Limit
from benchrigor.workbench.good_requests import read_slo
from benchrigor.workbench.loadgen.arrivals import ARRIVALS
from benchrigor.workbench.loadgen.http_requests import HttpRequest
from benchrigor.workbench.loadgen.limit_texts import limit_of
from benchrigor.workbench.loadgen.load_command import LoadCommand
from benchrigor.workbench.maps.life_cycle import COMMANDS, TIMEOUTS_S, LifeCycle
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.planning.surface_map import ADAPTIVE, D_OPTIMAL, DESIGNS
from benchrigor.workbench.pool.host_table import HostTable, read_hosts
from benchrigor.workbench.surfaces.designs import wrong_samples
from benchrigor.workbench.surfaces.factors import Factor, Point, Space
from benchrigor.workbench.surfaces.placeholders import filled, places_in
from benchrigor.workloads.processes.picking import Pick

_SECONDS = {"change": "change_s", "budget": "budget_s", "trial_time": "trial_s"}  # renamed
_SECONDS |= {"timeout": "timeout_s"}
_OFFERED = ("load", "seconds")  # places of a load generator's command, beside those of factors
_FIXED = {*COMMANDS, "ready", "port"} - {"warm_up", "ramp"}  # of a server that is started once
_PEAK = ("response", "peak")
VALUE = "value"  # the name of a response that has none of its own
HOST = "host"  # the place for the name of the host on which a sample is measured


def _is_limit(value: Any) -> bool:
    """Whether it is a text; or a table of a factor, in which each of its levels has one."""
    by_level = [*value.values()] if isinstance(value, dict) else [{"": value}]
    is_one = len(by_level) == 1 and isinstance(by_level[0], dict)
    return is_one and all(isinstance(text, str) for text in by_level[0].values())


def _is_function(value: Any) -> bool:
    return isinstance(value, str) and names_function(value)


_texts = several_of(text_of)
_picks = several_of(lambda name, value: str(Pick.parse(text_of(name, value))))
_limit = reader_of(_is_limit, 'a text such as "40ms", or such texts by the levels of a factor')
_direction = choice_of(*map(str, Direction))


def _directions(name: str, value: Any) -> Any:
    """Take a direction, or a table of them by response."""
    several_of(_direction)(name, [*value.values()] if isinstance(value, dict) and value else value)
    return value


_FACTOR = {"levels": list_of, "scale": as_it_is, "change": seconds_of, "workload": flag_of}
_DESIGN = {
    "kind": choice_of(*DESIGNS),
    "samples": whole_of,
    "seed": whole_of,
    "target": share_of,
    "confidence": share_of,
}
_SERVER = dict.fromkeys(COMMANDS, words_of) | {"ready": as_it_is, "port": as_it_is}
_REQUEST = dict.fromkeys(("url", "method", "headers", "body", "status", "weight"), as_it_is)
_LIMITS = dict.fromkeys(("mean", "p95", "failed"), _limit)
_SEARCH = {
    **dict.fromkeys(("accuracy", "confidence", "width"), share_of),
    **dict.fromkeys(("policy", "seed_load", "min_load", "max_load"), as_it_is),
    **dict.fromkeys(("trial_time", "budget"), seconds_of),
}
_SLOS = {"slo": _texts}
_AROUND = {"prepare": words_of, "recover": words_of}
_SENT = {"arrivals": choice_of(*ARRIVALS), "timeout": seconds_of, "processes": whole_of}
_ANY_PEAK = {**_LIMITS, "limits": table_of, **_SEARCH, **_AROUND}
_PEAKS: dict[str, Mapping[str, Reader]] = {
    "url": {**_REQUEST, **_SENT, **_SLOS, **_ANY_PEAK},
    "requests": {"requests": list_of, **_SENT, **_SLOS, **_ANY_PEAK},
    "command": {
        "command": words_of,
        "read": _picks,
        "load": choice_of("rate", "users", "connections"),
        **_ANY_PEAK,
    },
}
_GENERATOR = {"load": "rate", "arrivals": ARRIVALS[0], "timeout_s": None, "processes": None}
_WAY = {"direction": _directions}
_TAKES = {"accuracy": share_of, "budget": seconds_of, "timeout": seconds_of}
_RESPONSES: dict[str, Mapping[str, Reader]] = {
    "peak": {"peak": table_of},
    "command": {"command": words_of, "read": _picks, **_TAKES, **_WAY},
    "function": {"function": reader_of(_is_function, "module:function"), **_WAY},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakResponse(OneLine):
    """The peak of a server, whose texts have places for factors.

    Parameters
    ----------
    requests
        What is sent: fields of `HttpRequest`; or else
    command, read
        Program and arguments of a load generator, and where its output has values.
    limits
        The most of each metric: a text, or texts by the levels of a factor.
    slos
        Limits of the share of good requests, as `peak --slo` takes them.
    search, generator
        Further options of `PeakSearch`, and of what offers the load.
    """

    requests: Sequence[Mapping[str, Any]] = ()
    command: Sequence[str] = ()
    read: Sequence[str] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    slos: Sequence[str] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    generator: Mapping[str, Any] = field(default_factory=dict)

    def limits_at(self, point: Point) -> list[Limit]:
        """Return what the server must keep at a point."""
        found = [
            limit_of(metric, _text_at(given, point), self.unit(metric))
            for metric, given in self.limits.items()
        ]
        return found + [share_of_good(slo) for slo in filled([*self.slos], point)]

    def unit(self, metric: str) -> str:
        """Return the unit in which a metric is read."""
        units = {each.metric: each.unit for each in map(Pick.parse, self.read)}
        return units.get(metric, "")

    def generator_at(self, point: Point) -> dict[str, Any]:
        """Return what offers the load at a point, as searches for a peak describe it."""
        kind = "command" if self.command else "http"
        told = {**_GENERATOR, **self.generator, "words": self.command, "requests": self.requests}
        found: dict[str, Any] = filled(told, point)
        lines = {name: shlex.join(found[name]) if name in found else None for name in _AROUND}
        return {**found, **lines, "kind": kind, "read": [*self.read]}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResponse(OneLine):
    """Metrics of a command or values of a function, at a point; the first of them steers.

    Parameters
    ----------
    command
        Program and arguments, with places for factors.
    reads
        Where its output has each metric; empty for its wall time.
    function
        "module:function", called with the factors by name; empty for a command.
    directions
        Which way each response is better, by its name; of a function "value" where it has one.
    options
        What each sample takes: accuracy, budget_s, timeout_s.
    """

    command: Sequence[str] = ()
    reads: tuple[Pick, ...] = ()
    function: str = ""
    directions: Mapping[str, Direction]
    options: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFile(OneLine):
    """What a file of a map says, checked.

    Parameters
    ----------
    factors, design
        What is varied, and options of the design: kind, samples, target, confidence, seed.
    response
        What is measured in each sample.
    life_cycle
        Of the server; None without one.
    budget_s
        Seconds that the whole map may take, added up over hosts; None for no limit.
    hosts
        On which samples are measured at the same time; None for this machine alone.
    best
        Options of the choice among those that lead: margin.
    document
        All that the file holds, of which `map_of` makes this again.
    """

    factors: tuple[Factor, ...]
    design: Mapping[str, Any]
    response: PeakResponse | MetricResponse
    life_cycle: LifeCycle | None = None
    budget_s: float | None = None
    hosts: HostTable | None = None
    best: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)


def read_map(path: str | Path) -> MapFile:
    """Read the file of a map; the format is that of `map_of`.

    Raises
    ------
    InvalidInput
        With all that is wrong, each with its line.
    """
    return _map_of(TomlTables.of_file(path))


def map_of(document: Mapping[str, Any]) -> MapFile:
    """Make a map of the document of its file.

    Texts have places for levels, ``{threads}``; ``{{threads}}`` is that text itself. Commands are
    program and arguments, each of which is filled by itself: a shell reads them where they are
    ``sh -c``. Durations have their unit, shares are "5%" or 0.05::

        budget = "2h"

        [factors.threads]
        levels = [1, 2, 4, 8]
        scale = "log2"                  # linear, log2, log10, category
        change = "30s"                  # that a change costs

        [factors.size]
        levels = ["small", "large"]
        workload = true                 # the server need not be configured again

        [design]
        kind = "adaptive"               # d-optimal, full
        samples = 8
        target = "5%"

        [server]
        configure = "make THREADS={threads}"
        start = "my-server --port 8000 --threads {threads}"
        ready = "http://127.0.0.1:8000/"    # or port = 8000, or ready_command
        warm_up = "my-client --once {size}"     # and ramp, stop, clean
        timeouts = {ready = "20s", stop = "5s"}

        [response.peak]
        url = "http://127.0.0.1:8000/{size}"    # or requests = [{url = ..., weight = 2}, ...],
        p95 = "200ms"                           # or command = "wrk2 -R{load} -d{seconds}s ..."
        mean = {size = {small = "10ms", large = "40ms"}}
        limits = {p99 = "500ms"}
        accuracy = "5%"                         # and what else `benchrigor peak` takes

    Samples may be measured on several hosts at the same time::

        [hosts]
        names = ["elm", "oak", "fir"]
        prefix = "ssh {host}"           # without it all of them are this machine
        scheduler = "tcp://elm:8786"    # or of Dask, whose workers are the hosts
        interchangeable = false         # true if it does not matter which one measured what
        deadline = "8h"                 # after which no sample is begun; budget counts all hosts
        cwd = "/home/me/work"           # and python = "...", where they differ from here
        generators = 1                  # further hosts of each sample, which send its requests
        limit = "1h"                    # after which a sample is lost that has not ended

        [best]
        margin = "2%"                   # that does not matter to `map --best`

    Instead of ``[response.peak]`` there may be a metric of a command, or a function that is called
    with the factors by name::

        [response]
        command = "my-program --threads {threads}"
        read = "rate:op/s=regex:rate (.+)"      # without it its wall time
        function = "my_module:my_function"      # instead of a command
        direction = "higher"                    # where no unit tells

    A command has several responses where ``read`` is a list, a function where it returns a mapping;
    the first one steers. Each has a direction of its own::

        read = ["rate:op/s=json:rate", "p99:ms=json:p99"]
        direction = {rate = "higher", p99 = "lower"}    # needed of a function, in its order

    Raises
    ------
    InvalidInput
        With all that is wrong.
    """
    return _map_of(TomlTables(document, name="map"))


def _map_of(tables: TomlTables) -> MapFile:
    parts = dict.fromkeys(("factors", "design", "server", "response", "hosts", "best"), table_of)
    top = tables.table((), {"budget": seconds_of, **parts}, ["factors", "response"])
    made = [_factor(tables, name) for name in top.get("factors", {})]
    if "factors" in top and not made:
        tables.note(("factors",), "factors is empty, expected at least one")
    factors = tuple(each for each in made if each is not None)
    design = {"kind": ADAPTIVE, **tables.table(("design",), _DESIGN)}
    hosts = read_hosts(tables)
    space = Space(factors) if len(factors) == len(made) > 0 else None
    samples = tables.at("design", "samples")
    if space is not None and design["kind"] == D_OPTIMAL and samples == design.get("samples"):
        tables.note(("design",), *wrong_samples(space, samples))
    life_cycle = _life_cycle(tables, space)
    response = _response(tables, space)
    best = tables.table(("best",), {"margin": share_of})
    _check_places(tables)
    if hosts is not None and hosts.generators:
        _check_generators(tables, response)
    tables.refuse()
    assert response is not None  # noqa: S101  # else it was refused
    return MapFile(
        factors=factors,
        design=design,
        response=response,
        life_cycle=life_cycle,
        budget_s=_seconds(top).get("budget_s"),
        hosts=hosts,
        best=best,
        document=tables.document,
    )


def _check_generators(tables: TomlTables, response: PeakResponse | MetricResponse | None) -> None:
    """Note why other hosts cannot send the requests of a sample."""
    if not isinstance(response, PeakResponse) or not response.requests:
        expected = "a peak of a url or of requests, which they send"
        tables.note(("hosts", "generators"), f"generators are given, expected {expected}")
    elif response.generator.get("processes") is not None:
        tables.note(_PEAK, "processes is given, expected none with generators: each has one")
    elif not all(HOST in places_in(str(each.get("url"))) for each in response.requests):
        expected = f"the place {{{HOST}}} for the host of the server"
        tables.note(_PEAK, f"a url names no host that generators know, expected {expected}")


def _factor(tables: TomlTables, name: str) -> Factor | None:
    keys = ("factors", name)
    given = tables.table(keys, _FACTOR, ["levels"])
    return tables.attempt(keys, Factor, name, **_seconds(given)) if "levels" in given else None


def _seconds(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as they are called within; limits of "none" are None."""
    return {
        _SECONDS.get(name, name): None if each == math.inf else each for name, each in given.items()
    }


def _life_cycle(tables: TomlTables, space: Space | None) -> LifeCycle | None:
    if not isinstance(tables.at("server"), Mapping):
        return None
    given = tables.table(("server",), {**_SERVER, "timeouts": table_of})
    if "timeouts" in given:
        limits = dict.fromkeys(TIMEOUTS_S, seconds_of)
        given["timeouts"] = tables.table(("server", "timeouts"), limits)
    life_cycle = tables.attempt(("server",), LifeCycle, **given)
    if life_cycle is not None:
        for point in _points_of(space, life_cycle.ready, life_cycle.port):
            tables.attempt(("server",), life_cycle.at, point)
    return life_cycle


def _points_of(space: Space | None, *texts: Any) -> list[Point]:
    """Return points that differ in what has a place in texts, and are all that these may be at."""
    names = {name for text in texts for name in places_in(text)}
    varied = [factor for factor in space.factors if factor.name in names] if space else []
    return Space(varied).grid() if varied else [{}]


def _one_of(tables: TomlTables, keys: Keys, choices: Iterable[str]) -> str:
    """Return which of some keys a table has; empty, and noted, unless it is one."""
    found = [each for each in choices if tables.at(*keys, each) is not None]
    if len(found) == 1:
        return found[0]
    expected = " or ".join(choices)
    has = f"{'.'.join(keys)} has {' and '.join(found) or 'no response'}"
    tables.note(keys, f"{has}, expected one of {expected}")
    return ""


def _response(tables: TomlTables, space: Space | None) -> PeakResponse | MetricResponse | None:
    kind = _one_of(tables, ("response",), _RESPONSES)
    if not kind:
        return None
    given = tables.table(("response",), _RESPONSES[kind])
    if kind == "peak":
        return _peak(tables, space)
    reads = tuple(map(Pick.parse, given.pop("read", ())))
    directions = _directions_of(tables, reads, given.pop("direction", None), kind)
    options = _seconds({name: given.pop(name) for name in _TAKES if name in given})
    return MetricResponse(reads=reads, directions=directions, options=options, **given)


def _directions_of(
    tables: TomlTables, reads: Sequence[Pick], given: Any, kind: str
) -> dict[str, Direction]:
    """Return which way each response is better, by its name, the steering one first."""
    names = [each.metric for each in reads] or [TIME.name if kind == "command" else VALUE]
    if len({*names}) < len(names):
        tables.note(("response", "read"), f"read has {', '.join(names)}, expected different names")
    if isinstance(given, Mapping) and kind == "function":
        names = [*given]
    ways = given if isinstance(given, Mapping) else dict.fromkeys(names, given) if given else {}
    for name in (each for each in ways if each not in names):
        said = f"direction is of {name!r}, expected {' or '.join(names)}"
        tables.note(("response", "direction"), said)
    own = {each.metric: each.measured.direction for each in reads}
    if kind == "command" and not reads:
        own = {TIME.name: Direction.LOWER}
    found = {name: ways.get(name) or own.get(name) for name in names}
    for name in (each for each, way in found.items() if way is None):
        of = f" for {name}" * (len(names) > 1)
        tables.note(("response",), f"response has no direction{of}, expected 'higher' or 'lower'")
    return {name: Direction(way or Direction.HIGHER) for name, way in found.items()}


def _peak(tables: TomlTables, space: Space | None) -> PeakResponse | None:
    way = _one_of(tables, _PEAK, _PEAKS)
    if not way:
        return None
    given = tables.table(_PEAK, _PEAKS[way])
    requests = [{name: given.pop(name) for name in _REQUEST if name in given}]
    if way == "requests":
        places = [(*_PEAK, way, str(index)) for index in range(len(given.pop(way, ())))]
        requests = [tables.table(each, _REQUEST, ["url"]) for each in places]
        requests = [each for each in requests if "url" in each]
    limits = {name: given.pop(name) for name in _LIMITS if name in given}
    further = dict.fromkeys(given.pop("limits", {}), _limit)
    response = PeakResponse(
        requests=[] if way == "command" else requests,
        command=given.pop("command", ()),
        read=given.pop("read", ()),
        slos=given.pop("slo", ()),
        limits=limits | tables.table((*_PEAK, "limits"), further),
        search=_seconds({name: given.pop(name) for name in _SEARCH if name in given}),
        generator=_seconds(given),
    )
    if space is not None:
        _check_limits(tables, response, space)
        _check_offered(tables, response, space)
    return response


def _check_limits(tables: TomlTables, response: PeakResponse, space: Space) -> None:
    """Note what is wrong with limits at any point."""
    levels = {factor.name: {*map(str, factor.levels)} for factor in space.factors}
    for metric, given in response.limits.items():
        keys = (*_PEAK, metric) if metric in _LIMITS else (*_PEAK, "limits", metric)
        name, by_level = next(iter(given.items())) if isinstance(given, Mapping) else ("", given)
        if name and {*by_level} != levels.get(name):
            expected = f"each of {sorted(levels[name])}" if name in levels else "a factor"
            tables.note(keys, f"{metric} is given by {short(name)}, expected {expected}")
            continue
        for text in by_level.values() if name else [given]:
            for point in _points_of(space, text):
                tables.attempt(keys, limit_of, metric, filled(text, point), response.unit(metric))
    for text in response.slos:
        for point in _points_of(space, text):
            tables.attempt((*_PEAK, "slo"), share_of_good, filled(text, point))


def _check_offered(tables: TomlTables, response: PeakResponse, space: Space) -> None:
    """Note what is wrong with requests, and with a search and its command if all else is right."""
    for index, request in enumerate(response.requests):
        several = tables.at(*_PEAK, "requests") is not None
        for point in _points_of(space, request):
            keys = (*_PEAK, *["requests", str(index)] * several)
            tables.attempt(keys, HttpRequest, **filled(request, point))
    if not tables.is_right:
        return
    limits = response.limits_at(space.grid()[0])
    tables.attempt(_PEAK, PeakSearch, limits=limits, **response.search)
    is_rate = response.generator.get("load", "rate") == "rate"
    command = partial(LoadCommand, limits=limits, is_rate=is_rate)
    for point in _points_of(space, response.command) if response.command else ():
        words, picks = filled([*response.command], point), [*map(Pick.parse, response.read)]
        tables.attempt((*_PEAK, "command"), command, words, picks)


def _check_places(tables: TomlTables) -> None:
    """Note places of what is no factor, factors without a place, and those in a wrong place."""
    factors = tables.at("factors")
    factors = factors if isinstance(factors, Mapping) else {}
    used = {*factors} if tables.at("response", "function") else set[str]()
    has_hosts = tables.at("hosts") is not None
    if has_hosts and HOST in factors:
        tables.note(
            ("factors", HOST),
            f"{HOST} is a factor, expected another name: {{{HOST}}} is that of the host",
        )
    for keys, name in (found for root in ("server", "response") for found in _places(tables, root)):
        used.add(name)
        offered = keys[:3] == (*_PEAK, "command") and name in _OFFERED
        is_fixed = keys[0] == "server" and {*keys[1:2]} & _FIXED
        expected = ""
        if name not in factors and not offered and not (has_hosts and name == HOST):
            expected = f"{' or '.join(factors)}; {{{{{name}}}}} is that text itself"
        elif is_fixed and tables.at("factors", name, "workload") is True:
            expected = "none of the workload: the server is not started again for it"
        if expected:
            said = f"{'.'.join(keys)} has a place for {name}, expected {expected}"
            tables.note(keys, said)
    for name in (each for each in factors if each not in used):
        said = f"{name} is unused, expected {{{name}}} in a command, a request or a limit"
        tables.note(("factors", name), said)


def _places(tables: TomlTables, *keys: str) -> Iterator[tuple[Keys, str]]:
    """Yield names of places in texts, and those of factors by whose levels limits are given."""
    item = tables.at(*keys)
    if isinstance(item, str) and "read" not in keys:
        yield from ((keys, name) for name in places_in(item))
    elif isinstance(item, Mapping):
        is_by_level = keys in {(*_PEAK, name) for name in _LIMITS} or keys[:-1] == (
            *_PEAK,
            "limits",
        )
        for name in item:
            if is_by_level:
                yield keys, name
            yield from _places(tables, *keys, name)
    elif isinstance(item, list):
        for index in range(len(item)):
            yield from _places(tables, *keys, str(index))


def share_of_good(text: str) -> Limit:
    """Read a limit of the share of good requests."""
    metric, at_most = read_slo(text)
    return Limit(metric=metric, at_most=at_most)


def _text_at(given: Any, point: Point) -> str:
    """Return a limit at a point."""
    if isinstance(given, Mapping):
        ((name, by_level),) = given.items()
        given = by_level[str(point[name])]
    return str(filled(given, point))
