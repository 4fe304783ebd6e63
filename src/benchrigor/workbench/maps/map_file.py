"""The file of a map: its factors, its responses, and the life cycle of its server."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchrigor.model import toml_tables as toml
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.model.shell_words import words_of
from benchrigor.model.toml_tables import Keys, Reader, TomlTables
from benchrigor.session.measuring import TIME
from benchrigor.settings import Setting
from benchrigor.units import Direction
from benchrigor.workbench import settings
from benchrigor.workbench.data import Limit, limit_of, limit_of_good
from benchrigor.workbench.designs import Factor, Point, Space, fill_places, places_in, wrong_samples
from benchrigor.workbench.loadgen.load_command import LoadCommand
from benchrigor.workbench.loadgen.sending import REQUEST, HttpRequest
from benchrigor.workbench.maps.life_cycle import COMMANDS, LifeCycle
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.planning.surface_map import D_OPTIMAL
from benchrigor.workbench.pool import HostTable, read_hosts
from benchrigor.workloads.named_functions import names_function
from benchrigor.workloads.processes.picking import Pick

_OFFERED = ("load", "seconds")  # further places of a load generator's command
_FIXED = {*COMMANDS, "ready", "port"} - {"warm_up", "ramp"}  # cannot change in a running server
_PARTS = ("factors", "design", "server", "response", "hosts", "best")
_PEAK = ("response", "peak")
_COMMANDS = [
    *(("server", name) for name in COMMANDS),
    ("response", "command"),
    *((*_PEAK, name) for name in ("command", "prepare", "recover")),
]
VALUE = "value"  # the name of a response without a name of its own
HOST = "host"  # the place for the name of the host that measures a sample


def _is_limit(value: Any) -> bool:
    """Whether it is a text; or a table with a factor, and a text for every level."""
    if not isinstance(value, dict):
        return isinstance(value, str)
    (levels,) = value.values() if len(value) == 1 else [None]
    return isinstance(levels, dict) and all(isinstance(text, str) for text in levels.values())


def _is_function(value: Any) -> bool:
    return isinstance(value, str) and names_function(value)


_picks = toml.several_of(lambda name, value: str(Pick.parse(toml.text_of(name, value))))
_limit = toml.reader_of(_is_limit, 'a text such as "40ms", or such texts by the levels of a factor')
_direction = toml.reader_for(settings.CHOICE["direction"])


def _directions(name: str, value: Any) -> Any:
    """Take a direction, or a table of them by response."""
    is_table = isinstance(value, dict) and value
    toml.several_of(_direction)(name, [*value.values()] if is_table else value)
    return value


_SERVER = dict.fromkeys(COMMANDS, toml.words_of) | {"ready": toml.as_it_is, "port": toml.as_it_is}
_LIMITS = dict.fromkeys(("mean", "p95", "failed"), _limit)
_FACTOR = {"levels": toml.list_of, "scale": toml.as_it_is}
_AROUND = {"prepare": toml.words_of, "recover": toml.words_of}
_ANY_PEAK = {**_LIMITS, "limits": toml.table_of, **_AROUND}
_SENT = {"slo": toml.several_of(toml.text_of), **_ANY_PEAK}
_COMMAND = {"command": toml.words_of, "read": _picks}
_WAY = {"direction": _directions}
Keywords = tuple[Mapping[str, Setting], Mapping[str, Reader]]  # settings of a table, further keys
_PEAKS: dict[str, Keywords] = {
    "url": (settings.SEARCH | settings.SENDING, REQUEST | _SENT),
    "requests": (settings.SEARCH | settings.SENDING, {"requests": toml.list_of, **_SENT}),
    "command": (settings.SEARCH | settings.LOAD, _COMMAND | _ANY_PEAK),
}
_RESPONSES: dict[str, Keywords] = {
    "peak": ({}, {"peak": toml.table_of}),
    "command": (settings.SAMPLE, _COMMAND | _WAY),
    "function": ({}, {"function": toml.reader_of(_is_function, "module:function"), **_WAY}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakResponse(OneLine):
    """The peak of a server; its texts have places for factors.

    Parameters
    ----------
    requests
        Requests to send, as fields of `HttpRequest`; or else
    command, read
        Program and arguments of a load generator, and the places of values in its output.
    limits
        The upper limits by metric: a text, or texts by the levels of a factor.
    slos
        Limits of the share of good requests, as `peak --slo` takes them.
    search, generator
        Further options of `PeakSearch` and of the load generator.
    """

    requests: Sequence[Mapping[str, Any]] = ()
    command: Sequence[str] = ()
    read: Sequence[str] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    slos: Sequence[str] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    generator: Mapping[str, Any] = field(default_factory=dict)

    def limits_at(self, point: Point) -> list[Limit]:
        """Return the limits that the server must keep at a point."""
        found = [
            limit_of(metric, _text_at(given, point), self.unit(metric))
            for metric, given in self.limits.items()
        ]
        return found + [limit_of_good(slo) for slo in fill_places([*self.slos], point)]

    def unit(self, metric: str) -> str:
        """Return the unit in which a metric is read."""
        units = {pick.metric: pick.unit for pick in map(Pick.parse, self.read)}
        return units.get(metric, "")

    def generator_at(self, point: Point) -> dict[str, Any]:
        """Return the load generator at a point, as searches for a peak describe it."""
        kind = "command" if self.command else "http"
        usual = {name: row.default for name, row in (settings.LOAD | settings.SENDING).items()}
        texts = {**usual, **self.generator, "words": self.command, "requests": self.requests}
        found: dict[str, Any] = fill_places(texts, point)
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
        The places of metrics in its output; empty for its wall time.
    function
        "module:function", called with the factors by name; empty for a command.
    directions
        The better direction by response. A function with one response calls it "value".
    options
        Options of a sample: accuracy, budget_s, timeout_s.
    """

    command: Sequence[str] = ()
    reads: tuple[Pick, ...] = ()
    function: str = ""
    directions: Mapping[str, Direction]
    options: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFile(OneLine):
    """The checked contents of the file of a map.

    Parameters
    ----------
    factors, design
        The factors, and options of the design as `SurfaceMap` has them.
    response
        The measurement of a sample.
    life_cycle
        Of the server; None without one.
    budget_s
        The limit of the whole map in seconds, summed over hosts; None without a limit.
    hosts
        They measure samples at the same time; without names or a scheduler, this machine does.
    best
        Options of the choice among the leading configurations: margin.
    document
        The whole file as plain data; `map_of` reads it again.
    """

    factors: tuple[Factor, ...]
    design: Mapping[str, Any]
    response: PeakResponse | MetricResponse
    life_cycle: LifeCycle | None = None
    budget_s: float | None = None
    hosts: HostTable = field(default_factory=HostTable)
    best: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_pool(self) -> bool:
        """Whether a pool of hosts measures the samples, rather than this process."""
        return bool(self.hosts.names) or self.hosts.scheduler is not None

    @property
    def deadline_s(self) -> float:
        """Seconds after which no sample begins."""
        return math.inf if self.hosts.deadline_s is None else self.hosts.deadline_s


def read_map(path: str | Path, *, by_shell: bool = False) -> MapFile:
    """Read the file of a map, in the format that `map_of` takes.

    With ``by_shell``, sh reads the commands that are given as texts.

    Raises
    ------
    InvalidInput
        With all problems and their lines.
    """
    tables = TomlTables.of_file(path)
    for *keys, name in _COMMANDS if by_shell else ():
        table = tables.at(*keys)
        text = toml.items_of(table).get(name)
        if isinstance(text, str):
            table[name] = words_of(text, by_shell=True)
    return _map_of(tables)


def map_of(document: Mapping[str, Any]) -> MapFile:
    """Make a map of the document of its file; `docs/maps.md` and `docs/pool.md` show the format.

    Texts have places for levels, ``{threads}``; ``{{threads}}`` stands for ``{threads}`` itself.
    Words of a command are filled one by one. Durations have units, and shares are "5%" or 0.05.

    Raises
    ------
    InvalidInput
        With all problems.
    """
    return _map_of(TomlTables(document, name="map"))


def _map_of(tables: TomlTables) -> MapFile:
    parts = dict.fromkeys(_PARTS, toml.table_of)
    top = tables.settings(
        (), {"budget_s": settings.MAP["budget_s"]}, parts, ["factors", "response"]
    )
    made = [_factor(tables, name) for name in top.get("factors", {})]
    if "factors" in top and not made:
        tables.note(("factors",), "factors is empty, expected at least one")
    factors = tuple(factor for factor in made if factor is not None)
    design = {"design": settings.ADAPTIVE, **tables.settings(("design",), settings.DESIGN)}
    hosts = read_hosts(tables) or HostTable()
    space = Space(factors) if len(factors) == len(made) > 0 else None
    samples = tables.at("design", "samples")
    if space is not None and design["design"] == D_OPTIMAL and samples == design.get("samples"):
        tables.note(("design",), *wrong_samples(space, samples))
    life_cycle = _life_cycle(tables, space)
    response = _response(tables, space)
    best = tables.settings(("best",), {"margin": settings.CHOICE["margin"]})
    _check_places(tables)
    if tables.at("hosts", "generators") is not None:
        _check_generators(tables, response)
    tables.refuse()
    assert response is not None  # noqa: S101  # else it was refused
    return MapFile(
        factors=factors,
        design=design,
        response=response,
        life_cycle=life_cycle,
        budget_s=top.get("budget_s"),
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
    elif not all(HOST in places_in(str(request.get("url"))) for request in response.requests):
        expected = f"the place {{{HOST}}} for the host of the server"
        tables.note(_PEAK, f"a url names no host that generators know, expected {expected}")


def _factor(tables: TomlTables, name: str) -> Factor | None:
    keys = ("factors", name)
    given = tables.settings(keys, settings.FACTOR, _FACTOR, ["levels"])
    return tables.attempt(keys, Factor, name, **given) if "levels" in given else None


def _life_cycle(tables: TomlTables, space: Space | None) -> LifeCycle | None:
    if not isinstance(tables.at("server"), Mapping):
        return None
    given = tables.table(("server",), {**_SERVER, "timeouts": toml.table_of})
    if "timeouts" in given:
        given["timeouts"] = tables.settings(("server", "timeouts"), settings.STEPS)
    life_cycle = tables.attempt(("server",), LifeCycle, **given)
    if life_cycle is not None:
        waits = {"ready": life_cycle.ready, "port": life_cycle.port}
        _try(tables, ("server",), space, lambda waits: replace(life_cycle, **waits), waits)
    return life_cycle


def _try(
    tables: TomlTables, keys: Keys, space: Space | None, make: Callable[[Any], object], item: Any
) -> None:
    """Fill texts with every combination of the levels in their places, and try to use them."""
    names = {*places_in(item)}
    varied = [factor for factor in space.factors if factor.name in names] if space else []
    for point in Space(varied).grid() if varied else [{}]:
        tables.attempt(keys, make, fill_places(item, point))


def _one_of(tables: TomlTables, keys: Keys, choices: Iterable[str]) -> str:
    """Return the one key of ``choices`` in a table; note a problem and return "" otherwise."""
    found = [choice for choice in choices if tables.at(*keys, choice) is not None]
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
    rows, readers = _RESPONSES[kind]
    given = tables.settings(("response",), rows, readers)
    if kind == "peak":
        return _peak(tables, space)
    reads = tuple(map(Pick.parse, given.pop("read", ())))
    directions = _directions_of(tables, reads, given.pop("direction", None), kind)
    options = {name: given.pop(name) for name in rows if name in given}
    return MetricResponse(reads=reads, directions=directions, options=options, **given)


def _directions_of(
    tables: TomlTables, reads: Sequence[Pick], given: Any, kind: str
) -> dict[str, Direction]:
    """Return the better direction by response, the steering one first."""
    names = [pick.metric for pick in reads]
    if len({*names}) < len(names):
        tables.note(("response", "read"), f"read has {', '.join(names)}, expected different names")
    alone = {TIME.name: Direction.LOWER} if kind == "command" else {VALUE: None}
    own = {pick.metric: pick.measured.direction for pick in reads} or alone
    if isinstance(given, Mapping) and kind == "function":
        own = dict.fromkeys(given)
    ways = given if isinstance(given, Mapping) else dict.fromkeys(own, given)
    for name in (name for name in ways if name not in own):
        said = f"direction is of {name!r}, expected {' or '.join(own)}"
        tables.note(("response", "direction"), said)
    found = {name: ways.get(name) or way for name, way in own.items()}
    is_refused = given is None and tables.at("response", "direction") is not None
    for name in (name for name, way in found.items() if way is None and not is_refused):
        of = f" for {name}" * (len(own) > 1)
        tables.note(("response",), f"response has no direction{of}, expected 'higher' or 'lower'")
    return {name: Direction(way or Direction.HIGHER) for name, way in found.items()}


def _peak(tables: TomlTables, space: Space | None) -> PeakResponse | None:
    way = _one_of(tables, _PEAK, _PEAKS)
    if not way:
        return None
    rows, readers = _PEAKS[way]
    given = tables.settings(_PEAK, rows, readers)
    requests = [{name: given.pop(name) for name in REQUEST if name in given}]
    if way == "requests":
        given.pop(way, None)
        read = [tables.table(place, REQUEST, ["url"]) for place in tables.places(*_PEAK, way)]
        requests = [request for request in read if "url" in request]
    limits = {name: given.pop(name) for name in _LIMITS if name in given}
    further = dict.fromkeys(given.pop("limits", {}), _limit)
    response = PeakResponse(
        requests=[] if way == "command" else requests,
        command=given.pop("command", ()),
        read=given.pop("read", ()),
        slos=given.pop("slo", ()),
        limits=limits | tables.table((*_PEAK, "limits"), further),
        search={name: given.pop(name) for name in settings.SEARCH if name in given},
        generator=given,
    )
    if space is not None:
        _check_limits(tables, response, space)
        for index, request in enumerate(response.requests):
            keys = (*_PEAK, *["requests", str(index)] * (way == "requests"))
            _try(tables, keys, space, lambda fields: HttpRequest(**fields), request)
    if space is not None and tables.is_right:
        kept = response.limits_at(space.grid()[0])
        tables.attempt(_PEAK, PeakSearch, limits=kept, **response.search)
        if response.command:
            is_rate = response.generator.get("load", "rate") == "rate"
            picks = [*map(Pick.parse, response.read)]
            command = partial(LoadCommand, picks=picks, limits=kept, is_rate=is_rate)
            _try(tables, (*_PEAK, "command"), space, command, [*response.command])
    return response


def _check_limits(tables: TomlTables, response: PeakResponse, space: Space) -> None:
    """Note all problems of limits, at any point."""
    levels = {factor.name: {*map(str, factor.levels)} for factor in space.factors}
    for metric, given in response.limits.items():
        keys = (*_PEAK, metric) if metric in _LIMITS else (*_PEAK, "limits", metric)
        name, by_level = next(iter(given.items())) if isinstance(given, Mapping) else ("", given)
        if name and {*by_level} != levels.get(name):
            expected = f"each of {sorted(levels[name])}" if name in levels else "a factor"
            tables.note(keys, f"{metric} is given by {short(name)}, expected {expected}")
            continue
        limit = partial(limit_of, metric, unit=response.unit(metric))
        for text in by_level.values() if name else [given]:
            _try(tables, keys, space, limit, text)
    for text in response.slos:
        _try(tables, (*_PEAK, "slo"), space, limit_of_good, text)


def _check_places(tables: TomlTables) -> None:
    """Note places without a factor, factors without a place, and factors in a wrong place."""
    factors = tables.at("factors")
    factors = factors if isinstance(factors, Mapping) else {}
    known = {*factors}
    used = {*factors} if tables.at("response", "function") else set[str]()
    if tables.at("hosts") is not None:
        if HOST in factors:
            said = f"{HOST} is a factor, expected another name: {{{HOST}}} stands for the host"
            tables.note(("factors", HOST), said)
        known.add(HOST)
    parts = [_places(tables.at(part), part) for part in ("server", "response")]
    for keys, name in (*parts[0], *parts[1]):
        used.add(name)
        is_offered = keys[:3] == (*_PEAK, "command") and name in _OFFERED
        is_fixed = keys[0] == "server" and {*keys[1:2]} & _FIXED
        if name not in known and not is_offered:
            expected = f"{' or '.join(factors)}; {{{{{name}}}}} is that text itself"
        elif is_fixed and tables.at("factors", name, "workload") is True:
            expected = "none of the workload: the server is not started again for it"
        else:
            continue
        tables.note(keys, f"{'.'.join(keys)} has a place for {name}, expected {expected}")
    for name in (name for name in factors if name not in used):
        said = f"{name} is unused, expected {{{name}}} in a command, a request or a limit"
        tables.note(("factors", name), said)


def _places(item: Any, *keys: str) -> Iterator[tuple[Keys, str]]:
    """Yield names of places in texts, and factors with limits by level."""
    if isinstance(item, str) and "read" not in keys:
        yield from ((keys, name) for name in places_in(item))
    is_limit = keys[:-1] == (*_PEAK, "limits") or keys in {(*_PEAK, name) for name in _LIMITS}
    if is_limit and isinstance(item, Mapping):
        yield from ((keys, name) for name in item)
    for name, inner in toml.items_of(item).items():
        yield from _places(inner, *keys, name)


def _text_at(given: Any, point: Point) -> str:
    """Return a limit at a point."""
    if isinstance(given, Mapping):
        ((name, by_level),) = given.items()
        given = by_level[str(point[name])]
    return str(fill_places(given, point))
