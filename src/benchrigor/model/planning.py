"""The sample size that a goal needs, and its cost."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(OneLine):
    """The cost of a mean with a given relative half-width.

    Parameters
    ----------
    half_width
        Relative half-width of the interval.
    n
        Readings (or invocations) in all.
    n_low, n_high
        Range of that number: the variance is known from a pilot only.
    seconds
        Wall time; None if the wall time of the pilot is not known.
    """

    half_width: float
    n: int
    n_low: int
    n_high: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Reported):
    """How much to measure, from a pilot; ``print(plan)`` shows it in a few lines.

    Parameters
    ----------
    pilot
        The estimate that the plan starts from; the comparison has the same confidence.
    counted_in
        Unit of the sizes: "reading" or "invocation".
    change, margin, power
        The relative change to detect, the margin that it must exceed, and the probability of
        detecting it.
    n
        Readings (or invocations) per side of the comparison.
    n_low, n_high
        Range of that number: the variance is known from a pilot only.
    power_now
        Probability of detecting the change if both sides have the size of the pilot.
    change_now
        Smallest relative change that this size detects with the requested power.
    prices
        Costs of narrower and narrower intervals of one mean.
    name, unit
        Name of the pilot, and the unit of its value; empty if they are not known.
    seconds
        Wall time per side; None if the wall time of the pilot is not known.
    pilot_seconds
        Wall time of the pilot; None if it is not known.
    notices
        Notices on the pilot and on the plan.
    """

    _facts = "benchrigor.report.planning_text:facts_of_plan"

    pilot: Estimate
    counted_in: str
    change: float
    margin: float
    power: float
    n: int
    n_low: int
    n_high: int
    power_now: float
    change_now: float
    prices: tuple[Price, ...]
    name: str = ""
    unit: str = ""
    seconds: float | None = None
    pilot_seconds: float | None = None
    notices: tuple[Notice, ...] = ()


class Standing(enum.StrEnum):
    """How often intervals held, compared with their claim."""

    AS_CLAIMED = "as claimed"  # The counts do not contradict the claim
    LESS = "less than claimed"
    MORE = "more than claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair(OneLine):
    """Two successive runs of the same thing on one machine; stored runs have ids."""

    name: str
    host: str
    earlier: Estimate
    later: Estimate
    earlier_id: str | None = None
    later_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(OneLine):
    """How often the intervals of one thing held: ``held`` of ``pairs``."""

    name: str
    held: int
    pairs: int

    @property
    def share(self) -> float:
        """Share of the intervals that held."""
        return self.held / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord(Reported):
    """How often earlier intervals agreed with a later, independent run.

    ``print(record)`` is a sentence or two.

    Parameters
    ----------
    held, pairs
        Number of intervals that held, and number of pairs of runs.
    low, high
        Wilson interval of the share that holds, 95%.
    confidence
        Claimed share of intervals that hold.
    standing
        Whether the counts agree with the claim.
    widening
        Factor by which wider intervals would have held as often as they claim; None with too few
        pairs.
    host
        Name of the machine; None for this one, or if it is not known.
    by_name
        Tallies of the measured things, the worst first; empty if no names are known.
    """

    _facts = "benchrigor.report.planning_text:facts_of_track_record"

    held: int
    pairs: int
    low: float
    high: float
    confidence: float
    standing: Standing
    widening: float | None = None
    host: str | None = None
    by_name: tuple[Tally, ...] = ()

    @property
    def share(self) -> float:
        """Share of the intervals that held."""
        return self.held / self.pairs
