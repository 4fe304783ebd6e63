"""The track record of intervals: how often they agreed with a later run of the same thing."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.one_line import OneLine, Reported


class Standing(enum.StrEnum):
    """How often intervals held, compared with how often they claim to."""

    AS_CLAIMED = "as claimed"  # The counts do not contradict the claim
    LESS = "less than claimed"
    MORE = "more than claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair(OneLine):
    """Two runs of the same thing, one after the other, on one machine; ids of those stored."""

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
        How many intervals held, and of how many pairs of runs.
    low, high
        Wilson interval of the share that holds, 95%.
    confidence
        Share of intervals that is claimed to hold.
    standing
        Whether it does, as far as the counts can tell.
    widening
        Factor by which wider intervals would have held as often as they claim; None with too few
        pairs to tell.
    host
        Name of the machine; None for this one, or where it is not known.
    by_name
        The same for each thing that was measured, the worst first; empty if no names are known.
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
