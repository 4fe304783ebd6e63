"""The track record of intervals: how often they agreed with a later run of the same thing."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.one_line import OneLine, Reported


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

    _page = "benchrigor.report.planning_text:track_record_page"

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
