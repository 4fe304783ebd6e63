"""What probes counted since a reader far away has acknowledged."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from benchrigor.instrument.data.probe_reading import ProbeReadings
from benchrigor.instrument.probing.probe_registry import ProbeReader, ProbeRegistry

MOST_READERS = 64  # beyond it, the one that asked longest ago is forgotten


@dataclass(slots=True)
class _Delivery:
    """What was sent last to a reader, kept until its cursor comes back."""

    reader: ProbeReader
    number: int
    sent: ProbeReadings


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
        self._deliveries: OrderedDict[str, _Delivery] = OrderedDict()

    def next_part(self, cursor: str) -> Part:
        """Return the next cursor and its part; for a cursor that is not known, a new beginning."""
        key, _, number = cursor.partition(".")
        with self._lock:
            delivery = self._deliveries.get(key)
            if delivery is not None and number == str(delivery.number):
                delivery.number += 1
                delivery.sent = delivery.reader.since_last()
            elif delivery is None or number != str(delivery.number - 1):
                key, reader = secrets.token_hex(8), self._registry.reader()
                delivery = _Delivery(reader, 1, reader.since_last())
                self._deliveries[key] = delivery
            self._deliveries.move_to_end(key)
            while len(self._deliveries) > MOST_READERS:
                self._deliveries.popitem(last=False)
            return Part(f"{key}.{delivery.number}", delivery.sent, delivery.number == 1)
