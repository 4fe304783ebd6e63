"""Readings of probes, the rows of their table, and the state of a node at a hub."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchrigor.model.machine import Alarm, Health, Status
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReading(OneLine):
    """The events of a probe, since its registry began or since a reader's last reset.

    Attributes
    ----------
    name, clock
        Of the probe; the clock is "wall", or "cpu" for the processor time of the thread.
    count, total_s
        Events that ended, and the sum of their durations.
    self_s
        The total less what nested events took (see `benchrigor.instrument.Probe`).
    min_s, max_s, mean_s
        Of the durations; None without any.
    variance_s2
        Sample variance of the durations, with n - 1; None below two.
    p50_s, p99_s
        Quantiles of the raw samples, within 1% of the value; None if none are kept.
    samples, samples_lost
        Durations that the quantiles are of, a random sample of all, and those not in it.
    rejected
        Events that cannot be: below 0 s, longer than the probe exists, or with a token that is no
        whole number.
    own_cost_s
        What an event of the probe itself takes, calibrated in this process: of the dearest form
        that the probe was used in.
    deadline_s, missed
        The deadline of events, None without one; and the number that took longer.
    """

    name: str
    clock: str
    count: int
    total_s: float
    self_s: float
    min_s: float | None
    max_s: float | None
    mean_s: float | None
    variance_s2: float | None
    p50_s: float | None
    p99_s: float | None
    samples: int
    samples_lost: int
    rejected: int
    own_cost_s: float
    deadline_s: float | None = None
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReadings(OneLine, Mapping[str, ProbeReading]):
    """The readings of all probes of a registry by name, in the order in which they came.

    Attributes
    ----------
    readings
        By name.
    elapsed_s
        Wall time that they are of.
    notices
        What their reader must know.
    """

    readings: Mapping[str, ProbeReading]
    elapsed_s: float
    notices: tuple[Notice, ...] = ()

    def __getitem__(self, name: str) -> ProbeReading:
        return self.readings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.readings)

    def __len__(self) -> int:
        return len(self.readings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow(OneLine):
    """A kernel in the table of probes.

    Attributes
    ----------
    kernel, instances
        Name of its probe, and how often it ran.
    dispatch_s, work_s
        Mean time of an instance before and after its work, without what probes cost, and in it;
        None without a probe of its work.
    mean_s, total_s
        Mean and sum of whole instances.
    share
        Share of the self times of all kernels.
    dispatch_share
        Share of dispatch in the sum of both; None without a probe of its work.
    batch
        Whether that is above the bound, so that larger units of work would pay.
    own_cost_s
        The cost of the probes themselves for an instance.
    """

    kernel: str
    instances: int
    dispatch_s: float | None
    work_s: float | None
    mean_s: float
    total_s: float
    share: float
    dispatch_share: float | None
    batch: bool
    own_cost_s: float


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
