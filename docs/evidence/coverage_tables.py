"""How the tables of coverage are counted, judged and printed.

Shares are of all repetitions: one without a number is a miss, unless the row may refuse, and then
the share of those printed stands beside the verdict. A bar is met when the Wilson interval of the
share reaches it: the 95 % one, or with ``--quick`` the 99.9 % one, which a row that truly meets its
bar fails at most four times in a thousand. A row of 100 repetitions whose true share is 0.80 misses
a bar of 0.92 in 0.81 of its runs, one of 60 repetitions in 0.55, and in 0.85 at a share of 0.75.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from machine import wilson

from benchrigor.model import Estimate

__all__ = ["Bar", "Interval", "Setting", "Tally", "heading", "interval", "of", "row", "tally"]

QUICK_Z = 3.290527
MOST_REFUSED = 0.05

Result = TypeVar("Result")


class Interval(NamedTuple):
    """What is kept of one interval, relative to the size of the truth."""

    holds: bool
    half_width: float
    warned: bool = False
    """Whether any Notice beside it is a warning."""


def interval(low: float, high: float, truth: float, *, warned: bool = False) -> Interval:
    """Compare an interval with the truth."""
    return Interval(low <= truth <= high, (high - low) / 2.0 / abs(truth), warned)


def of(estimate: Estimate, truth: float) -> Interval:
    """Compare an estimate with the truth."""
    warned = any(notice.severity == "warning" for notice in estimate.notices)
    return interval(estimate.low, estimate.high, truth, warned=warned)


class Bar(NamedTuple):
    """The shares that a row should reach."""

    least: float
    most: float = 1.0
    may_refuse: bool = False

    def __str__(self) -> str:
        span = f">= {self.least:g}" if self.most == 1.0 else f"{self.least:g} to {self.most:g}"
        return f"{span} or refused" if self.may_refuse else span


class Tally(NamedTuple):
    """What came of all repetitions of a row."""

    hits: int
    refused: int
    trials: int
    half_width: float
    """Mean relative half-width of the intervals printed; NaN when there is none."""
    warned: int = 0

    @property
    def share(self) -> float:
        """Share of repetitions whose interval holds the truth."""
        return self.hits / self.trials

    def cell(self, *, wilson_too: bool = False) -> str:
        """Format share, half-width in percent of the truth, and refusals."""
        share = f"{self.share:.3f}"
        if wilson_too:
            low, high = wilson(self.hits, self.trials)
            share += f" [{low:.3f}, {high:.3f}]"
        width = "-" if math.isnan(self.half_width) else f"{self.half_width * 100:.2g}"
        return f"{share} ({width}{f'; {self.refused} refused' if self.refused else ''})"


def tally(found: Iterable[Interval | None]) -> Tally:
    """Count intervals; None is a repetition without a number."""
    everything = list(found)
    known = [each for each in everything if each is not None]
    return Tally(
        hits=sum(each.holds for each in known),
        refused=len(everything) - len(known),
        trials=len(everything),
        half_width=math.fsum(each.half_width for each in known) / len(known) if known else math.nan,
        warned=sum(each.warned for each in known),
    )


@dataclass(slots=True, kw_only=True)
class Setting:
    """How a run is made, and what has missed its bar so far."""

    seed: int
    quick: bool = False
    repetitions: int | None = None
    jobs: int = 2
    bars: int = 0
    missed: list[str] = field(default_factory=list)
    _pool: ProcessPoolExecutor | None = None

    @property
    def z(self) -> float:
        """Normal quantile of the Wilson intervals that judge."""
        return QUICK_Z if self.quick else 1.959964

    def runs(self, full: int, quick: int) -> int:
        """Return how often a row is repeated."""
        return self.repetitions or (quick if self.quick else full)

    def repeated(self, run: Callable[[int], Result], runs: int) -> list[Result]:
        """Return the results of run 0, 1, ... , from as many processes as there are jobs."""
        if self.jobs == 1:
            return [run(each) for each in range(runs)]
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.jobs)
        return list(self._pool.map(run, range(runs), chunksize=max(1, runs // (8 * self.jobs))))

    def verdict(self, row: str, met: bool) -> str:
        """Return how a bar is printed, and remember what missed."""
        self.bars += 1
        if not met:
            self.missed.append(row)
        return "met" if met else "MISSED"

    def judged(self, row: str, bar: Bar | None, found: Tally) -> str:
        """Return bar and verdict on a share, and on its refusals."""
        if bar is None:
            return "none"
        verdict = f"{bar}: {self.verdict(row, self.reaches(bar, found))}"
        if bar.may_refuse and found.refused:
            verdict += f" ({found.hits} of the {found.trials - found.refused} printed)"
        return verdict

    def reaches(self, bar: Bar, found: Tally) -> bool:
        """Whether the share reaches its bar, and refusals stay few where none are allowed."""
        hits = found.hits + found.refused if bar.may_refuse else found.hits
        low, high = wilson(hits, found.trials, self.z)
        few = wilson(found.refused, found.trials, self.z)[0] < MOST_REFUSED
        return low <= bar.most and high >= bar.least and (bar.may_refuse or few)

    def at_most(self, row: str, most: float, hits: int, trials: int) -> str:
        """Return verdict on a share that should not be larger."""
        return self.verdict(row, wilson(hits, trials, self.z)[0] <= most)


def heading(columns: Sequence[str]) -> None:
    """Print the first two lines of a table."""
    print(f"| {' | '.join(columns)} |")
    print(f"| {' | '.join('---' for _ in columns)} |", flush=True)


def row(*cells: object) -> None:
    """Print one line of a table."""
    print(f"| {' | '.join(str(each) for each in cells)} |", flush=True)
