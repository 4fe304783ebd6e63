"""The published search: repeat trials at a load until they accept or reject it as the peak.

The published policies are its `PICKERS`: they pick the next load by the saturation of the last one.

Shivam, Marupadi, Chase, Subramaniam and Babu, "Cutting Corners: Workbench Automation for Server
Benchmarking" (USENIX ATC 2008), section 4.2.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from benchrigor.model import Code, Notice
from benchrigor.stats.series.interval import StandardError, student_t
from benchrigor.workbench.data import PeakStatus, Trial, estimate_of
from benchrigor.workbench.planning.steps import Ending, Goal, Policy, Step

INCREMENT = 20.0  # "small, fixed" in the paper, which does not give it
_COLLAPSED = 0.004  # of a load: such a narrow bracket has a wrong end, and no peak inside
_REOPENED = 0.1
_LEAST_RATIO, _REAL = 1e-9, 1e-9


class Picker:
    """Raises the load until it saturates, and then halves the interval (Algorithm 3).

    Parameters
    ----------
    goal
        The least and greatest load.
    increment
        From load to load while none was saturated; 0 to double it.
    predict, points
        A model through a number of loads, see `_by_line` and `_by_parabola`; None without one. They
        are the last load, and the other ones with the responses nearest to the limit. If the model
        has no solution, or one below half the least or above twice the greatest load so far, it
        does not count (Algorithm 4).
    """

    def __init__(
        self,
        goal: Goal,
        *,
        increment: float = 0.0,
        predict: Callable[[list[float], list[float]], float | None] | None = None,
        points: int = 0,
    ) -> None:
        self._goal, self._increment = goal, increment
        self._predict, self._points = predict, points
        self._tried: dict[float, float] = {}
        self._low, self._high = 0.0, math.inf  # judged unsaturated, and saturated

    def next(self, load: float, ratio: float) -> float | None:
        """Return the next load; None if none is left between the least and the greatest.

        ``ratio`` is the mean response at the last one, over its limit.
        """
        goal = self._goal
        if ratio < 1.0:
            if load == goal.max_load:
                return None
            self._low = max(self._low, load)
        else:
            if load <= goal.min_load:
                return None
            self._high = min(self._high, load)
        predicted = self._by_model(load, ratio)
        return goal.within(self._by_interval(load, ratio) if predicted is None else predicted)

    def _by_interval(self, load: float, ratio: float) -> float:
        if math.isinf(self._high):
            return load + (self._increment or load)
        if self._high - self._low < _COLLAPSED * self._high:  # trust the last result
            if ratio < 1.0:
                self._high = load * (1.0 + _REOPENED)
            else:
                self._low = load * (1.0 - _REOPENED)
        return (self._low + self._high) / 2.0

    def _by_model(self, load: float, ratio: float) -> float | None:
        self._tried[load] = max(ratio, _LEAST_RATIO)
        others = sorted(self._tried.keys() - {load}, key=lambda load: abs(self._tried[load] - 1.0))
        near = [load, *others[: self._points - 1]]
        if self._predict is None or len(near) < self._points or math.isinf(ratio):
            return None
        predicted = self._predict(near, [self._tried[load] for load in near])
        least, greatest = min(self._tried) / 2.0, max(self._tried) * 2.0
        return predicted if predicted is not None and least <= predicted <= greatest else None


def _by_line(loads: list[float], ratios: list[float]) -> float | None:
    """Return the load at the limit by 1/R = A - B load through two loads."""
    (one, two), (inverse, other_inverse) = loads, [1.0 / ratio for ratio in ratios]
    slope = (other_inverse - inverse) / (one - two)
    return one + (inverse - 1.0) / slope if slope > 0.0 else None


def _by_parabola(loads: list[float], ratios: list[float]) -> float | None:
    """Return it by R = a + b load + c load^2 through three loads; the other model of the paper."""
    if not all(map(math.isfinite, ratios)):
        return None
    last = loads[0]  # the origin, so that three close loads stay distinct
    parabola = np.poly1d(np.polyfit([load - last for load in loads], ratios, 2))
    roots = (parabola - 1.0).roots
    real = [float(root.real) for root in roots if abs(root.imag) < _REAL * abs(last + root)]
    return last + min(real, key=abs) if real else None


PICKERS: dict[str, Callable[[Goal], Picker]] = {
    "strawman": partial(Picker, increment=INCREMENT),  # its search ends when a load saturates
    "linear": partial(Picker, increment=INCREMENT),
    "binsearch": Picker,
    "model": partial(Picker, predict=_by_line, points=2),
    "quadratic": partial(Picker, predict=_by_parabola, points=3),
}


_RUN_S, _STRAWMAN_S, _STRAWMAN_TRIALS = 180.0, 300.0, 10
_MANY = 30  # trials whose mean counts as normal, whatever their distribution
_SEARCH_CONFIDENCE = 0.95  # for the rejection of a load, independent of the peak's confidence
_NOT_NORMAL = 0.01  # level of Shapiro and Wilk's test


def published_policy(policy: str) -> Policy:
    """Return one of the published policies by its name."""
    follow, picker = _strawman if policy == "strawman" else _search, PICKERS[policy]
    return lambda trials, _pending, goal: follow(picker(goal), trials, goal)


def _search(picks: Picker, trials: Sequence[Trial], goal: Goal) -> Step | Ending:
    """Follow Algorithm 2 through the trials so far, to the next one or the end.

    A load is rejected if the interval of its mean response lies outside of the region around the
    limit; it is the peak if the two overlap and the interval is narrow. All trials at the same load
    are pooled.
    """
    told, seen = _by_load(trials), defaultdict[float, list[float]](list)
    load = goal.within(goal.seed_load)
    while told[load]:
        seen[load].append(told[load].popleft())
        ratios = tuple(seen[load])
        if math.isfinite(ratios[-1]):
            if len(ratios) < 2 or not _looks_normal(ratios):
                continue
            mean, error = _mean_of(ratios)
            reach = student_t(error.degrees_of_freedom, _SEARCH_CONFIDENCE) * error.value
            if mean - reach <= 1.0 + goal.width and mean + reach >= 1.0 - goal.width:
                reach = student_t(error.degrees_of_freedom, goal.confidence) * error.value
                if reach <= goal.accuracy * mean:
                    return _report_peak(load, trials, goal)
                continue
        chosen = picks.next(load, float(np.mean(ratios)))
        if chosen is None:
            return _out_of_range(ratios)
        load = chosen
    return Step(load=load, duration_s=_RUN_S, reason="verdict" if seen[load] else "probe")


def _strawman(picks: Picker, trials: Sequence[Trial], goal: Goal) -> Step | Ending:
    """Run ten long trials at each load in turn; the peak is the last load before one saturates."""
    told = _by_load(trials)
    load, before = goal.within(goal.seed_load), None
    while len(told[load]) >= _STRAWMAN_TRIALS:
        ratio = float(np.mean(told[load]))
        if ratio >= 1.0 and before is not None:
            return _report_peak(before, trials, goal)
        chosen = picks.next(load, ratio) if ratio < 1.0 else None
        if chosen is None:
            return _out_of_range([ratio])
        before, load = load, chosen
    return Step(load=load, duration_s=_STRAWMAN_S, reason="verdict" if told[load] else "probe")


def _by_load(trials: Sequence[Trial]) -> defaultdict[float, deque[float]]:
    told = defaultdict[float, deque[float]](deque)
    for trial in trials:
        if trial.ratio is not None:
            told[trial.asked.load].append(trial.ratio)
    return told


@lru_cache(maxsize=4096)  # a search evaluates the same trials many times
def _mean_of(ratios: tuple[float, ...]) -> tuple[float, StandardError]:
    """Return the mean of trials that ended: normal for many, else of Student's t."""
    finite = np.array([ratio for ratio in ratios if math.isfinite(ratio)])
    freedom = finite.size - 1.0 if finite.size <= _MANY else math.inf
    error = float(finite.std(ddof=1)) / math.sqrt(finite.size)
    return float(finite.mean()), StandardError(error, freedom)


@lru_cache(maxsize=4096)
def _looks_normal(ratios: tuple[float, ...]) -> bool:
    """Return whether the trials, if few, may count as normal."""
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    if not 3 <= len(finite) <= _MANY or max(finite) == min(finite):
        return len(finite) >= 2
    from scipy.stats import shapiro  # noqa: PLC0415  # takes long to load

    return bool(shapiro(finite).pvalue >= _NOT_NORMAL)


def _report_peak(load: float, trials: Sequence[Trial], goal: Goal) -> Ending:
    """Return the peak within the nearest loads on either side; the policies have no interval.

    The results of trials at these loads do not matter: near the peak they are luck.
    """
    tried = {trial.asked.load for trial in trials}
    low = max((other for other in tried if other < load), default=load)
    high = min((other for other in tried if other > load), default=load)
    how: Any = {"confidence": goal.confidence, "n": len(trials), "method": "bracket"}
    estimate = estimate_of(load, low, high, **how)
    return Ending(
        status=PeakStatus.FOUND, load=estimate, notices=(Notice.of(Code.BRACKET, "published"),)
    )


def _out_of_range(ratios: Sequence[float]) -> Ending:
    below = float(np.mean(ratios)) < 1.0
    return Ending(status=PeakStatus.NOT_SATURATED if below else PeakStatus.SATURATED_AT_LOWEST)
