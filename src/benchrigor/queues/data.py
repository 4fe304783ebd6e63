"""The service rate of a stage, and the advice for a pipeline that follows from rates."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from benchrigor.model.checks import refuse, wrong_number, wrong_quantity, wrong_whole
from benchrigor.model.estimate import Estimate, Quantity
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import short
from benchrigor.model.text import show_estimate
from benchrigor.safe_text import escaped
from benchrigor.units import counted, many, percent

_COLUMNS = 80


class RateReason(enum.StrEnum):
    """Why a service rate has not converged."""

    NO_NONBLOCKING = "no-nonblocking-period"  # no period was free of waiting, or too few in a row
    # The few periods that were free of waiting were chosen by slow service.
    FEW_NONBLOCKING = "few-nonblocking-periods"
    # Periods hold too few items: some are free of waiting by chance.
    FEW_ITEMS = "too-few-items-per-period"
    # The quantile lies more than a quarter above the mean of the same periods.
    APART = "readings-apart"
    UNSTABLE_PERIOD = "unstable-period"  # hardly any period has the wanted width
    NO_ITEMS = "no-items"  # the stage was busy and finished no item
    PROVISIONAL = "provisional"  # the sampling period is sought; the rate is by "busy-time"
    NEVER_BUSY = "never-busy"  # the stage waited all of the time
    # The interval is wider than the target, or the quantile is not steady yet.
    NOT_CONVERGED = "not-converged"


class ServiceProcess(enum.StrEnum):
    """Which textbook process the service times resemble, by their variance."""

    DETERMINISTIC = "deterministic"
    EXPONENTIAL = "exponential"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMoments(OneLine):
    """Moments of the service time of one item.

    Parameters
    ----------
    n
        Number of observations.
    mean_s, variance_s2, third_s3
        Mean, variance and third central moment, in powers of seconds.
    process
        Which textbook process they resemble.
    """

    n: int
    mean_s: float
    variance_s2: float
    third_s3: float
    process: ServiceProcess

    @property
    def variation(self) -> float:
        """Squared coefficient of variation: 0 for deterministic service, 1 for exponential."""
        return self.variance_s2 / self.mean_s**2


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRate(OneLine):
    """The rate at which a stage serves while it does not wait, in one window of time.

    Parameters
    ----------
    estimate
        Items per second of wall time; None if it cannot be estimated. With "busy-time" the window
        is kept in up to 256 parts, and n counts these.
    converged
        Whether the rate is as precise as the target.
    reason
        Why it is not; None if it is.
    method
        "busy-time" or "quantile".
    start_s, stop_s
        The window, in seconds since the first period.
    periods, unblocked, used
        Number of periods in the window, of periods without waiting, and of periods that count.
    period_s
        Mean width of the periods, in seconds.
    items
        Items served in the periods that count.
    servers
        Threads or processes that serve side by side; the rate is their total.
    cpu_rate
        Items per second of processor time, in the periods in which it is known; else None.
    delay_share
        Share of the busy time that the stage waited for a processor, in the periods in which it
        is known; else None.
    moments
        Of the service time; None with fewer than 30 counts, of periods or of some 64 items.
    item_bytes, byte_rate
        Mean bytes of an item, and the rate in bytes per second for items of this size; None if
        bytes are not counted.
    """

    estimate: Estimate | None
    converged: bool
    reason: RateReason | None
    method: str
    start_s: float
    stop_s: float
    periods: int
    unblocked: int
    used: int
    period_s: float
    items: int
    servers: int = 1
    cpu_rate: Estimate | None = None
    delay_share: float | None = None
    moments: ServiceMoments | None = None
    item_bytes: float | None = None
    byte_rate: Estimate | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def length_s(self) -> float:
        """How long the window is, in seconds."""
        return self.stop_s - self.start_s

    @property
    def unblocked_share(self) -> float:
        """Share of the periods in which the stage never waited."""
        return self.unblocked / self.periods if self.periods else 0.0

    @property
    def standing(self) -> str:
        """Whether it has converged, or why not, in a few words."""
        if self.converged:
            return "converged"
        if self.reason in {None, RateReason.NOT_CONVERGED}:
            return "not converged"
        return str(self.reason).replace("-", " ")

    def __str__(self) -> str:
        number = "no rate" if self.estimate is None else show_estimate(self.estimate, "items/s")
        window = f"{_seconds(self.start_s)} to {_seconds(self.stop_s)} s"
        share = f"{percent(self.unblocked_share, digits=2)} unblocked"
        line = f"{number} · {window} · {share} · {self.standing}"
        # A long line leaves out the share.
        shorter = f"{number} · {window} · {self.standing}"
        return escaped(line if len(line) <= _COLUMNS else shorter)


def _seconds(time_s: float) -> str:
    # From 999.5 on three digits would end in a power of ten.
    return f"{time_s:.3g}" if time_s < 999.5 else f"{time_s:,.0f}"


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
        Names of the stages with intervals that overlap with its own; any may be the bottleneck.
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

    _facts = "benchrigor.queues.report:facts_of_advice"

    source_rate: Quantity
    bottleneck: Bottleneck
    stages: tuple[StageAdvice, ...]
    notices: tuple[Notice, ...] = ()
