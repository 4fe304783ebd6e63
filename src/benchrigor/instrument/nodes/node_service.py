"""The answers of an agent about its node, without the transport.

What probes counted since a reader far away has acknowledged.
"""

from __future__ import annotations

import json
import math
import platform
import secrets
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchrigor.errors import InvalidInput, StoreFailed
from benchrigor.files import make_private_folder, write_whole
from benchrigor.instrument.data import NodeReport, ProbeReadings
from benchrigor.instrument.probing.probe_registry import ProbeReader, ProbeRegistry
from benchrigor.machine.alarms import Alarms
from benchrigor.machine.host import capabilities
from benchrigor.machine.states.health_checks import health
from benchrigor.machine.states.status_readers import StatusReader
from benchrigor.machine.thresholds import Threshold, read_thresholds, tables_of
from benchrigor.model import Health, Status
from benchrigor.model.codec import encode

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
