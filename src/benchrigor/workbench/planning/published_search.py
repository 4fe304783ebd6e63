"""The published search: repeat trials at a load until they accept or reject it as the peak."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from benchrigor.model import Code, Estimate, Notice
from benchrigor.stats.series.interval import StandardError, student_t
from benchrigor.workbench.data import PeakStatus, Trial
from benchrigor.workbench.planning.pickers import PICKERS, Picker
from benchrigor.workbench.planning.steps import Ending, Goal, Policy, Step

_RUN_S, _STRAWMAN_S, _STRAWMAN_TRIALS = 180.0, 300.0, 10
_MANY = 30  # trials whose mean counts as normal, whatever their distribution
_SEARCH_CONFIDENCE = 0.95  # for the rejection of a load, independent of the peak's confidence
_NOT_NORMAL = 0.01  # level of Shapiro and Wilk's test


def find_policy(policy: str) -> Policy:
    """Return one of the published policies by its name."""
    return partial(_strawman if policy == "strawman" else _search, PICKERS[policy])


def _search(
    picker: type[Picker], trials: Sequence[Trial], _pending: Sequence[Step], goal: Goal
) -> Step | Ending:
    """Follow Algorithm 2 through the trials so far, to the next one or the end.

    A load is rejected if the interval of its mean response lies outside of the region around the
    limit; it is the peak if the two overlap and the interval is narrow. All trials at the same load
    are pooled.
    """
    told, seen = _by_load(trials), defaultdict[float, list[float]](list)
    picks, load = picker(goal), goal.within(goal.seed_load)
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


def _strawman(
    picker: type[Picker], trials: Sequence[Trial], _pending: Sequence[Step], goal: Goal
) -> Step | Ending:
    """Run ten long trials at each load in turn; the peak is the last load before one saturates."""
    told = _by_load(trials)
    picks, load, before = picker(goal), goal.within(goal.seed_load), None
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
    estimate = Estimate(
        value=load,
        low=max((other for other in tried if other < load), default=load),
        high=min((other for other in tried if other > load), default=load),
        confidence=goal.confidence,
        n=len(trials),
        n_effective=float(len(trials)),
        method="bracket",
    )
    sentence = (
        "The interval is that between the nearest loads tried: what was published tells how well "
        "the response is known, not the load."
    )
    return Ending(
        status=PeakStatus.FOUND, load=estimate, notices=(Notice.note(Code.BRACKET, sentence),)
    )


def _out_of_range(ratios: Sequence[float]) -> Ending:
    below = float(np.mean(ratios)) < 1.0
    return Ending(status=PeakStatus.NOT_SATURATED if below else PeakStatus.SATURATED_AT_LOWEST)
