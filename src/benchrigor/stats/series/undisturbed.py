"""Readings during which no delay was measured, chosen so that long ones keep their share.

Readings are told apart by what was measured beside them, never by their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Delays, Disturbed, Floats, Notice
from benchrigor.model.series import Ints
from benchrigor.model.text import many, percent

_MOST_DELAY = 1e-3  # of its duration that an undisturbed group waited: nobody sees it in the mean
# So many readings must be left for an analysis, of few readings half of them.
LEAST_SHARE, _FEWEST = 0.1, 20
_STRATUM = 10  # undisturbed groups of each length: fewer weigh too unequally, more differ in length
_NEGLIGIBLE = 5e-4  # change of the mean that is not worth a correction
_MOST_WEIGHT = 3.0  # of the stratum of the longest, over the average: more is told


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Groups of successive readings, with what each took and waited, arrays of shape (k,)."""

    sizes: Ints
    delay_s: Floats
    duration_s: Floats

    @property
    def n(self) -> int:
        """Number of readings in all groups."""
        return int(self.sizes.sum())

    @property
    def lost(self) -> float:
        """Share of the time that was waited."""
        whole = float(self.duration_s.sum())
        return float(np.minimum(self.delay_s, self.duration_s).sum()) / whole if whole else 0.0

    @property
    def are_hit(self) -> npt.NDArray[np.bool_]:
        """Which groups are disturbed."""
        return self.delay_s > _MOST_DELAY * self.duration_s


def groups_of(delays: Delays | None, seconds: Floats) -> Groups:
    """Return the groups of readings that took so many seconds each.

    Where the delays are not those of these readings, they are one group without delay; a single
    reading is a group, whatever its parts.
    """
    n = seconds.size
    whole_s = seconds.sum(keepdims=True)
    if delays is None or (n > 1 and delays.stops[-1] != n):
        return Groups(sizes=np.array([n]), delay_s=np.zeros(1), duration_s=whole_s)
    sizes, duration_s = np.diff(delays.stops, prepend=0), delays.duration_s
    delay_s: Floats = sum(delays.seconds.values(), start=np.zeros(sizes.size))
    if n > 1:
        if duration_s is None:
            duration_s = np.add.reduceat(seconds, delays.stops - sizes)
        return Groups(sizes=sizes, delay_s=delay_s, duration_s=duration_s)
    return Groups(
        sizes=np.array([1]),
        delay_s=delay_s.sum(keepdims=True),
        duration_s=whole_s if duration_s is None else duration_s.sum(keepdims=True),
    )


def joined(by_round: Sequence[Groups]) -> Groups:
    """Return the groups of successive rounds as one series."""
    return Groups(
        **{
            name: np.concatenate([getattr(each, name) for each in by_round])
            for name in ("sizes", "delay_s", "duration_s")
        }
    )


def undisturbed(groups: Groups) -> tuple[Disturbed | None, tuple[Notice, ...]]:
    """Choose the undisturbed readings of a series; all, with a Notice, where too few are.

    Long groups are hit more often. So groups are sorted into strata by the time that a reading
    needs without its delay, and each undisturbed one stands for as many as its stratum holds for
    each of them (post-stratification; Holt & Smith 1979). Within a stratum weights are linear in
    that time, so that its mean is kept (calibration; Deville & Sarndal 1992). Systematic sampling
    by cumulated weights repeats or drops groups in place: every estimator sees the corrected
    series, and repeated neighbours show as autocorrelation.

    Nothing is assumed of when groups are hit. Weights exp(rate d), of a Poisson process of one
    rate, do not do: of disturbances in bursts they make the mean up to 60 % too high, and 340 %
    where readings have a heavy tail (docs/evidence/undisturbed.py).
    """
    hit = groups.are_hit
    left, n = int(groups.sizes[~hit].sum()), groups.n
    if left == n:
        return None, ()
    if left < max(LEAST_SHARE * n, min(_FEWEST, n / 2)):
        return None, (hardly_any(left, n, groups.lost),)
    weights, longest = _weights(groups)
    counts = np.diff(np.floor(np.cumsum(weights) + 1e-9), prepend=0.0).astype(np.int64)
    chosen = np.repeat(np.flatnonzero(~hit), counts)
    notices: tuple[Notice, ...] = ()
    if longest > _MOST_WEIGHT:
        sentence = (
            f"The longest readings were hardly ever undisturbed: the {_STRATUM} longest that were "
            f"count {longest:.0f} times as much as others. Their share is uncertain, and high "
            "quantiles are too low."
        )
        notices = (Notice.warning(Code.LONGEST_DISTURBED, sentence, weight=longest),)
    stops = np.cumsum(groups.sizes)[chosen]
    starts = stops - groups.sizes[chosen]
    goes_on = starts[1:] == stops[:-1]
    return Disturbed(
        n=n,
        left_out=n - left,
        lost=groups.lost,
        starts=starts[np.append(True, ~goes_on)],
        stops=stops[np.append(~goes_on, True)],
    ), notices


def hardly_any(left: int, n: int, lost: float, noun: str = "reading") -> Notice:
    """Say that all readings count, since so few of them are undisturbed."""
    sentence = (
        f"{left} of {many(n, noun)} {'was' if left == 1 else 'were'} taken without delay, too few "
        f"to go by: all count, with their waiting, {percent(lost)} of the time."
    )
    return Notice.warning(
        Code.HARDLY_UNDISTURBED, sentence, undisturbed=left, taken=n, lost=round(lost, 4)
    )


def together(chosen: Sequence[Disturbed | None], series: Sequence[Groups]) -> Disturbed | None:
    """Tell of several series as one what was left out; None where all readings count."""
    if not any(chosen):
        return None
    before = np.cumsum([0, *(each.n for each in series)])
    whole = [
        each or Disturbed(n=n, left_out=0, lost=0.0, starts=np.array([0]), stops=np.array([n]))
        for each, n in zip(chosen, np.diff(before), strict=True)
    ]
    return Disturbed(
        n=int(before[-1]),
        left_out=sum(each.left_out for each in whole),
        lost=joined(series).lost,
        starts=np.concatenate([n + each.starts for n, each in zip(before, whole, strict=False)]),
        stops=np.concatenate([n + each.stops for n, each in zip(before, whole, strict=False)]),
    )


def _weights(groups: Groups) -> tuple[Floats, float]:
    """Return what each undisturbed group counts, 1 on average, and what the longest one do most."""
    sizes, alone = groups.sizes, ~groups.are_hit
    own = np.maximum(groups.duration_s - groups.delay_s, 0.0) / sizes
    equal, mean = np.ones(int(alone.sum())), float(np.average(own, weights=sizes))
    apart = abs(mean - float(np.average(own[alone], weights=sizes[alone])))
    most = min(apart / max(mean, 1e-300), _most_change(own, alone))
    if equal.size < 2 * _STRATUM or most < _NEGLIGIBLE:
        return equal, 1.0
    lengths = np.sort(own[alone])
    edges = np.unique(lengths[_STRATUM : 1 - _STRATUM : _STRATUM])
    edges = edges[edges > lengths[0]]  # so that none is empty of them
    stratum = np.searchsorted(edges, own, side="right")

    def summed(of: Floats, part: npt.NDArray[np.bool_] | slice) -> Floats:
        return np.bincount(stratum[part], (of * sizes)[part], edges.size + 1).astype(np.float64)

    everything, ones = slice(None), np.ones(own.size)
    number, left = summed(ones, everything), summed(ones, alone)
    level = summed(own, alone) / left
    apart_s = own - level[stratum]
    spread = summed(apart_s**2, alone) / left
    slope = np.divide(
        summed(apart_s, everything) / number, spread, out=np.zeros(left.size), where=spread > 0.0
    )
    tilt = np.maximum(1.0 + slope[stratum] * apart_s, 0.0)
    tilt /= (summed(tilt, alone) / left)[stratum]
    weights = ((number / left)[stratum] * tilt)[alone]
    weights /= weights.mean()
    return weights, float(number[-1] / left[-1] / (number.sum() / left.sum()))


def _most_change(own: Floats, alone: npt.NDArray[np.bool_]) -> float:
    """Return twice by how much hits at one rate change the mean, relative; bursts change it less.

    Readings of equal work so keep what little a hit adds to their own time, by cold caches.
    """
    left = own[alone]
    return float(-2.0 * np.log(alone.mean()) * left.var() / max(own.mean() * left.mean(), 1e-300))
