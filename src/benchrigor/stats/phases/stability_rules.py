"""The verdict on the longest phase of a series: whether it is stable, and if not, why.

Every rule is one named statistic against one number. They are tried from the most to the least
telling: a trend is also a series without a dominant segment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Code, Notice
from benchrigor.model.analysis import PhaseReason
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION

_WANTED = float(MIN_FOR_AUTOCORRELATION)  # effective sample size
_UNIT_ROOT = 13.7 / 2  # effective sample size below which noise may be a random walk
_BOTH = 0.8  # share of it that the mean of both effective sample sizes must reach
_SLOW = 5.0  # variance inflation from which noise is slow
_CONCORDANT = 0.8  # rank correlation of levels with their order from which they rise, or fall
_MIN_PHASES = 4  # so many levels that rise, or fall, are a movement
_MAX_PHASES = 512  # of more levels, so many are compared
_LONG_TAIL = 0.1  # share of the readings behind the longest phase that may be a movement
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestPhase:
    """The longest phase of a series, and what speaks for and against it."""

    borders: tuple[int, ...]  # 0, the first index of each later phase, n
    medians: tuple[float, ...]  # of the phases
    index: int
    inflation: float  # variance inflation of the change points
    slow_effective: float  # effective sample size by its slowest noise
    changes: tuple[int, ...] = ()  # material change points inside, by a second search
    thirds: tuple[float, ...] = ()  # medians, where it moves slowly and materially
    raw: tuple[float, ...] = ()  # medians of all segments before any were joined
    joined: tuple[float, ...] = ()  # medians of the segments that were joined into it
    materiality: float = 0.0  # relative difference that keeps neighbours apart

    @property
    def n(self) -> int:
        """Length of the series."""
        return self.borders[-1]

    @property
    def size(self) -> int:
        """Readings in the phase."""
        return self.borders[self.index + 1] - self.borders[self.index]

    @property
    def effective(self) -> float:
        """Effective sample size, by the variance inflation."""
        return self.size / self.inflation

    @property
    def dominant(self) -> bool:
        """Whether the phase holds more than half of the readings."""
        return 2 * self.size > self.n

    @property
    def shortage(self) -> tuple[float, float] | None:
        """Effective sample size, and the size wanted, if it is too small.

        Wanted are 30 by the better of both estimates, 5 by the variance inflation alone, and as
        many as exclude a unit root; less of a short phase, in which neither is known well.
        """
        both = max(self.effective, self.slow_effective), min(_WANTED, self.size / 4)
        one = self.effective, min(5.0, self.size / 20)
        slow = self.slow_effective, min_effective(self.size)
        return next((pair for pair in (one, both, slow) if pair[0] < pair[1]), None)

    @property
    def like_random_walk(self) -> bool:
        """Whether a unit root is not excluded, nor by the geometric mean of both estimates."""
        least = min_effective(self.size)
        mean = math.sqrt(self.effective * min(self.slow_effective, self.size))
        return self.slow_effective < least and mean < _BOTH * least

    @property
    def climbing(self) -> bool:
        """Whether segments too alike to part climb or fall materially when taken together."""
        low, high = sorted((abs(self.joined[0]), abs(self.joined[-1]))) if self.joined else (0, 0)
        return _concordant(self.joined) and high - low >= self.materiality * low

    @property
    def recent(self) -> tuple[float, ...]:
        """Medians from the phase on that holds the middle reading."""
        middle = int(np.searchsorted(self.borders, self.n // 2, side="right")) - 1
        return self.medians[middle:]


def min_effective(size: int) -> float:
    """Return the effective sample size that excludes a unit root; less of a short phase."""
    return min(_UNIT_ROOT, size / 10)


def find_reason(phase: LongestPhase) -> PhaseReason:
    """Return why the phase is stable, or why it is not.

    * Trend, still moving: the medians of all phases, or of those after the middle reading, are
      concordant with time (Mann 1945, Kendall 1938). A trend is also found among the segments that
      were joined into a dominant phase, or among all segments if the phase looks like a random
      walk. After a dominant phase more than a tenth of the readings must move; fewer are a
      cool-down.
    * Random walk: for AR(1) the effective sample size by the slowest noise is about n (1 - phi)/2;
      Dickey & Fuller (1979) reject a unit root at 5 % if n (1 - phi) exceeds 13.7 (n = 100).
    * Too few effective readings: see `LongestPhase.shortage`. Also if only one of the two estimates
      looks like a random walk, or if no phase dominates and slow noise hides changes.
    * Not stable inside: a second search finds material changes, or the phase drifts or bends.
    """
    if not phase.dominant:
        rules = {
            PhaseReason.TREND: _concordant(phase.medians) or _concordant(phase.raw),
            PhaseReason.RANDOM_WALK: phase.like_random_walk,
            PhaseReason.STILL_MOVING: _concordant(phase.recent),
            PhaseReason.FEW_EFFECTIVE: phase.inflation >= _SLOW and phase.effective < _WANTED,
            PhaseReason.NO_DOMINANT_SEGMENT: True,
        }
    else:
        behind = phase.n - phase.borders[phase.index + 1]
        walk = phase.like_random_walk
        rules = {
            PhaseReason.TREND: phase.climbing or (walk and _concordant(phase.raw)),
            PhaseReason.NOT_STABLE_INSIDE: bool(phase.changes or phase.thirds),
            PhaseReason.RANDOM_WALK: walk,
            PhaseReason.FEW_EFFECTIVE: phase.shortage is not None,
            PhaseReason.STILL_MOVING: behind > _LONG_TAIL * phase.n and _concordant(phase.recent),
            PhaseReason.STABLE: True,
        }
    return next(reason for reason, holds in rules.items() if holds)


def _concordant(medians: Sequence[float]) -> bool:
    return len(medians) >= _MIN_PHASES and abs(concordance(medians)) >= _CONCORDANT


def concordance(levels: Sequence[float]) -> float:
    """Return Kendall's rank correlation of levels (or of 512 of them) with their order."""
    chosen = np.asarray(levels)[:: -(-len(levels) // _MAX_PHASES)]
    signs = np.sign(chosen[np.newaxis, :] - chosen[:, np.newaxis])
    return float(np.triu(signs).sum()) / (chosen.size * (chosen.size - 1) / 2)


def explain_reason(reason: PhaseReason, phase: LongestPhase) -> Notice:
    """Return the Notice that says with figures why there is no stable phase."""
    slow = phase.slow_effective
    return Notice.refusal(
        Code.NO_STABLE_PHASE,
        _sentence(reason, phase),
        reason=str(reason),
        n=phase.n,
        segments=len(phase.medians),
        longest=phase.size,
        share=phase.size / phase.n,
        inflation=phase.inflation,
        independent=None if math.isinf(slow) else slow,
        changes_inside=len(phase.changes),
    )


def _sentence(reason: PhaseReason, phase: LongestPhase) -> str:
    n, size, count = phase.n, phase.size, len(phase.medians)
    longest = f"the longest of {count} segments" if count > 1 else "the only segment"
    holds = f"There is no stable phase: {longest} holds {size / n:.0%} of the {n} readings"
    match reason:
        case PhaseReason.TREND:
            levels = phase.joined if phase.climbing else phase.raw or phase.medians
            return f"There is no stable phase but a trend: {_movement(levels)}."
        case PhaseReason.STILL_MOVING:
            return (
                "There is no stable phase: the readings are still moving at the end, "
                f"{_movement(phase.recent, count)}."
            )
        case PhaseReason.RANDOM_WALK:
            return (
                f"There is no certain stable phase: {longest} looks like a random walk, the "
                f"effective sample size of its {size} readings is {phase.slow_effective:.2g}."
            )
        case PhaseReason.FEW_EFFECTIVE:
            effective, wanted = (phase.dominant and phase.shortage) or (phase.effective, _WANTED)
            return (
                f"There is no certain stable phase: {longest} holds {size} of the {n} readings "
                f"with an effective sample size of {effective:.1f}, wanted at least {wanted:.3g}."
            )
        case PhaseReason.NOT_STABLE_INSIDE:
            return f"{holds}, but a second search shows that it {_unrest(phase)}."
        case _:
            return f"{holds}, more than half is needed."


def _movement(levels: Sequence[float], count: int | None = None) -> str:
    direction = "rise" if levels[-1] > levels[0] else "fall"
    which = f"{len(levels)}" if count is None else f"the last {len(levels)} of {count}"
    return f"the medians of {which} segments {direction} from {levels[0]:.4g} to {levels[-1]:.4g}"


def _unrest(phase: LongestPhase) -> str:
    if not phase.changes:
        thirds = ", ".join(f"{median:.4g}" for median in phase.thirds)
        return f"moves as a whole, the medians of its thirds are {thirds}"
    shown = ", ".join(str(place) for place in phase.changes[:_MAX_SHOWN])
    more = len(phase.changes) - _MAX_SHOWN
    return f"changes inside, at {shown}" + (f" and {more} more" if more > 0 else "")
