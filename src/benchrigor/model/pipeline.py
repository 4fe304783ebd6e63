"""What service rates suggest for a pipeline: its bottleneck, its queues, its replicas."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice, Severity
from benchrigor.model.series import short
from benchrigor.model.service import ServiceProcess
from benchrigor.model.text import (
    aligned,
    counted,
    many,
    percent,
    shortened,
    show_estimate,
    show_value,
)

__all__ = [
    "Bottleneck",
    "BufferSize",
    "PipelineAdvice",
    "PipelineStage",
    "Quantity",
    "ReplicaCount",
    "StageAdvice",
    "StageLoad",
    "no_number",
    "no_quantity",
    "no_whole",
]

_WIDTH, _LONGEST_NAME = 79, 32

Quantity = float | Estimate
"""A number that is known exactly, or one that was estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """One stage of a pipeline, as far as its rates tell.

    Parameters
    ----------
    name
        What people call it; no two stages of a pipeline share one.
    rate
        What one replica serves while it does not wait, in items of its own per second.
    visits
        Items of its own per item of the source.
    replicas
        How many work side by side.
    process
        What the service times look like. Exponential, the default, asks for more room than any
        steadier service.
    variation
        Squared coefficient of variation of the service times, where ``process`` is "other".

    Raises
    ------
    InvalidInput
        Naming all of name, rate, visits and replicas that make no sense.

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

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and self.name != ""
        of = f" of {short(self.name)}" if named else ""
        problems = [
            *(() if named else (f"name is {short(self.name)}, expected the name of a stage",)),
            *no_quantity(self.rate, f"rate{of}"),
            *no_quantity(self.visits, f"visits{of}"),
            *no_whole(self.replicas, f"replicas{of}"),
        ]
        if problems:
            raise InvalidInput(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoad:
    """What a stage can do, and how much of it is used.

    Parameters
    ----------
    stage
        The stage as it was given.
    capacity
        What all of its replicas serve together, in items of the source per second.
    utilisation
        Share of that which the source asks for; None where the rate of the source is not known,
        or the capacity may be 0.
    """

    stage: PipelineStage
    capacity: Estimate
    utilisation: Estimate | None = None

    def __str__(self) -> str:
        used = "" if self.utilisation is None else f" · {_used(self.utilisation)}"
        return f"{self.stage.name}: {show_estimate(self.capacity, 'items/s')}{used}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The stage that limits a pipeline.

    Parameters
    ----------
    stage
        Name of the stage of lowest capacity.
    rivals
        Names of the others that it may be just as well: their intervals reach down to its own.
    capacity
        What the pipeline can serve, in items of the source per second, given room enough in its
        queues; the interval is that of the lowest capacity, whichever stage has it.
    loads
        All stages, in order.
    notices
        What the reader must know.
    """

    stage: str
    rivals: tuple[str, ...]
    capacity: Estimate
    loads: tuple[StageLoad, ...]
    notices: tuple[Notice, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether its interval lies below those of all others."""
        return not self.rivals

    def __str__(self) -> str:
        most = show_estimate(self.capacity, "items/s")
        if self.certain:
            return f"{self.stage} is the bottleneck: {most}"
        return f"{self.stage} may be the bottleneck, or {', '.join(self.rivals)}: {most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSize:
    """How much room the queue in front of each replica of a stage should have.

    Parameters
    ----------
    capacity
        Items that the queue holds, besides the one that is served, so that it is full to no more
        than the wanted share of arrivals, if arrivals are as fast and service as slow as their
        intervals allow; None where no size is known to do that.
    capacity_at_value
        The same if both rates are as estimated.
    blocked_share
        The share of arrivals that may find the queue full.
    utilisation
        Of each replica, both rates being as estimated.
    worst_utilisation
        If arrivals are as fast and service as slow as their intervals allow; None where service
        may be as slow as can be.
    variation
        Squared coefficient of variation of the service times that was assumed.
    notices
        What the reader must know.
    """

    capacity: int | None
    capacity_at_value: int | None
    blocked_share: float
    utilisation: float
    worst_utilisation: float | None
    variation: float
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        share = f"at most {percent(self.blocked_share)} blocked"
        used = f"utilisation {percent(self.utilisation)}"
        if self.worst_utilisation != self.utilisation:
            used += f", at worst {_worst(self.worst_utilisation)}"
        if self.capacity is not None:
            room = f"room for {many(self.capacity, 'item')}"
            if self.capacity_at_value not in (None, self.capacity):
                room += f" ({counted(self.capacity_at_value or 0)} at the estimated rates)"
            return f"{room}: {share} · {used}"
        if self.capacity_at_value is not None:
            room = f"room for {many(self.capacity_at_value, 'item')} at the estimated rates: "
            return f"{room}{share} · at worst no size is enough · {used}"
        return f"no size is enough for {share} · {used}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCount:
    """How many replicas of a stage keep its utilisation down.

    Parameters
    ----------
    replicas
        The fewest, if arrivals are as fast and service as slow as their intervals allow; None
        where service may be as slow as can be.
    replicas_at_value
        The fewest if both rates are as estimated.
    utilisation
        The most that was wanted.
    notices
        What the reader must know.
    """

    replicas: int | None
    replicas_at_value: int
    utilisation: float
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        least = many(self.replicas_at_value, "replica")
        goal = f"utilisation {percent(self.utilisation)} at most"
        if self.replicas is None:
            return f"{least} at the estimated rates: {goal} · at worst no number is known to do"
        if self.replicas == self.replicas_at_value:
            return f"{least}: {goal}"
        at_value = f"{counted(self.replicas_at_value)} at the estimated rates"
        return f"{many(self.replicas, 'replica')} ({at_value}): {goal}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAdvice:
    """What is suggested for one stage.

    Parameters
    ----------
    load
        Its capacity and utilisation as it is now.
    replicas
        How many to run.
    buffer
        The queue in front of each, run with as many as suggested.
    buffer_now
        The queue in front of each, run with as many as now.
    """

    load: StageLoad
    replicas: ReplicaCount
    buffer: BufferSize
    buffer_now: BufferSize

    def __str__(self) -> str:
        return f"{self.load} · {self.replicas} · {self.buffer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineAdvice:
    """What is suggested for a pipeline.

    Parameters
    ----------
    source_rate
        What the source asks for, in items per second.
    bottleneck
        What limits the pipeline as it is now, and where.
    stages
        What is suggested for each stage, in order.
    notices
        What the reader must know, first of all what is assumed.
    """

    source_rate: Quantity
    bottleneck: Bottleneck
    stages: tuple[StageAdvice, ...]
    notices: tuple[Notice, ...] = ()

    @property
    def throughput(self) -> Estimate:
        """What the pipeline can serve as it is now, in items of the source per second."""
        return self.bottleneck.capacity

    def __str__(self) -> str:
        asked = self.source_rate
        value = asked.value if isinstance(asked, Estimate) else asked
        header = ("stage", "used", "replicas", "room in each queue")
        first = self.stages[0]
        goal = f"{percent(first.replicas.utilisation)} used, {percent(first.buffer.blocked_share)}"
        return "\n".join(
            [
                *textwrap.wrap(str(self.bottleneck), _WIDTH),
                f"to serve {show_value(value, 'items/s')} of the source, at most {goal} blocked:",
                *aligned([header, *map(_cells, self.stages)], "<>><"),
                *_warnings(self.notices),
            ]
        )


def _warnings(notices: Iterable[Notice]) -> Iterator[str]:
    """Yield the lines of all that is more than a note: of each kind the first, and whose else."""
    told: dict[str, list[Notice]] = {}
    for each in notices:
        if each.severity is not Severity.NOTE:
            told.setdefault(each.code, []).append(each)
    for first, *others in told.values():
        stages = dict.fromkeys(str(each.evidence.get("stage", "")) for each in (first, *others))
        _, *more = stages
        also = f" The same of {', '.join(more)}." if more else ""
        yield from textwrap.wrap(
            f"! {first.sentence}{also} [{first.code}]",
            _WIDTH,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )


def _cells(advice: StageAdvice) -> tuple[str, str, str, str]:
    load, wanted, buffer = advice.load, advice.replicas, advice.buffer
    replicas = str(load.stage.replicas)
    if wanted.replicas != load.stage.replicas:
        replicas = f"{replicas} → {_least(wanted.replicas, wanted.replicas_at_value)}"
    return (
        shortened(load.stage.name, _LONGEST_NAME),
        "-" if load.utilisation is None else percent(load.utilisation.value),
        replicas,
        _least(buffer.capacity, buffer.capacity_at_value),
    )


def _least(number: int | None, at_value: int | None) -> str:
    """Show how many will do, or how many are the least where no number is known to do."""
    if number is not None:
        return counted(number)
    return "no size is enough" if at_value is None else f"{counted(at_value)} or more"


def _used(utilisation: Estimate) -> str:
    low, high = percent(utilisation.low), percent(utilisation.high)
    return f"{percent(utilisation.value)} used [{low}, {high}]"


def _worst(utilisation: float | None) -> str:
    return "any" if utilisation is None else percent(utilisation)


_SMALLEST, _LARGEST = 1e-150, 1e150
"""Between them products and quotients of two numbers stay in the range of a double."""


def no_number(number: object, name: str, *, zero: bool = False) -> tuple[str, ...]:
    """Say that something is no finite number above 0, or none from 0 on; else nothing.

    Examples
    --------
    >>> no_number("fast", "rate"), no_number(2.0, "rate")
    (("rate is 'fast', expected a number above 0",), ())
    """
    wanted = "a number of at least 0" if zero else "a number above 0"
    if isinstance(number, bool) or not isinstance(number, Real):
        return (f"{name} is {short(number)}, expected {wanted}",)
    # Compared as it is: a whole number may be too large to be made a float.
    size: Any = number
    if (0 if zero else _SMALLEST) <= size <= _LARGEST:
        return ()
    if 0 < size < _SMALLEST:
        wanted = f"one of at least {_SMALLEST:g}"
    if _LARGEST < size < math.inf:
        wanted = f"{wanted}, up to {_LARGEST:g}"
    return (f"{name} is {short(number)}, expected {wanted}",)


def no_whole(number: object, name: str, *, least: int = 1) -> tuple[str, ...]:
    """Say that something is no whole number from ``least`` on; else nothing."""
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    if whole and number >= least:  # type: ignore[operator]  # found to be a number
        return ()
    return (f"{name} is {short(number)}, expected a whole number of at least {least}",)


def no_quantity(quantity: object, name: str, *, zero: bool = False) -> tuple[str, ...]:
    """Say that something is neither such a number nor an Estimate of one; else nothing."""
    if not isinstance(quantity, Estimate):
        if isinstance(quantity, Real):
            return no_number(quantity, name, zero=zero)
        wanted = "a number of at least 0" if zero else "a number above 0"
        return (f"{name} is {short(quantity)}, expected {wanted} or an Estimate",)
    value, low, high = quantity.value, quantity.low, quantity.high
    if not all(isinstance(each, Real) for each in (value, low, high, quantity.confidence)):
        return (f"{name} is {short(quantity)}, expected numbers in it",)
    if not 0.0 < quantity.confidence < 1.0:
        return (f"{name}.confidence is {quantity.confidence!r}, expected between 0 and 1",)
    if not -_LARGEST <= low <= value <= high <= _LARGEST:
        return (
            f"{name} is {value!r} in [{low!r}, {high!r}], expected a value within a finite "
            "interval",
        )
    return no_number(value, f"{name}.value", zero=zero)
