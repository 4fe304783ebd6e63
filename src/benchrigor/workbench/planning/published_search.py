"""The published search: repeat trials at a load until they accept or reject it as the peak.

Also how many trials of which length the mean at one load takes (`plan_runlength`).

The published policies are its `PICKERS`: they pick the next load by the saturation of the last one.

Shivam, Marupadi, Chase, Subramaniam and Babu, "Cutting Corners: Workbench Automation for Server
Benchmarking" (USENIX ATC 2008), section 4.2.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Notice
from benchrigor.model.checks import refuse, wrong_number, wrong_share
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import as_series
from benchrigor.stats.series.interval import StandardError, student_t
from benchrigor.units import many
from benchrigor.workbench.data import PeakStatus, Trial, estimate_of
from benchrigor.workbench.planning.steps import Ending, Policy, SearchGoal, Step

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
        goal: SearchGoal,
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


PICKERS: dict[str, Callable[[SearchGoal], Picker]] = {
    "strawman": partial(Picker, increment=INCREMENT),  # its search ends when a load saturates
    "linear": partial(Picker, increment=INCREMENT),
    "binsearch": Picker,
    "model": partial(Picker, predict=_by_line, points=2),
    "quadratic": partial(Picker, predict=_by_parabola, points=3),
}


_RUN_S, _STRAWMAN_S, _STRAWMAN_TRIALS = 180.0, 300.0, 10
_MANY = 30  # trials with a mean that counts as normal, whatever their distribution
_SEARCH_CONFIDENCE = 0.95  # for the rejection of a load, independent of the peak's confidence
_NOT_NORMAL = 0.01  # level of Shapiro and Wilk's test


def published_policy(policy: str) -> Policy:
    """Return one of the published policies by its name."""
    follow, picker = _strawman if policy == "strawman" else _search, PICKERS[policy]
    return lambda trials, _pending, goal: follow(picker(goal), trials, goal)


def _search(picks: Picker, trials: Sequence[Trial], goal: SearchGoal) -> Step | Ending:
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


def _strawman(picks: Picker, trials: Sequence[Trial], goal: SearchGoal) -> Step | Ending:
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


def _report_peak(load: float, trials: Sequence[Trial], goal: SearchGoal) -> Ending:
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


_MOST_TRIALS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLength(OneLine):
    """Trials of one length: their required number and cost.

    Parameters
    ----------
    duration_s
        Of one trial, in seconds.
    variation
        Standard deviation of its mean over the mean.
    trials
        The number that reaches the target accuracy, two or more; None if 10,000 are not enough.
    cost_s
        Seconds of all of them, with set-up; None if ``trials`` is.
    """

    duration_s: float
    variation: float
    trials: int | None
    cost_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLengthPlan(Reported):
    """The costs of run lengths; ``print(plan)`` shows a row per length.

    Parameters
    ----------
    lengths
        By duration, ascending.
    best
        The cheapest of them; None if all miss the accuracy.
    """

    _facts = "benchrigor.workbench.report:facts_of_run_lengths"

    lengths: tuple[RunLength, ...]
    best: RunLength | None

    def _line(self) -> str:
        return f"{many(len(self.lengths), 'length')}, the cheapest: {self.best}"


def plan_runlength(
    pilots: Mapping[float, npt.ArrayLike],
    accuracy: float,
    confidence: float = 0.95,
    *,
    setup_s: float = 0.0,
) -> RunLengthPlan:
    """Return the required number of trials by length, and the cheapest length.

    The interval of a mean over t trials is Student's t with t - 1 degrees of freedom. The standard
    deviation between trials is estimated from the pilots, and rough if they are few: with five it
    is known within a factor of two or so.

    Parameters
    ----------
    pilots
        By duration in seconds, two or more means of trials of that length at one load.
    accuracy
        Target relative half-width: .10 for the published accuracy of 90 %.
    confidence
        Of that interval.
    setup_s
        Seconds that a trial costs in addition to its duration.

    Returns
    -------
    RunLengthPlan

    Raises
    ------
    InvalidInput
        When an argument is out of range, or a length has less than two trials.

    Notes
    -----
    Shivam et al. (USENIX ATC 2008), section 3.3 and Figure 6.

    Examples
    --------
    >>> plan = plan_runlength({90: [35, 42, 38, 44], 300: [39, 40.5, 41, 39.5]}, 0.1, setup_s=20)
    >>> print(plan)
    seconds  variation  trials      cost
         90      10.1%       7  12.8 min  cheapest
        300       2.3%       3    16 min
    """
    found = [
        (duration_s, as_series(means, name=f"pilots[{duration_s!r}]"))
        for duration_s, means in pilots.items()
    ]
    refuse(
        [] if found else ["pilots is empty, expected means of trials by their duration"],
        wrong_share("accuracy", accuracy),
        wrong_share("confidence", confidence),
        wrong_number("setup_s", setup_s, zero=True),
        *(wrong_number("a duration", seconds) for seconds, _ in found),
        (
            f"pilots[{seconds!r}] holds {means.size} trial, expected two at least"
            for seconds, means in found
            if means.size < 2
        ),
        (
            f"pilots[{seconds!r}] has a mean of {means.mean():g}, expected one above 0"
            for seconds, means in found
            if not means.mean() > 0.0
        ),
    )
    lengths = []
    for duration_s, means in sorted(found):
        variation = float(means.std(ddof=1) / means.mean())
        # The normal quantile is the least of all, so it gives a lower bound of the number.
        wide = variation / accuracy
        least = math.floor((student_t(math.inf, confidence) * wide) ** 2)
        numbers = range(max(2, least), _MOST_TRIALS + 1)
        trials = next(
            (t for t in numbers if student_t(t - 1.0, confidence) * wide <= math.sqrt(t)), None
        )
        cost_s = None if trials is None else trials * (duration_s + setup_s)
        lengths.append(
            RunLength(duration_s=duration_s, variation=variation, trials=trials, cost_s=cost_s)
        )
    known = [length for length in lengths if length.cost_s is not None]
    best = min(known, key=lambda length: length.cost_s or 0.0, default=None)
    return RunLengthPlan(lengths=tuple(lengths), best=best)
