"""An agent: the state of its node, and the server that answers; it sends nothing unasked.

`ProbeCursors` are what probes counted since a reader far away has acknowledged, `NodeService` all
answers without the transport, `Agent` the transport.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import math
import os
import platform
import secrets
import socket
import ssl
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from benchrigor.errors import BenchrigorError, InvalidInput, MissingExtra, StoreFailed
from benchrigor.files import make_private_folder, write_whole
from benchrigor.instrument.data import NodeReport, ProbeReadings
from benchrigor.instrument.nodes import SHORTEST_TOKEN, LoopThread, place_of, wrong_token
from benchrigor.instrument.probe_registry import PROBES, ProbeReader, ProbeRegistry
from benchrigor.machine.alarms import Alarms, Threshold, read_thresholds, tables_of
from benchrigor.machine.equipment import health
from benchrigor.machine.host import capabilities
from benchrigor.machine.status_readers import StatusReader
from benchrigor.model import Health, Status
from benchrigor.model.checks import refuse, wrong_values, wrong_whole
from benchrigor.model.codec import encode

try:
    from aiohttp import web
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        Metric,
        SummaryMetricFamily,
    )
except ImportError:
    raise MissingExtra("an agent", package="aiohttp and prometheus-client", extra="agent") from None

MOST_READERS = 64  # beyond it, the one that asked longest ago is forgotten


class Part(NamedTuple):
    """What probes counted, the cursor for the next part, and whether it is all since they began."""

    cursor: str
    probes: ProbeReadings
    from_start: bool


class ProbeCursors:
    """Hands out the counts of probes in parts, which are kept until they are acknowledged.

    A cursor names a part. A hub that sends it back has received the part, and gets the next one.
    A hub that sends the previous cursor has not, and gets the same part again. So a lost answer
    loses no events, and counts none twice. For an unknown cursor, the part holds everything since
    the beginning, and says so.

    Examples
    --------
    >>> registry = ProbeRegistry()
    >>> parse, cursors = registry.probe("parse"), ProbeCursors(registry)
    >>> parse.stop(parse.start())
    >>> first = cursors.next_part("").cursor
    >>> parse.stop(parse.start())
    >>> second = cursors.next_part(first)
    >>> again = cursors.next_part(first)  # the answer was lost
    >>> again == second, again.probes["parse"].count, again.from_start
    (True, 1, False)
    """

    def __init__(self, registry: ProbeRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        # By the key of a cursor: its reader, and the number and counts of the part sent last, which
        # are kept until their cursor comes back.
        self._sent: OrderedDict[str, tuple[ProbeReader, int, ProbeReadings]] = OrderedDict()

    def next_part(self, cursor: str) -> Part:
        """Return the next cursor and its part; for a cursor that is not known, a new beginning."""
        key, _, number = cursor.partition(".")
        with self._lock:
            sent = self._sent.get(key)
            if sent is None or number not in {str(sent[1]), str(sent[1] - 1)}:
                key, reader = secrets.token_hex(8), self._registry.reader()
                sent = reader, 1, reader.since_last()
            elif number == str(sent[1]):
                sent = sent[0], sent[1] + 1, sent[0].since_last()
            self._sent[key] = sent
            self._sent.move_to_end(key)
            while len(self._sent) > MOST_READERS:
                self._sent.popitem(last=False)
            return Part(f"{key}.{sent[1]}", sent[2], sent[1] == 1)


_MOST_PROBES = 1_000  # in a report, for a hub reads up to 1 MiB


class NodeService:
    """The readings of a node, taken in the background and served at once.

    Parameters
    ----------
    registry
        The probes of the node.
    alarms
        Alarms that judge all readings.
    reader
        Reader of the status.
    config
        File that keeps thresholds from requests; None keeps them for this start only.

    Raises
    ------
    InvalidInput
        When the file holds no thresholds.
    """

    def __init__(
        self,
        registry: ProbeRegistry,
        alarms: Alarms,
        reader: StatusReader,
        *,
        config: Path | None = None,
    ) -> None:
        self.registry, self.alarms = registry, alarms
        self.node, self.name = uuid.uuid4().hex, platform.node()
        # The last status and health, and when they were read.
        self.states: dict[str, tuple[Status | Health, float]] = {}
        self._reader, self._config = reader, config
        self._cursors = ProbeCursors(registry)
        self._lock = threading.Lock()
        self._sequence = 0
        self._capabilities: Any = None
        if config is not None:
            self._restore(config)

    def state(self, kind: str) -> dict[str, Any]:
        """Return the last status or health, and its age in seconds; None before the first."""
        state, read_s = self.states.get(kind, (None, math.nan))
        return {"age_s": None if state is None else time.monotonic() - read_s, kind: state}

    def read(self) -> None:
        """Read the status, and pass it to the alarms."""
        self._tell("status", self._reader.read())

    def check(self) -> None:
        """Check the health, which may take seconds, and pass it to the alarms."""
        self._tell("health", health())

    def _tell(self, kind: str, found: Status | Health) -> None:
        self.states[kind] = found, time.monotonic()
        self.alarms.tell(*self.states[kind])

    def capabilities(self) -> Any:
        """Return the capabilities of the machine; read once."""
        if self._capabilities is None:
            self._capabilities = encode(capabilities(full=True))
        return self._capabilities

    def probes(self, cursor: str | None) -> Any:
        """Return the counts of probes since a cursor; without one since the beginning."""
        if cursor is None:
            return encode(Part("", self.registry.read(), from_start=True)._asdict())
        return encode(self._cursors.next_part(cursor)._asdict())

    def report(self, echo: str, place: str, cursor: str) -> NodeReport:
        """Return the report for a hub."""
        part = self._cursors.next_part(cursor)
        probes, left_out = _read_probes(part.probes)
        with self._lock:
            self._sequence += 1
            return NodeReport(
                node=self.node,
                name=self.name,
                echo=echo,
                place=place,
                sequence=self._sequence,
                at_s=time.time(),
                health=self.state("health")["health"],
                **self.state("status"),
                alarms=self.alarms.standing(),
                cursor=part.cursor,
                from_start=part.from_start,
                probes=probes,
                left_out=left_out,
            )

    def configuration(self) -> dict[str, Any]:
        """Return the thresholds in force, as `configure` takes them."""
        return {"thresholds": tables_of(self.alarms.thresholds)}

    def configure(self, given: object) -> None:
        """Put other thresholds in force, and keep them.

        Raises
        ------
        InvalidInput
            With all that is wrong in them; those before stay in force.
        StoreFailed
            When they cannot be kept; those before stay in force, too.
        """
        thresholds = _thresholds(given)
        with self._lock:
            if self._config is not None:  # kept first: what cannot be kept is not in force either
                self._keep(self._config, thresholds)
            self.alarms.configure(thresholds)

    @staticmethod
    def _keep(config: Path, thresholds: Iterable[Threshold]) -> None:
        try:
            make_private_folder(config.parent)
            text = json.dumps({"thresholds": tables_of(thresholds)})
            write_whole(config, text, private=True)
        except OSError as error:
            raise StoreFailed(
                f"thresholds cannot be kept in {config}, and are not in force: {error}"
            ) from error

    def _restore(self, config: Path) -> None:
        try:
            if config.exists():
                given = json.loads(config.read_text(encoding="utf-8"))
                self.alarms.configure(_thresholds(given))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{config} holds no thresholds of an agent: {error}; correct or remove it"
            ) from error


def _read_probes(probes: ProbeReadings) -> tuple[ProbeReadings, int]:
    """Return the probes with events for a report, and the number of those left out."""
    used = [probe for probe in probes.values() if probe.count or probe.rejected]
    used.sort(key=lambda probe: -probe.total_s)
    shown = {probe.name: probe for probe in used[:_MOST_PROBES]}
    return replace(probes, readings=shown), len(used) - len(shown)


def _thresholds(given: object) -> tuple[Threshold, ...]:
    """Return thresholds of a configuration."""
    if not (isinstance(given, Mapping) and set(given) == {"thresholds"}):
        raise InvalidInput("the configuration has other keys, expected only 'thresholds'")
    tables = given["thresholds"]
    if not isinstance(tables, Mapping):
        raise InvalidInput("thresholds is not a table, expected one with a table for each code")
    return read_thresholds(tables)


_STATUS_EVERY_S, _HEALTH_EVERY_S = 1.0, 60.0
_MOST_BODY_BYTES = 64 * 1024
_LAST_ANSWERS_S = 1.0  # for requests that are under way when it closes
_LOGGER = logging.getLogger("benchrigor.agent")
_LOGGER.addHandler(logging.NullHandler())  # silent if the program does not log itself
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Agent:
    """Serves capabilities, status, health, probes, alarms and thresholds of a node over HTTP.

    It runs in its own thread, reads the status once a second in others, and answers from the last
    reading.

    Parameters
    ----------
    port
        0 for any that is free; see `url`.
    host
        Address to listen at. Beyond this machine it needs a token.
    token
        Secret of 16 characters or more; requests need ``Authorization: Bearer TOKEN``.
    tls
        Files of a certificate and of its key, in PEM; None serves plain HTTP.
    config
        File that keeps thresholds from requests over a restart; None keeps none.
    registry, alarms, reader
        Sources of the answers; None for all probes of this program, the thresholds of the package,
        and the full status.

    Raises
    ------
    InvalidInput
        When the token is missing or too short, a file cannot be read, or the port is taken.
    MissingExtra
        When the extra ``agent`` is not installed.

    Notes
    -----
    It refuses bodies of more than 64 KiB. It neither limits nor cuts off clients: where strangers
    can reach it, put a proxy in front that does.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> with Agent() as agent:
    ...     urlopen(agent.url + "/alarms").status
    200
    """

    def __init__(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        tls: tuple[Path, Path] | None = None,
        config: Path | None = None,
        registry: ProbeRegistry | None = None,
        alarms: Alarms | None = None,
        reader: StatusReader | None = None,
    ) -> None:
        kinds = (
            ("config", config, Path),
            ("registry", registry, ProbeRegistry),
            ("alarms", alarms, Alarms),
            ("reader", reader, StatusReader),
        )
        refuse(
            wrong_whole("port", port, least=0, most=65_535),
            _wrong_access(host, token),
            wrong_values(
                (name, given, given is None or isinstance(given, kind), f"{kind.__name__} or None")
                for name, given, kind in kinds
            ),
        )
        self._token = None if token is None else f"Bearer {token}".encode()
        context = None if tls is None else _context(*tls)
        self.service = NodeService(
            PROBES if registry is None else registry,
            Alarms() if alarms is None else alarms,
            StatusReader() if reader is None else reader,
            config=config,
        )
        self._pid = os.getpid()
        self._thread = LoopThread("benchrigor agent")
        try:
            found = self._thread.run(self._start(host, port, context))
        except (OSError, UnicodeError) as error:
            self._thread.end()
            raise InvalidInput(f"cannot listen on {host} port {port}: {error}") from error
        self.url = f"http{'s' if tls else ''}://{place_of(host, found)}"
        self._ended = threading.Event()
        for read, every_s in (
            (self.service.read, _STATUS_EVERY_S),
            (self.service.check, _HEALTH_EVERY_S),
        ):
            threading.Thread(
                target=_read_again_and_again, args=(read, every_s, self._ended), daemon=True
            ).start()

    def close(self) -> None:
        """Stop serving; may be called twice."""
        if not self._ended.is_set() and self._pid == os.getpid():
            self._ended.set()
            self._thread.run(self._runner.cleanup())
            self._thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Listen, and begin to read; return the port."""
        application = web.Application(middlewares=[self._guard], client_max_size=_MOST_BODY_BYTES)
        get: dict[str, Callable[[web.Request], object]] = {
            "/capabilities": lambda _: self.service.capabilities(),
            "/status": lambda _: encode(self.service.state("status")),
            "/health": lambda _: encode(self.service.state("health")),
            "/probes": lambda request: self.service.probes(request.query.get("cursor")),
            "/alarms": lambda _: {"alarms": encode(self.service.alarms.standing())},
            "/config": lambda _: self.service.configuration(),
            "/report": self._report,
        }
        application.add_routes([web.get(path, _handler_of(answer)) for path, answer in get.items()])
        application.add_routes(
            [web.put("/config", self._configure), web.get("/metrics", self._metrics)]
        )
        self._runner = web.AppRunner(
            application, access_log=None, logger=_LOGGER, shutdown_timeout=_LAST_ANSWERS_S
        )
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, where = min(found, key=lambda place: place[0] != socket.AF_INET)
        self.listening = socket.create_server(where, family=family)
        _AGENTS.add(self)
        await web.SockSite(self._runner, self.listening, ssl_context=context).start()
        return int(self.listening.getsockname()[1])

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Let a request pass that may; turn what goes wrong into an answer in JSON."""
        try:
            self._admit(request)
            return await handler(request)
        except web.HTTPException as error:
            headers = {
                name: value
                for name, value in error.headers.items()
                if name in ("Allow", "WWW-Authenticate")
            }
            return _failure(error.status, error.reason, headers)
        except InvalidInput as error:
            return _failure(400, str(error))
        except web.RequestPayloadError as error:
            return _failure(400, f"the body cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - any failure here becomes an answer
            known = isinstance(error, BenchrigorError)
            return _failure(500, str(error) if known else f"{type(error).__name__} in the agent")

    def _admit(self, request: web.Request) -> None:
        """Raise if a request may not pass."""
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self._token is None:  # a page in a browser may give this machine a name of its own
            if not _is_here(_host_of(request.host)):
                reason = "without a token, ask for it as 127.0.0.1 or localhost"
                raise web.HTTPForbidden(reason=reason)
        elif not hmac.compare_digest(given, self._token):
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})

    def _report(self, request: web.Request) -> object:
        found = request.get_extra_info("sockname") or ("", 0)
        cursor, echo = (request.query.get(name, "") for name in ("cursor", "echo"))
        return encode(self.service.report(echo, place_of(found[0], found[1]), cursor))

    async def _configure(self, request: web.Request) -> web.Response:
        try:
            given = json.loads(await request.text())
        except (ValueError, RecursionError, LookupError) as error:
            raise InvalidInput(f"the body is not JSON: {error}") from error
        await asyncio.to_thread(self.service.configure, given)
        return web.json_response(self.service.configuration())

    async def _metrics(self, _: web.Request) -> web.Response:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_NodeCollector(self.service))
        body = await asyncio.to_thread(generate_latest, registry)
        return web.Response(body=body, headers={"Content-Type": _PLAIN})


# All agents, for the one hook at forks: a child would hold the port, and never answer.
_AGENTS: weakref.WeakSet[Agent] = weakref.WeakSet()


def _let_go() -> None:
    for agent in list(_AGENTS):
        agent.listening.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _read_again_and_again(read: Callable[[], None], every_s: float, ended: threading.Event) -> None:
    """Read now and then; a reading that fails is tried again."""
    left_s = 0.0
    while not ended.wait(left_s):
        began_s = time.monotonic()
        with suppress(Exception):  # samplers report their own errors; what else fails ages
            read()
        left_s = max(0.0, began_s + every_s - time.monotonic())


def _wrong_access(host: object, token: object) -> list[str]:
    """Return the problems with a host, with a token, or with having none."""
    if not isinstance(host, str):
        return [f"host is {host!r}, expected a name or an address"]
    if token is None and not _is_here(host):
        return [
            f"{host} can be reached from other machines and has no token, expected one of "
            f"at least {SHORTEST_TOKEN} characters, or the host 127.0.0.1"
        ]
    return wrong_token(token)


def _is_here(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(text: str) -> str:
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(
            f"tls: {certificate} and {key} are not a certificate and its key in PEM: {error}"
        ) from error
    return context


def _handler_of(answer: Callable[[web.Request], Any]) -> _Handler:
    """Return a handler; what may take time does so in a thread."""

    async def handle(request: web.Request) -> web.Response:
        return web.json_response(await asyncio.to_thread(answer, request))

    return handle


def _failure(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": reason}, status=status, headers=headers)


class _NodeCollector:
    """Turns probes, status and alarms of a node into metrics, when they are asked for."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; metrics of probes only rise."""
        service = self._service
        information = GaugeMetricFamily(
            "benchrigor_node_info", "Always 1.", labels=["node", "name"]
        )
        information.add_metric([service.node, service.name], 1.0)
        yield information
        probes = SummaryMetricFamily(
            "benchrigor_probe_seconds", "Durations of events.", labels=["probe", "clock"]
        )
        missed = CounterMetricFamily(
            "benchrigor_probe_missed_deadlines",
            "Events that took longer than the deadline of their probe.",
            labels=["probe", "deadline"],
        )
        for probe in service.registry.read().values():
            probes.add_metric([probe.name, probe.clock], probe.count, probe.total_s)
            if probe.deadline_s is not None:
                missed.add_metric([probe.name, f"{probe.deadline_s:g}"], probe.missed)
        yield from (probes, missed)
        states = GaugeMetricFamily(
            "benchrigor_state", "Samples of status and health.", labels=["sample", "unit"]
        )
        for kind in ("status", "health"):
            state = service.state(kind)[kind]
            for sample in state.samples if state else ():
                if isinstance(sample.value, int | float):
                    # A name of a disk may hold bytes that are not UTF-8.
                    name = sample.name.encode(errors="replace").decode()
                    states.add_metric([name, sample.unit], float(sample.value))
        yield states
        yield GaugeMetricFamily(
            "benchrigor_state_age_seconds",
            "Since the status was read.",
            value=service.state("status")["age_s"],
        )
        alarms = GaugeMetricFamily("benchrigor_alarm", "Whether an alarm stands.", labels=["code"])
        standing = {alarm.code for alarm in service.alarms.standing()}
        known = {threshold.code for threshold in service.alarms.thresholds if threshold.enabled}
        for code in sorted(standing | known):
            alarms.add_metric([code], float(code in standing))
        yield alarms
