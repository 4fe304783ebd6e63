"""The readings of one metric so far, and when the next look at them is due.

The readings of a run in pieces, as one series per piece.

The references of successive rounds, along their readings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from benchrigor.model import Analysis, Metric, Notice, Options, References, StablePhase
from benchrigor.model.analysis import Kind
from benchrigor.model.pace import INTERPRETER
from benchrigor.model.series import Floats
from benchrigor.session.schedule.work_schedule import WorkSchedule
from benchrigor.session.stop_rules import EARLY_LOOKS, next_check
from benchrigor.stats.series.level import MIN_FOR_VARIANCE
from benchrigor.stats.series.undisturbed import Groups
from benchrigor.stats.statistics.statistic import ReferencesAlong
from benchrigor.stats.statistics.variance_components import MIN_PIECES, few_pieces

T = TypeVar("T")


def by_piece(
    pieces: Sequence[int], parts: Sequence[T], join: Callable[[Sequence[T]], T]
) -> list[T]:
    """Join the successive parts of every piece."""
    whole: dict[int, list[T]] = {}
    for piece, part in zip(pieces, parts, strict=True):
        whole.setdefault(piece, []).append(part)
    return [parts[0] if len(parts) == 1 else join(parts) for parts in whole.values()]


def first_pieces(options: Options) -> int:
    """Return from how many pieces on their levels make an interval: one look before the last."""
    return min(MIN_PIECES - 1, max(2, options.pieces - 1))


def in_pieces(
    series: Sequence[Floats], options: Options
) -> tuple[Kind, tuple[Floats, ...], tuple[Notice, ...]]:
    """Return kind and series of readings in pieces; few pieces are one series so far."""
    if len(series) >= first_pieces(options):
        return Kind.PIECES, tuple(series), ()
    return Kind.UNIT_READINGS, (np.concatenate(series),), (few_pieces(len(series), options.pieces),)


_UNDISTURBED = 0.9  # quantile of the shares: waiting for a processor only lowers them


class Timed(NamedTuple):
    """The references of a round, and how much of the readings between them was work."""

    n: int  # readings of the round
    references: References | None
    busy: Floats  # share of the time between two references; empty if it was not measured


def timed_round(values: Floats, references: References | None, calls: int) -> Timed:
    """Take a round whose readings are durations of so many calls each."""
    busy = np.empty(0)
    if references is not None and references.stops[-1] > values.size:
        references = None  # they lie between other readings of the round
    if references is not None and references.busy is not None:
        starts = np.append(0, references.stops[:-1])
        took_s = np.add.reduceat(values[: references.stops[-1]], starts) * calls
        busy = references.busy / np.maximum(took_s, 1e-12)
    return Timed(values.size, references, busy)


def references_along(rounds: Sequence[Timed]) -> ReferencesAlong | None:
    """Return the references of rounds by their places among all readings; None without any."""
    found = [round_ for round_ in rounds if round_.references is not None]
    begun = np.cumsum([0, *(round_.n for round_ in rounds)])
    placed = [
        (start + round_.references.stops, round_.references.seconds[INTERPRETER])
        for start, round_ in zip(begun, rounds, strict=False)
        if round_.references is not None and INTERPRETER in round_.references.seconds
    ]
    if not placed:
        return None
    stops, seconds = (np.concatenate(column) for column in zip(*placed, strict=True))
    busy = np.concatenate([round_.busy for round_ in found])
    share = float(np.quantile(busy, _UNDISTURBED)) if busy.size else 1.0
    return ReferencesAlong(stops=stops, log_s=np.log(seconds), busy=min(share, 1.0))


@dataclass(slots=True, kw_only=True)
class Trace:
    """The readings of one metric so far, and their latest analysis."""

    metric: Metric
    kind: Kind
    first_check: int
    next_check: int
    fewest: int  # units that may suffice where an end is forced
    is_forced: bool = False  # whether the budgets end before the second full look
    chunks: list[Floats] = field(default_factory=list)
    groups: list[Groups] = field(default_factory=list)  # by round
    timed: list[Timed] = field(default_factory=list)  # the same
    pieces: list[int] = field(default_factory=list)  # by chunk
    weights: list[float] = field(default_factory=list)
    phases: list[StablePhase] = field(default_factory=list)
    n: int = 0
    last_units: int = 1  # that the last round added
    batch: int = 1
    busy_s: float = 0.0  # of readings that are durations: how long their calls took
    schedule: WorkSchedule | None = None
    analysis: Analysis | None = None
    analysed: int = 0  # how many readings there were then
    report: Analysis | None = None
    reported: int = 0
    looked: Analysis | None = None  # the last full look
    looked_at: int = 0  # units then
    pieces_over: int = 0  # which the trace has readings of
    agreed: bool = False  # whether it agrees with the one before

    @property
    def is_single(self) -> bool:
        """Whether all restarted rounds gave a single unit reading, which has no phases to cut."""
        return self.kind is Kind.INVOCATIONS and is_single(self.chunks)

    @property
    def units(self) -> int:
        """Units of inference so far: readings, or rounds that count."""
        if self.schedule is not None:
            return self.schedule.sample
        if self.kind is Kind.PIECES:
            return self.pieces_over
        if self.kind != Kind.INVOCATIONS or self.is_single:
            return self.n
        if self.phases:
            return sum(phase.n >= MIN_FOR_VARIANCE for phase in self.phases)
        return sum(chunk.size >= MIN_FOR_VARIANCE for chunk in self.chunks)

    @property
    def disturbed(self) -> int:
        """How many of the units did not count in the last analysis because of delay."""
        analysis = self.analysis
        several = self.kind is Kind.PIECES or (analysis and analysis.kind is Kind.INVOCATIONS)
        if analysis is None or analysis.disturbed is None or several:
            return 0
        return analysis.disturbed.left_out

    def empty_analysis(self) -> Analysis:
        """Return an analysis without a look."""
        kind = Kind.READINGS if self.is_single else self.kind
        return Analysis(metric=self.metric, kind=kind, n=self.n)

    @property
    def is_full(self) -> bool:
        """Whether there are enough units for a full look."""
        return self.units >= self.first_check

    @property
    def is_early(self) -> bool:
        """Whether a look at so few units is an early one."""
        return self.kind in EARLY_LOOKS and not self.is_full

    @property
    def is_due(self) -> bool:
        """Whether there are enough new readings for the next analysis."""
        return self.units >= self.next_check and (not self.is_early or self.is_forced)

    @property
    def is_missing(self) -> bool:
        """Whether too few of the units count for a look of its kind."""
        may_be_few = self.is_early and self.is_forced and not self.is_single
        least = self.fewest if may_be_few else self.first_check
        return self.units - self.disturbed < least

    @property
    def check_after(self) -> int:
        """Units at the look after one at those so far; early looks do not move the full ones."""
        if self.kind is Kind.PIECES:
            return self.units + 1
        later = next_check(self.units)
        return later if self.is_full else min(later, self.first_check)

    @property
    def to_next_check(self) -> int:
        """Further readings until the next full look is due; of a piece, no end."""
        if self.kind is Kind.PIECES:
            return sys.maxsize
        return max(self.next_check, self.first_check) - self.n


def is_single(rounds: Sequence[Floats]) -> bool:
    """Return whether there are rounds, and all gave a single unit reading."""
    return len(rounds) > 0 and all(round_.size == 1 for round_ in rounds)
