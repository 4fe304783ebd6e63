"""Advice for a pipeline from service rates: its bottleneck, its queues, its replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchrigor.control_characters import escaped
from benchrigor.model.checks import refuse, wrong_number, wrong_quantity, wrong_whole
from benchrigor.model.estimate import Estimate, Quantity
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import short
from benchrigor.model.text import show_estimate
from benchrigor.queues.data.service import ServiceProcess
from benchrigor.units import counted, many, percent

# Above this squared coefficient of variation two moments say little.
MOST_VARIATION = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage(OneLine):
    """One stage of a pipeline.

    Parameters
    ----------
    name
        Differs from the names of all other stages.
    rate
        Service rate of one replica, in items of its own per second.
    visits
        Items of its own per item of the source.
    replicas
        How many work side by side.
    process
        Distribution of the service times. Exponential ones, the default, need more room than any
        steadier ones.
    variation
        Squared coefficient of variation of the service times, 0 to 100; with process "other" only.
    processors
        How many processors a replica keeps busy while it serves: 1 if it computes all the time,
        near 0 if it waits for a device.

    Examples
    --------
    >>> PipelineStage(name="hash", rate=1200.0).replicas
    1
    """

    name: str
    rate: Quantity
    visits: Quantity = 1.0
    replicas: int = 1
    process: ServiceProcess = ServiceProcess.EXPONENTIAL
    variation: float | None = None
    processors: float = 1.0

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and self.name != ""
        of = f" of {short(self.name)}" if named else ""
        refuse(
            [] if named else [f"name is {short(self.name)}, expected the name of a stage"],
            wrong_quantity(f"rate{of}", self.rate),
            wrong_quantity(f"visits{of}", self.visits),
            wrong_whole(f"replicas{of}", self.replicas),
            wrong_number(f"processors{of}", self.processors, zero=True),
            wrong_process(self.process, self.variation, of),
        )


def wrong_process(process: Any, variation: Any, of: str = "") -> list[str]:
    """Return the problems with a service process, or with the variation that goes with it."""
    if not isinstance(process, str) or process not in list(ServiceProcess):
        known = ", ".join(repr(str(kind)) for kind in ServiceProcess)
        return [f"process{of} is {short(process)}, expected one of {known}"]
    if process != ServiceProcess.OTHER:
        if variation is None:
            return []
        wanted = f"None: the process is {str(process)!r}, and only 'other' takes one"
    elif not wrong_number("", variation, zero=True) and variation <= MOST_VARIATION:
        return []
    else:
        wanted = (
            "the squared coefficient of variation of the service times, from 0 to "
            f"{MOST_VARIATION:g}. Where it is more there are several kinds of items: measure each"
        )
    return [f"variation{of} is {short(variation)}, expected {wanted}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoad(OneLine):
    """Capacity of a stage, and how much of it is used.

    Parameters
    ----------
    capacity
        Rate at which all of its replicas can serve, in items of the source per second.
    utilisation
        Rate of the source over the capacity; None if the rate of the source is not known, or
        the interval of the capacity reaches 0.
    """

    stage: PipelineStage
    capacity: Estimate
    utilisation: Estimate | None = None

    def __str__(self) -> str:
        line = escaped(f"{self.stage.name}: {show_estimate(self.capacity, 'items/s')}")
        if self.utilisation is None:
            return line
        low, high = percent(self.utilisation.low), percent(self.utilisation.high)
        return f"{line} · {percent(self.utilisation.value)} used [{low}, {high}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck(OneLine):
    """The stage that limits a pipeline.

    Parameters
    ----------
    stage
        Name of the stage of lowest capacity.
    rivals
        Names of the stages whose intervals overlap with its own; any may be the bottleneck.
    capacity
        Rate at which the pipeline can serve, in items of the source per second, if its queues have
        enough room. The interval holds if ``stage`` is the bottleneck, and if a rival is.
    """

    stage: str
    rivals: tuple[str, ...]
    capacity: Estimate
    loads: tuple[StageLoad, ...]
    notices: tuple[Notice, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether its interval lies below the intervals of all others."""
        return not self.rivals

    def __str__(self) -> str:
        most = show_estimate(self.capacity, "items/s")
        if self.certain:
            return escaped(f"{self.stage} is the bottleneck: {most}")
        others = ", ".join(self.rivals)
        return escaped(f"{self.stage} may be the bottleneck, or {others}: {most}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSize(OneLine):
    """How much room the queue in front of a replica should have.

    Parameters
    ----------
    capacity
        Items that the queue holds, besides the one in service, if arrivals are as fast and service
        is as slow as their intervals allow; None if no size is enough.
    capacity_at_value
        The same at the estimated rates.
    blocked_share
        Share of arrivals that may find the queue full.
    utilisation
        Of a replica, at the estimated rates.
    worst_utilisation
        The same if arrivals are as fast and service is as slow as their intervals allow; None
        if the interval of the service rate reaches 0.
    variation
        Assumed squared coefficient of variation of the service times.
    """

    capacity: int | None
    capacity_at_value: int | None
    blocked_share: float
    utilisation: float
    worst_utilisation: float | None
    variation: float
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        room = "no size is enough"
        if self.capacity_at_value is not None:
            room = f"room for {_enough(self.capacity, self.capacity_at_value, 'item')}"
        used = f"utilisation {percent(self.utilisation)}"
        if self.worst_utilisation is None:
            used += ", at worst without limit"
        elif self.worst_utilisation != self.utilisation:
            used += f", at worst {percent(self.worst_utilisation)}"
        return f"{room}: at most {percent(self.blocked_share)} blocked · {used}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCount(OneLine):
    """How many replicas of a stage keep its utilisation down.

    Parameters
    ----------
    replicas
        The fewest, if arrivals are as fast and service is as slow as their intervals allow; None
        if the interval of the service rate reaches 0.
    replicas_at_value
        The fewest at the estimated rates.
    utilisation
        Highest utilisation of a replica.
    most
        How many replicas the processors can run, if known. Neither number exceeds it; a Notice
        says if more would be needed.
    """

    replicas: int | None
    replicas_at_value: int
    utilisation: float
    most: int | None = None
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        enough = _enough(self.replicas, self.replicas_at_value, "replica")
        return f"{enough}: utilisation {percent(self.utilisation)} at most"


def _enough(number: int | None, at_value: int, noun: str) -> str:
    """Show how many are enough at worst, and how many at the estimated rates."""
    if number is None:
        return f"{many(at_value, noun)} at the estimated rates, at worst no number is enough"
    at_estimates = f" ({counted(at_value)} at the estimated rates)"
    return f"{many(number, noun)}{at_estimates if number != at_value else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAdvice(OneLine):
    """Advice for one stage.

    Parameters
    ----------
    load
        Its present capacity and utilisation.
    buffer, buffer_now
        The queue in front of a replica, with the suggested replicas and with the present ones.
    """

    load: StageLoad
    replicas: ReplicaCount
    buffer: BufferSize
    buffer_now: BufferSize

    def __str__(self) -> str:
        return f"{self.load} · {self.replicas} · {self.buffer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineAdvice(Reported):
    """Advice for a pipeline.

    Parameters
    ----------
    source_rate
        Items per second that the source asks for.
    bottleneck
        The stage that limits the pipeline as it is now.
    stages
        Advice for every stage, in order.
    notices
        The first one lists the assumptions.
    """

    _page = "benchrigor.queues.pipeline_report:advice_page"

    source_rate: Quantity
    bottleneck: Bottleneck
    stages: tuple[StageAdvice, ...]
    notices: tuple[Notice, ...] = ()
