"""Readings during which no delay was measured, chosen so that long ones keep their share.

Readings are separated by measured delays, never by their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Delays, Disturbed, Notice
from benchrigor.model.series import Floats, Ints

_MOST_DELAY = 1e-3  # of its duration that an undisturbed group waited: nobody sees it in the mean
# Readings that must be left for an analysis, of few readings half of them, and two for a number.
LEAST_SHARE, _FEWEST, _NUMBER = 0.1, 20, 2
_STRATUM = 10  # undisturbed groups of each length: fewer weigh too unequally, more differ in length
_NEGLIGIBLE = 5e-4  # change of the mean that is not worth a correction
_MOST_WEIGHT = 3.0  # of the stratum of the longest, over the average: more is reported
STOPPED = "stopped"  # a source of delay: the process stood still, by a signal or with its machine
# Of a group that neither worked nor waited for a processor: seconds, and times as long as any other
# but a few, from which on it was stopped; the share of time that work which never blocks so has.
_LEAST_STOP_S, _ISOLATED, _NEVER_BLOCKS = 0.2, 10.0, 0.1
_MOST_STOPS, _GROUPS_PER_STOP = 3, 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Groups of successive readings, with what each took and waited, arrays of shape (k,).

    ``rest_s`` is neither delay nor processor time, ``stopped_s`` the part of the delay for
    which the process was stopped; None if that is not known.
    """

    sizes: Ints
    delay_s: Floats
    duration_s: Floats
    rest_s: Any = None
    stopped_s: Any = None

    def __post_init__(self) -> None:
        for name in ("rest_s", "stopped_s"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros(self.sizes.size))

    def with_stops(self) -> Groups:
        """Return them with stopped time as delay, by `stops_in`."""
        stopped_s = stops_in(self.rest_s, self.duration_s)
        if not stopped_s.any():
            return self
        return Groups(
            sizes=self.sizes,
            delay_s=self.delay_s + stopped_s,
            duration_s=self.duration_s,
            rest_s=self.rest_s - stopped_s,
            stopped_s=self.stopped_s + stopped_s,
        )

    def only(self, those: npt.NDArray[np.bool_]) -> Groups:
        """Return some of them."""
        return Groups(**{field.name: getattr(self, field.name)[those] for field in fields(self)})

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
    def stopped(self) -> float:
        """Share of the time during which the process was stopped."""
        whole = float(self.duration_s.sum())
        return float(self.stopped_s.sum()) / whole if whole else 0.0

    @property
    def are_hit(self) -> npt.NDArray[np.bool_]:
        """Which groups are disturbed."""
        return self.delay_s > _MOST_DELAY * self.duration_s


def groups_of(delays: Delays | None, seconds: Floats) -> Groups:
    """Return the groups of readings that took that many seconds each.

    If the delays are not those of these readings, they are one group without delay; a single
    reading is a group, regardless of its parts.
    """
    n = seconds.size
    whole_s = seconds.sum(keepdims=True)
    if delays is None or (n > 1 and delays.stops[-1] != n):
        return Groups(sizes=np.array([n]), delay_s=np.zeros(1), duration_s=whole_s)
    sizes, duration_s = np.diff(delays.stops, prepend=0), delays.duration_s
    if duration_s is None:
        duration_s = np.add.reduceat(seconds, delays.stops - sizes) if n > 1 else whole_s
    columns = {
        "delay_s": total_delay(delays),
        "duration_s": duration_s,
        "rest_s": rest_of(delays, duration_s),
        "stopped_s": delays.seconds.get(STOPPED, np.zeros(sizes.size)),
    }
    if n == 1:
        sizes = np.array([1])
        columns = {name: column.sum(keepdims=True) for name, column in columns.items()}
    return Groups(sizes=sizes, **columns)


def total_delay(delays: Delays) -> Floats:
    """Return the measured delay of each group, from all sources."""
    delay_s: Floats = sum(delays.seconds.values(), start=np.zeros(delays.stops.size))
    return delay_s


def rest_of(delays: Delays, duration_s: Floats) -> Floats:
    """Return the time of each group that is neither delay nor work; 0 if not known."""
    if delays.busy is None or delays.busy.size != duration_s.size:
        return np.zeros(duration_s.size)
    own = 0.0 if delays.own is None else delays.own
    rest_s: Floats = np.maximum(duration_s - delays.busy - total_delay(delays) - own, 0.0)
    return rest_s


def stops_in(rest_s: Floats, duration_s: Floats) -> Floats:
    """Return for how long the process stood still in each group: 0 in nearly all.

    Work that never blocks has no time in which it neither works nor waits for a processor. If few
    groups have such a gap, each at least 0.2 s and ten times as long as the gap of any other, the
    process was stopped. Work that sleeps or waits for data has gaps of its own, in most groups or
    again and again, and is never taken for stopped. Nor is the first group, which may have waited
    for what others find in memory.
    """
    stopped_s, n = np.zeros(rest_s.size), rest_s.size - 1
    most = min(_MOST_STOPS, n // _GROUPS_PER_STOP)
    if most < 1 or rest_s[1:].max() < _LEAST_STOP_S:
        return stopped_s
    order = 1 + np.argsort(rest_s[1:])[::-1]
    for count in range(1, most + 1):
        gaps, others = order[:count], order[count:]
        isolated_s = max(_LEAST_STOP_S, _ISOLATED * float(rest_s[others].max()))
        blocked = float(rest_s[others].sum()) / max(float(duration_s[others].sum()), 1e-300)
        if rest_s[gaps].min() >= isolated_s and blocked <= _NEVER_BLOCKS:
            stopped_s[gaps] = rest_s[gaps] - np.median(rest_s[others])
            return stopped_s
    return stopped_s


def join_groups(by_round: Sequence[Groups]) -> Groups:
    """Return the groups of successive rounds as one series."""
    return Groups(
        **{
            field.name: np.concatenate([getattr(groups, field.name) for groups in by_round])
            for field in fields(Groups)
        }
    )


def choose_undisturbed(groups: Groups) -> tuple[Disturbed | None, tuple[Notice, ...]]:
    """Choose the undisturbed readings of a series; all, with a Notice, where too few are.

    Long groups are hit more often. So groups are sorted into strata by the time that a reading
    needs without its delay, and each undisturbed one stands for as many as its stratum holds for
    each of them (post-stratification; Holt & Smith 1979). Within a stratum weights are linear in
    that time, so that its mean is kept (calibration; Deville & Sarndal 1992). Systematic sampling
    by cumulated weights repeats or drops groups in place: every estimator sees the corrected
    series, and repeated neighbours show as autocorrelation.

    Nothing is assumed of when groups are hit. Weights exp(rate d), of a Poisson process of one
    rate, do not do: of disturbances in bursts they make the mean up to 60 % too high, and 340 %
    where readings have a heavy tail (docs/evidence/intervals.py).
    """
    groups = groups.with_stops()
    hit, stopped = groups.are_hit, groups.stopped_s > 0.0
    left, n = int(groups.sizes[~hit].sum()), groups.n
    others = groups.only(~stopped)
    running = others.n
    if left == n:
        return None, ()
    if left < max(LEAST_SHARE * running, min(_FEWEST, running / 2), _NUMBER):
        notice = hardly_any(left, running or n, (others if running else groups).lost)
        if running in (0, n):
            return None, (notice,)
        return _chosen(groups, np.flatnonzero(~stopped), running), (notice,)
    weights, longest = _weights(groups)
    counts = np.diff(np.floor(np.cumsum(weights) + 1e-9), prepend=0.0).astype(np.int64)
    notices: tuple[Notice, ...] = ()
    if longest > _MOST_WEIGHT:
        notices = (Notice.of(Code.LONGEST_DISTURBED, stratum_=_STRATUM, weight=longest),)
    return _chosen(groups, np.repeat(np.flatnonzero(~hit), counts), left), notices


def _chosen(groups: Groups, chosen: Ints, left: int) -> Disturbed:
    """Return the spans of the ``left`` readings that count, some of them more than once."""
    stops = np.cumsum(groups.sizes)[chosen]
    starts = stops - groups.sizes[chosen]
    goes_on = starts[1:] == stops[:-1]
    return Disturbed(
        n=groups.n,
        left_out=groups.n - left,
        lost=groups.lost,
        stopped=groups.stopped,
        starts=starts[np.append(True, ~goes_on)],
        stops=stops[np.append(~goes_on, True)],
    )


def hardly_any(left: int, n: int, lost: float, noun: str = "reading") -> Notice:
    """Say that all readings count, since too few of them are undisturbed."""
    figures = {"undisturbed": left, "taken": n, "lost": round(lost, 4)}
    return Notice.of(Code.HARDLY_UNDISTURBED, noun_=noun, lost_=lost, **figures)


def hardly_any_of(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Say once of several series what `hardly_any` says of each."""
    others, same = list[Notice](), list[Notice]()
    for notice in notices:
        (same if notice.code is Code.HARDLY_UNDISTURBED else others).append(notice)
    if len(same) < 2:
        return (*others, *same)
    left, taken, lost = (
        np.array([float(notice.evidence[name]) for notice in same])  # type: ignore[arg-type]
        for name in ("undisturbed", "taken", "lost")
    )
    whole = float(np.average(lost, weights=taken))
    return (*others, hardly_any(int(left.sum()), int(taken.sum()), whole))


def together(chosen: Sequence[Disturbed | None], series: Sequence[Groups]) -> Disturbed | None:
    """Report the readings left out of several series as one; None if all readings count."""
    if not any(chosen):
        return None
    before, whole_series = (
        np.cumsum([0, *(one_series.n for one_series in series)]),
        join_groups(series),
    )
    whole = [
        some or Disturbed(n=n, left_out=0, lost=0.0, starts=np.array([0]), stops=np.array([n]))
        for some, n in zip(chosen, np.diff(before), strict=True)
    ]
    return Disturbed(
        n=int(before[-1]),
        left_out=sum(one_series.left_out for one_series in whole),
        lost=whole_series.lost,
        stopped=whole_series.stopped,
        starts=np.concatenate([n + each.starts for n, each in zip(before, whole, strict=False)]),
        stops=np.concatenate([n + each.stops for n, each in zip(before, whole, strict=False)]),
    )


def _weights(groups: Groups) -> tuple[Floats, float]:
    """Return the weights of undisturbed groups, 1 on average, and the greatest of the longest."""
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
    # Above 0, since of times that are equal but for rounding all may be tilted to less.
    tilt = np.maximum(1.0 + slope[stratum] * apart_s, 1e-300)
    weights = tilt[alone] * (number / summed(tilt, alone))[stratum[alone]]
    weights /= weights.mean()
    return weights, float(number[-1] / left[-1] / (number.sum() / left.sum()))


def _most_change(own: Floats, alone: npt.NDArray[np.bool_]) -> float:
    """Return twice by how much hits at one rate change the mean, relative; bursts change it less.

    Readings of equal work so keep what little a hit adds to their own time, by cold caches.
    """
    left = own[alone]
    return float(-2.0 * np.log(alone.mean()) * left.var() / max(own.mean() * left.mean(), 1e-300))
