"""A turn of one or more subjects, and the view of a schedule that chooses the next one."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.model.analysis import VarianceSplit
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import RoundPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(OneLine):
    """What is carried out together: one round of each subject, or several.

    Parameters
    ----------
    order
        Names of the subjects in the order in which they are measured: one name per reading, or per
        process. The i-th readings, or rounds, of two subjects are a pair.
    plan
        What the rounds of the turn have in common: ``index`` counts the turns. Subjects that
        measure by themselves add their own work amount, seed and piece.
    names
        What each process measures of a suite; empty for all of it.
    """

    order: tuple[str, ...]
    plan: RoundPlan
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Headway(OneLine):
    """How far a goal has come, for schedules: counts, durations and widths, but no number.

    Parameters
    ----------
    turns
        Number of turns so far.
    readings
        Most unit readings of any metric; 0 if rounds give single readings.
    elapsed_s
        Wall time of all turns.
    last_readings, last_s
        Readings of the last turn, and its wall time.
    to_next_check
        Further unit readings until the next analysis is due.
    piece
        The piece that the next round is of, counted from 0.
    invocations
        Restarted rounds with unit readings.
    first_invocation
        Readings per invocation until their variance is known; None for the usual number.
    busy_s
        Time that all readings took.
    as_long_as_start
        Whether readings of an invocation take no less time than its start.
    split
        Variance of the invocations at the last look.
    may_be_short
        Whether short invocations show a stable phase, as far as is known.
    width
        Half-width of the interval at the last look, over the one that is wanted; None without one.
    narrow
        How many looks in a row it was narrow enough.
    """

    turns: int = 0
    readings: int = 0
    elapsed_s: float = 0.0
    last_readings: int = 0
    last_s: float = 0.0
    to_next_check: int = 1
    piece: int = 0
    invocations: int = 0
    first_invocation: int | None = None
    busy_s: float = 0.0
    as_long_as_start: bool = False
    split: VarianceSplit | None = None
    may_be_short: bool = False
    width: float | None = None
    narrow: int = 0

    @property
    def reading_s(self) -> float:
        """Mean time of the last readings."""
        return self.last_s / max(self.last_readings, 1)
