"""Capabilities, status, health and alarms of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchrigor.errors import InvalidInput
from benchrigor.model.notice import Evidence, Figure
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.safe_text import escaped
from benchrigor.units import percent, shortened, show_value

OF_MACHINE = "machine: "  # Prefix of a round's facts about the machine, not about the workload
_WIDEST = 40  # Characters of a value in a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability(OneLine):
    """A property of a machine that matters to measurements, such as its "cpu governor".

    If it is not available, ``value`` is None, and ``reason`` says why.
    """

    name: str
    available: bool
    value: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sample(OneLine):
    """One value of the state of a machine at a moment.

    Parameters
    ----------
    name
        A stable name, such as "memory available".
    value
        A number, or a text such as "passed"; None if it is not known.
    unit
        Unit such as "B", "B/s", "%"; empty for a text and for a plain number.
    reason
        Reason for a missing value; else empty.

    Examples
    --------
    >>> print(Sample("memory available", 4.2e9, "B"))
    memory available: 4.2 GB
    >>> print(Sample("gpus", None, reason="no driver is loaded"))
    gpus: not known, no driver is loaded
    """

    name: str
    value: float | str | None
    unit: str = ""
    reason: str = ""

    @property
    def shown(self) -> str:
        """The value with its unit, for people; empty if it is not known."""
        if not isinstance(self.value, int | float):
            return shortened(self.value or "", _WIDEST)
        return (
            percent(self.value / 100.0) if self.unit == "%" else show_value(self.value, self.unit)
        )

    def __str__(self) -> str:
        return escaped(f"{self.name}: {self.shown or f'not known, {self.reason}'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Reported):
    """Samples of one moment; see `Status` and `Health`."""

    _facts = "benchrigor.report.facts.machine_facts:facts_of_state"

    samples: tuple[Sample, ...]
    at: str
    span_s: float | None = None
    cost_s: Mapping[str, float] = field(default_factory=dict)

    def value(self, name: str) -> float | str | None:
        """Return the value of a sample; None if it is not known.

        Raises
        ------
        InvalidInput
            When no sample has that name; the message lists similar names.
        """
        for sample in self.samples:
            if sample.name == name:
                return sample.value
        from difflib import get_close_matches  # noqa: PLC0415  # needed for an error only

        names = [sample.name for sample in self.samples]
        alike = get_close_matches(name, names, n=5, cutoff=0.4) or sorted(names)[:5]
        raise InvalidInput(f"no sample is named {name!r}; such are {', '.join(map(repr, alike))}")

    def to_dict(self) -> dict[str, Figure]:
        """Return a flat map: "at", "span_s", all samples by name, reasons and costs.

        If a sample is None, "NAME reason" says why. "cost_s SAMPLER" is the time of a sampler.
        """
        return {
            "at": self.at,
            "span_s": self.span_s,
            **{sample.name: sample.value for sample in self.samples},
            **{f"{item.name} reason": item.reason for item in self.samples if item.value is None},
            **{f"cost_s {name}": cost_s for name, cost_s in self.cost_s.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(State):
    """Load of a machine: processors, memory, disks, network, pressure.

    Parameters
    ----------
    samples
        The samples. Rates and shares of time are over ``span_s``, all others are of the moment.
    at
        Time of the reading, ISO 8601 in UTC.
    span_s
        Seconds since the previous reading; None for a first reading, which has no rates.
    cost_s
        Wall time in seconds that a sampler took, by the sampler's description of itself.

    Examples
    --------
    >>> status = Status(samples=(Sample("load 1 min", 0.5),), at="2026-11-24T19:00:00+00:00")
    >>> status.value("load 1 min"), status.to_dict()["load 1 min"]
    (0.5, 0.5)
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(State):
    """Health of a machine: temperatures, disks, memory, clock; parameters as in `Status`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm(OneLine):
    """A problem of a machine, which lasts as long as the alarm stands.

    Parameters
    ----------
    code
        Stable code, for programs. A code never has two standing alarms.
    sentence
        The problem, and its remedy.
    since
        Time at which the problem was first seen, ISO 8601 in UTC.
    value, threshold
        Latest value of the sample, and the threshold that it passed; None if the alarm was raised
        by hand.
    evidence
        The figures that explain it.

    Examples
    --------
    >>> since = "2026-11-24T19:00:00+00:00"
    >>> print(Alarm(code="queue-full", sentence="A queue is full.", since=since))
    A queue is full. [queue-full] since 2026-11-24T19:00:00+00:00
    """

    code: str
    sentence: str
    since: str
    value: float | None = None
    threshold: float | None = None
    evidence: Evidence = field(default_factory=dict)

    def __str__(self) -> str:
        figures = ", ".join(
            f"{name} {f'{figure:.3g}' if isinstance(figure, float) else figure}"
            for name, figure in self.evidence.items()
        )
        shown = f"{self.sentence} [{self.code}] since {self.since}"
        return escaped(shown + (figures and f" ({figures})"))


INTERPRETER = "interpreter"  # kind of the reference: byte code
# A bare start of the interpreter: wall time, processor time, and the rest, without delay.
COMMAND, COMMAND_CPU, COMMAND_REST = "command", "command cpu", "command rest"


def reference_s(full_s: Mapping[str, float]) -> float:
    """Return the time at full speed by which readings are scaled: processor time for commands.

    Examples
    --------
    >>> reference_s({"interpreter": 4e-6}), reference_s({"command": 0.02, "command cpu": 0.01})
    (4e-06, 0.01)
    """
    return full_s[COMMAND_CPU if COMMAND_CPU in full_s else INTERPRETER]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(OneLine):
    """Speed of a machine during a run, from a reference (fixed work) timed between readings.

    Parameters
    ----------
    full_s
        By kind of reference, its seconds at full speed: the fastest level that it holds for a real
        share of its time, in this run and in earlier ones on this machine.
    version
        Version of the reference.
    mean, slowest, fastest
        Pace relative to full speed (1; slower is below 1): the mean over all readings that count,
        and the slowest and fastest block of wall time. For commands, the pace of processor time.
    blocks
        Number of blocks of wall time; for commands, the number of reference starts.
    ratio
        Mean reading divided by the mean reference.
    sensitivity, sensitivity_sd
        Percentage by which a reading slows down when the reference slows down by 1 %, and its
        standard deviation.
    factor
        Factor from the mean of all segments to full speed.
    error
        Relative standard error of the level at full speed, from blocks of time alone.
    between
        Assumed relative standard deviation between runs that the reference does not explain; for
        runs in pieces, between processes.
    by_piece
        Levels of pieces or invocations at full speed; None for one without references. Empty for
        other runs, and if too few invocations have references.
    level
        Mean at full speed, in the unit of the readings; None for commands, for work amounts, and if
        too few invocations have references: then only the factor is known.
    distance
        Logarithm of the pace between the segments that give the level and the fastest references.
        None if it is the distance of the whole run from full speed.
    fastest_reference
        Logarithm of the fastest level of the run over full speed; None for commands.
    to_full, to_full_sd
        Percentage by which a reading slows down for 1 % of that distance, and its standard
        deviation.
    at_full
        Number of segments near the fastest references that give the level; 0 if all segments do.
    busy
        Share of the readings, without waiting, during which a processor worked, 0 to 1. The pace
        changes this part only. 1 if it was not measured.
    widening
        Factor on the width of the headline from the spread of stored runs; below 1 it narrows.
    reducible
        Share of the variance of the headline that more readings reduce, 0 to 1.
    """

    full_s: Mapping[str, float]
    version: int
    mean: float
    slowest: float
    fastest: float
    blocks: int
    ratio: float
    sensitivity: float
    sensitivity_sd: float
    factor: float
    error: float
    between: float
    by_piece: tuple[float | None, ...] = ()
    level: float | None = None
    distance: float | None = None
    fastest_reference: float | None = None
    to_full: float = 0.0
    to_full_sd: float = 0.0
    at_full: int = 0
    busy: float = 1.0
    widening: float = 1.0
    reducible: float = 1.0

    @property
    def away(self) -> float:
        """Logarithm of the pace from the segments that give the level to full speed."""
        return -math.log(self.mean) if self.distance is None else self.distance

    @property
    def of_command(self) -> bool:
        """Whether the reference is a bare start of the interpreter, as for commands."""
        return COMMAND in self.full_s

    @property
    def share(self) -> float:
        """Time at full speed over measured time, of the commands or else of the reference."""
        return min(self.factor if self.of_command else self.mean, 1.0)
