"""What a hub knows of a node."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.instrument.data.probe_reading import ProbeReadings
from benchrigor.model.machine import Alarm, Health, Status
from benchrigor.model.one_line import OneLine


class NodeCondition(enum.StrEnum):
    """How a node answered the last time it was asked."""

    UNASKED = "unasked"
    WELL = "well"
    SILENT = "silent"
    REFUSED = "refused"
    WRONG = "wrong"
    TWICE = "twice"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport(OneLine):
    """The report of an agent to a hub in one answer.

    Parameters
    ----------
    node, name
        Identity of this start of the agent, and the name of its host.
    echo
        Text that the hub sent with its question; it identifies the question.
    place
        Host and port at which the question reached it.
    sequence
        Number of reports of this start, this one included.
    at_s
        The agent's wall clock when it answered, in seconds since 1970.
    age_s
        Seconds since it read its status; None before the first reading.
    status, health, alarms
        State of the node; a status or health that was not read yet is None.
    cursor, probes
        The cursor that the hub sends next, and the counts of probes since the cursor that it sent.
        If the agent does not know that cursor, they are counts since the probes began.
    from_start
        Whether the counts are since the probes began.
    left_out
        Number of probes with events that are missing, since there are too many.
    """

    node: str
    name: str
    echo: str
    place: str
    sequence: int
    at_s: float
    cursor: str
    probes: ProbeReadings
    from_start: bool = True
    left_out: int = 0
    alarms: tuple[Alarm, ...] = ()
    age_s: float | None = None
    status: Status | None = None
    health: Health | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView(OneLine):
    """A node as a hub knows it: its last good answer, how old that is, and how it is now.

    Parameters
    ----------
    address
        Its address, as given to the hub.
    condition, reason
        Condition by its last answer, and the problem with that answer.
    report
        Its last good answer; None without any. It stays when later answers fail.
    age_s
        Seconds since the status in it was read, by the clock of the hub.
    offset_s, offset_error_s
        Seconds that the node's wall clock is ahead of the hub's, plus or minus half of the round
        trip.
    restarts
        Number of times that it came back as a new start of the agent.
    """

    address: str
    condition: NodeCondition
    reason: str = ""
    report: NodeReport | None = None
    age_s: float | None = None
    offset_s: float | None = None
    offset_error_s: float | None = None
    restarts: int = 0
