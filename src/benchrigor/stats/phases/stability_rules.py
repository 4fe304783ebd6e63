"""The verdict on a phase: may it be measured, and if not, why not.

Every rule is one named statistic against one number. They are tried from the most to the least
telling: a trend is also a series without a dominant segment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Code, Notice, PhaseReason

__all__ = ["Findings", "concordance", "judge", "least_independent", "refusal"]

_UNIT_ROOT = 13.7 / 2
_BOTH = 0.8
_SLOW = 5.0
_TELLING = 30.0
_CONCORDANT = 0.8
_FEWEST_PHASES = 4
_MOST_PHASES = 512
_LONG_TAIL = 0.25
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What speaks for and against the longest phase of a series.

    Parameters
    ----------
    borders
        0, the first index of each later phase, and the length of the series.
    medians
        Of each phase.
    longest
        Which phase is judged.
    inflation
        Long-run over marginal variance, as the change points were found with.
    independent
        How many independent readings the slowest noise leaves of the longest stretch without
        change inside the phase.
    changes
        Material change points inside the phase, found by searching it once more.
    thirds
        Medians of the phase's thirds, where it moves slowly and materially; empty elsewhere.
    raw, joined
        Medians of all segments before any were joined, and of those that were joined into the
        phase.
    materiality
        Relative difference of medians from which on neighbours were not joined.
    """

    borders: tuple[int, ...]
    medians: tuple[float, ...]
    longest: int
    inflation: float
    independent: float
    changes: tuple[int, ...] = ()
    thirds: tuple[float, ...] = ()
    raw: tuple[float, ...] = ()
    joined: tuple[float, ...] = ()
    materiality: float = 0.0

    @property
    def n(self) -> int:
        """Length of the series."""
        return self.borders[-1]

    @property
    def held(self) -> int:
        """How many readings the phase holds."""
        return self.borders[self.longest + 1] - self.borders[self.longest]

    @property
    def effective(self) -> float:
        """What they are worth in independent ones, by the inflation."""
        return self.held / self.inflation

    @property
    def dominant(self) -> bool:
        """Whether the phase holds more than half of the readings."""
        return 2 * self.held > self.n

    @property
    def shortage(self) -> tuple[float, float] | None:
        """Effective readings found and wanted, when they are too few.

        Wanted are 30 by the better of both reckonings, 5 by the inflation alone, and as many
        independent ones as exclude a unit root; less of a short phase, in which neither is known
        well.
        """
        both = max(self.effective, self.independent), min(30.0, self.held / 4)
        one = self.effective, min(5.0, self.held / 20)
        slow = self.independent, self.least
        return next((each for each in (one, both, slow) if each[0] < each[1]), None)

    @property
    def least(self) -> float:
        """Independent readings below which a unit root cannot be excluded."""
        return least_independent(self.held)

    @property
    def walking(self) -> bool:
        """Whether so few are left also by the (geometric) mean of both reckonings."""
        mean = math.sqrt(self.effective * min(self.independent, self.held))
        return self.independent < self.least and mean < _BOTH * self.least

    @property
    def climbing(self) -> bool:
        """Whether segments too alike to part climb or fall materially when taken together."""
        low, high = sorted((abs(self.joined[0]), abs(self.joined[-1]))) if self.joined else (0, 0)
        return _concordant(self.joined) and high - low >= self.materiality * low

    @property
    def murky(self) -> bool:
        """Whether noise so slow leaves too few readings to tell changes from it."""
        return self.inflation >= _SLOW and self.effective < _TELLING

    @property
    def moving(self) -> tuple[float, ...]:
        """Medians from the phase on that holds the middle reading."""
        middle = int(np.searchsorted(self.borders, self.n // 2, side="right")) - 1
        return self.medians[middle:]


def least_independent(held: int) -> float:
    """Return how many independent readings exclude a unit root; fewer of a short phase."""
    return min(_UNIT_ROOT, held / 10)


def judge(found: Findings) -> PhaseReason:
    """Say whether the longest phase may be measured, or why not.

    Notes
    -----
    * Trend, still moving: the medians of at least four phases, all or those from the middle
      reading on, rise or fall with a rank correlation with time of 0.8 or more (Mann 1945,
      Kendall 1938); a trend also the segments that were joined, one by one, into a phase that so
      became dominant, or all of them where the phase looks like a random walk. What moves behind a
      dominant phase counts when it holds a quarter of the readings: less is a cool-down.
    * Random walk: the slowest noise inside the phase leaves fewer than 6.85 independent readings,
      and the geometric mean of that and of `Findings.effective` lies clearly below. For AR(1)
      these are n (1 - phi)/2 or so, and the coefficient test of Dickey & Fuller (1979) does not
      reject a unit root at the 5 % level unless n (1 - phi) exceeds 13.7 (n = 100).
    * Too few effective readings: see `Findings.shortage`. It is also what is said where the two
      do not agree on a random walk, and where nothing dominates and slow noise (inflation 5 or
      more) leaves fewer than 30 effective readings of the longest phase: those do not tell
      changes from noise.
    * Not stable inside: a second search, with the phase's own quantiles and inflation, found
      changes that are material, or the phase drifts or bends as a whole.
    """
    if not found.dominant:
        rules = {
            PhaseReason.TREND: _concordant(found.medians) or _concordant(found.raw),
            PhaseReason.RANDOM_WALK: found.walking,
            PhaseReason.STILL_MOVING: _concordant(found.moving),
            PhaseReason.FEW_EFFECTIVE: found.murky,
            PhaseReason.NO_DOMINANT_SEGMENT: True,
        }
    else:
        behind = found.n - found.borders[found.longest + 1]
        rules = {
            PhaseReason.TREND: found.climbing or (found.walking and _concordant(found.raw)),
            PhaseReason.NOT_STABLE_INSIDE: bool(found.changes or found.thirds),
            PhaseReason.RANDOM_WALK: found.walking,
            PhaseReason.FEW_EFFECTIVE: found.shortage is not None,
            PhaseReason.STILL_MOVING: (behind > _LONG_TAIL * found.n and _concordant(found.moving)),
            PhaseReason.STABLE: True,
        }
    return next(reason for reason, holds in rules.items() if holds)


def _concordant(medians: Sequence[float]) -> bool:
    return len(medians) >= _FEWEST_PHASES and abs(concordance(medians)) >= _CONCORDANT


def concordance(levels: Sequence[float]) -> float:
    """Return Kendall's rank correlation of levels with their order, from -1 to 1.

    Parameters
    ----------
    levels
        At least two; of more than 512 an evenly spaced part is used.
    """
    chosen = np.asarray(levels)[:: -(-len(levels) // _MOST_PHASES)]
    signs = np.sign(chosen[np.newaxis, :] - chosen[:, np.newaxis])
    return float(np.triu(signs).sum()) / (chosen.size * (chosen.size - 1) / 2)


def refusal(reason: PhaseReason, found: Findings) -> Notice:
    """Return the Notice that says with figures why there is no stable phase."""
    return Notice.refusal(
        Code.NO_STABLE_PHASE,
        _sentence(reason, found),
        reason=str(reason),
        n=found.n,
        segments=len(found.medians),
        longest=found.held,
        share=found.held / found.n,
        inflation=found.inflation,
        independent=None if math.isinf(found.independent) else found.independent,
        changes_inside=len(found.changes),
    )


def _sentence(reason: PhaseReason, found: Findings) -> str:
    n, held, count = found.n, found.held, len(found.medians)
    longest = f"the longest of {count} segments" if count > 1 else "the only segment"
    holds = f"There is no stable phase: {longest} holds {held / n:.0%} of the {n} readings"
    levels = found.joined if found.climbing else found.raw or found.medians
    direction = "rise" if levels[-1] > levels[0] else "fall"
    match reason:
        case PhaseReason.TREND:
            return (
                f"Trend, no stable phase: the medians of {len(levels)} segments {direction} from "
                f"{levels[0]:.4g} to {levels[-1]:.4g}."
            )
        case PhaseReason.STILL_MOVING:
            moves = "rise" if found.moving[-1] > found.moving[0] else "fall"
            return (
                "There is no stable phase: the readings are still moving at the end, the medians "
                f"of the last {len(found.moving)} of {count} segments {moves} from "
                f"{found.moving[0]:.4g} to {found.moving[-1]:.4g}."
            )
        case PhaseReason.RANDOM_WALK:
            return (
                f"No stable phase can be claimed: {longest} wanders like a random walk, its {held} "
                f"readings are worth {found.independent:.2g} independent ones."
            )
        case PhaseReason.FEW_EFFECTIVE:
            worth, wanted = (found.dominant and found.shortage) or (found.effective, _TELLING)
            return (
                f"No stable phase can be claimed: {longest} holds {held} of the {n} readings, "
                f"worth {worth:.1f} independent ones, at least {wanted:.3g} are needed."
            )
        case PhaseReason.NOT_STABLE_INSIDE:
            return f"{holds}, but searched once more it {_unrest(found)}."
        case _:
            return f"{holds}, more than half are needed."


def _unrest(found: Findings) -> str:
    if not found.changes:
        thirds = ", ".join(f"{median:.4g}" for median in found.thirds)
        return f"moves as a whole, the medians of its thirds are {thirds}"
    shown = ", ".join(str(place) for place in found.changes[:_MOST_SHOWN])
    more = len(found.changes) - _MOST_SHOWN
    return f"changes inside, at {shown}" + (f" and {more} more" if more > 0 else "")
