"""The default policy: short trials at likely peaks, until the peak is known.

Where trials follow no curve that is known, the peak is bracketed between two confirmed loads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import student_t
from benchrigor.workbench.data import LoadTrial, PeakStatus, Trial, estimate_of
from benchrigor.workbench.planning import peaks
from benchrigor.workbench.planning.peaks import PeakPosterior
from benchrigor.workbench.planning.steps import Ending, SearchGoal, Step

_STRIDE = 4.0  # from load to load, until one saturates
_MOST_AHEAD, _SPREAD = 3, 0.618  # strides at once; multiples of the golden ratio are spread evenly
_STRIDE_UP = 3.0  # above a server that is slow with little to do: smaller than the gap of a hump
_PROBES_UP = 4  # such strides
_LONGEST, _LONGEST_ROUGH = 10.0, 3.0  # times the shortest trial
_ROUGHLY = 0.3  # half-width of the log of the peak, above which trials are short
_PLACES = (0.5, 0.3, 0.7)  # quantiles of the peak, in turn: also a little below and above
_FEWEST = 5  # trials
_WITHOUT_END = 1e12  # a load beyond which nothing saturates
_LEAST_RANGE = 1.001  # of possible peaks, if the least load is also the greatest

# If a load well above kept the limits, a saturated trial does not count for the peak: it was a
# stall, a server that is slow when nearly idle, or a server with good and bad times.
_WELL_ABOVE, _CLEARLY = 1.1, 0.2
_CLEARLY_FAR = 1.6  # log of response over limit, more than in any hump of an idle server
_BEHIND = (2.0, 4.0)  # times the least saturated load, to try if none was far above yet
_BAD_SHARE, _FEW_BAD = 0.15, 2  # of the trials near the peak, and more than this number
_NEAR = 0.7  # of the log of the load
_SETTLED = 0.25  # relative standard error, by its own readings, of a trial of sufficient length
_AT_LIMIT, _CONFIRMED = 0.7, 3  # of the log of response over limit; trials above an abrupt peak
_CONFIRM = "whether it is saturated just above, too"
_SURPRISING, _DRIFTING = 4.0, 3.5  # standard deviations of a trial; standard errors of a drift


# Standard deviations from the limit that show the side of a server: of trials at one load, of those
# next to a bound; then those that only suggest it. Fewest, many and most trials at a bound.
_SHOWN, _SHOWN_THERE, _SHOWN_AT_LAST, _SUGGESTED, _HINTED = 3.0, 2.5, 1.5, 1.0, 0.5
_FEWEST_THERE, _MANY_THERE, _MOST_THERE = 2, 5, 10
_HALF = 0.5
_FAR_AWAY = 1.2  # log of response over limit at which one trial is enough
_TRUST = 2.0  # in the expected noise, in trials
_CLIPPED = 3.5  # log of response over limit, of one trial
_TOGETHER = 3.0  # requests over a limit that count as one: they wait for the same one

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """The trials that count, as arrays, in the order of their results."""

    load: Floats
    ratio: Floats
    duration_s: Floats
    error: Floats
    tail: Floats
    half: Floats
    over: Floats  # NaN if unknown

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> _Tried:
        ratio = np.array([trial.ratio for trial in trials], dtype=np.float64)
        half = np.array([trial.half_request for trial in trials])
        return cls(
            np.array([trial.asked.load for trial in trials]),
            (ratio + half) / (1.0 + half),
            np.array([trial.asked.duration_s for trial in trials]),
            np.array([trial.error for trial in trials]),
            np.array([trial.tail for trial in trials]),
            half,
            np.array([math.nan if trial.over is None else trial.over for trial in trials]),
        )

    @property
    def log_ratio(self) -> Floats:
        return np.log(np.maximum(self.ratio, 1e-9))

    @property
    def contradicted(self) -> Flags:
        """Which trials were saturated although a load well above them kept the limits."""
        kept = self.load[self.log_ratio < -_CLEARLY]
        top = float(kept.max(initial=0.0))
        found: Flags = (self.log_ratio > _CLEARLY) & (self.load * _WELL_ABOVE < top)
        return found

    def only(self, those: Flags) -> _Tried:
        return _Tried(*(column[those] for column in astuple(self)))


def adaptive(
    trials: Sequence[Trial], pending: Sequence[LoadTrial], goal: SearchGoal
) -> Step | Ending:
    """Bracket the peak by short trials, then run trials near its likely place.

    The distribution of the peak (`workbench.planning.peaks`) determines both: the next load is
    its median, or a little to either side; the duration is enough to reach the target width,
    limited to ten times the shortest. The search ends when the interval is narrow, a trial far
    above the peak was saturated too, and the trials agree with each other. If they agree with each
    other but not with the curve, the peak is bracketed without a curve.
    """
    tried = _Tried.of(trials)
    shortest = goal.shortest_s
    if not trials:
        seed_load = goal.seed_load * _STRIDE ** _ahead(len(pending))
        return Step(goal.within(seed_load), shortest, "first probe", is_rough=True)
    bad = tried.contradicted
    counted = tried.only(~bad)
    load = _bracket(counted, tried, goal, _ahead(1 + len(pending)))
    if isinstance(load, Ending):
        return load
    if load is not None:
        return Step(load, shortest, "to bracket the peak", is_rough=True)
    found = _posterior(counted, goal)
    if (step := _outside(tried, counted, found.noise, goal)) is not None:
        return step
    notices = tuple(_disagreements(found, tried, bad))
    estimate = _estimate(found, goal)
    half = math.log(found.quantile(_upper(goal)) / found.quantile(1.0 - _upper(goal))) / 2.0
    is_narrow = half <= math.log1p(goal.accuracy) or estimate.half_width == 0.0
    is_narrow &= len(trials) + len(pending) >= _FEWEST
    if notices and bad.sum() <= _FEW_BAD:
        # Trials do not contradict each other, but deviate from the curve: do not use it.
        fitting = [trial for trial, is_bad in zip(trials, bad, strict=True) if not is_bad]
        return halve_bracket(fitting, goal, shortest)
    if notices:
        return Ending(PeakStatus.UNSTABLE, None, notices)
    if is_narrow:
        load = _load_to_confirm(found, trials, pending)
        if load is None:
            return _finish(estimate, tried, bad)
        return Step(goal.within(load), shortest, _CONFIRM)
    load = found.quantile(_PLACES[(len(trials) + len(pending)) % len(_PLACES)])
    is_rough = half > _ROUGHLY
    if is_rough:
        reason, wanted, most = "to find the peak roughly", _seconds_to_settle(found), _LONGEST_ROUGH
    else:
        reason, wanted, most = "to narrow the interval", _seconds_to_narrow(found, goal), _LONGEST
    duration_s = min(max(wanted, shortest), most * shortest)
    return Step(goal.within(load), duration_s, reason, is_rough=is_rough)


def so_far(trials: Sequence[Trial], goal: SearchGoal) -> Estimate | None:
    """Return the estimate of the peak, once some trials kept the limits and some did not."""
    tried = _Tried.of(trials)
    counted = tried.only(~tried.contradicted)
    if not ((counted.ratio < 1.0).any() and (counted.ratio >= 1.0).any()):
        return None
    found = _posterior(counted, goal)
    is_open = _load_to_recheck(tried, found.noise, goal) is not None
    return None if is_open else _estimate(found, goal)


def _estimate(found: PeakPosterior, goal: SearchGoal) -> Estimate:
    """Return the median peak; with whole loads, the greatest one that keeps the limits."""
    loads = (found.quantile(q) for q in (0.5, 1.0 - _upper(goal), _upper(goal)))
    value, low, high = (goal.within(math.floor(load) if goal.whole else load) for load in loads)
    n, method = found.residuals.size, found.method
    return estimate_of(value, low, high, confidence=goal.confidence, n=n, method=method)


def _upper(goal: SearchGoal) -> float:
    return (1.0 + goal.confidence) / 2.0


def _posterior(counted: _Tried, goal: SearchGoal) -> PeakPosterior:
    low = max(float(counted.load.min()) / _STRIDE, goal.min_load)
    high = min(float(counted.load.max()) * _STRIDE, goal.max_load or math.inf)
    return peaks.peak_posterior(
        counted.load,
        counted.ratio,
        counted.duration_s,
        low=low,
        high=max(high, low * _LEAST_RANGE),
        error=counted.error,
        curves=peaks.CLOSED_LOOP if goal.whole else peaks.OPEN_LOOP,
    )


def _ahead(n: int) -> float:
    """Return the number of steps to take at once: one more per trial under way, up to a maximum.

    Loads many steps ahead may be far beyond any server. So further trials are spread over the loads
    between.
    """
    return float(n) if n <= _MOST_AHEAD else _MOST_AHEAD * (n * _SPREAD % 1.0)


def _bracket(
    counted: _Tried, tried: _Tried, goal: SearchGoal, steps: float
) -> float | Ending | None:
    """Return the next load while all trials are on one side of the peak; else None.

    ``steps`` are taken at once; the number depends on the trials under way.
    """
    saturated = counted.ratio >= 1.0
    if not saturated.any():
        top = float(counted.load.max())
        is_last = top == goal.max_load and np.count_nonzero(counted.load == top) > 1
        if is_last or top > _WITHOUT_END:
            return Ending(status=PeakStatus.NOT_SATURATED)
        return goal.within(top * _STRIDE**steps)
    if not saturated.all():
        return None
    load, log_ratio = tried.load, tried.log_ratio
    top, first, lowest = float(load.max()), float(load[0]), float(load.min())
    # An overloaded server is soon far above its limits, and more load only fills its queues. A
    # server that is slow with little to do is not, and may be faster at greater loads.
    is_overloaded = bool(log_ratio[load.argmin()] > _CLEARLY_FAR)
    if lowest > goal.min_load and (is_overloaded or lowest == first):
        return goal.within(lowest / _STRIDE**steps)
    is_far = is_overloaded or log_ratio[load.argmax()] > _CLEARLY_FAR
    if not is_far and top != goal.max_load and top < first * _STRIDE_UP**_PROBES_UP:
        return goal.within(_STRIDE_UP**steps * top)
    if lowest > goal.min_load:
        return goal.min_load
    if np.count_nonzero(load == lowest) > 1:
        return Ending(status=PeakStatus.SATURATED_AT_LOWEST)
    return lowest


def _outside(
    tried: _Tried, counted: _Tried, noise: float, goal: SearchGoal
) -> Step | Ending | None:
    """Return a trial to confirm the side of loads that other trials left open; else None."""
    load = _load_to_recheck(tried, noise, goal)
    if isinstance(load, Ending):
        return load
    if load is not None:
        reason, duration_s = "whether more than noise keeps the limit", _LONGEST_ROUGH
        return Step(goal.within(load), duration_s * goal.shortest_s, reason, is_rough=True)
    load = _behind(counted, goal)
    above = "whether it is saturated above, too"
    return None if load is None else Step(load, goal.shortest_s, above, is_rough=True)


def _load_to_recheck(tried: _Tried, noise: float, goal: SearchGoal) -> float | Ending | None:
    """Return a load to try again if noise alone may explain the side of the limit.

    A server that is always a little over its limits keeps them in some trials, by luck. So some
    load must be shown to keep them; otherwise the server is saturated at the least load. The same
    holds for the greatest load, the other way round. Return None if both are shown.
    """
    # At its limit a share varies with the requests in its tail, which includes its trials' noise.
    is_share, of_tail = tried.half > 0.0, 1.0 / tried.tail
    of_tail = np.where(np.isfinite(tried.over), _TOGETHER, 1.0) * of_tail
    sd = np.maximum(noise * np.sqrt(peaks.NOISE_OF_S / tried.duration_s), tried.error * ~is_share)
    weights = 1.0 / np.where(is_share, np.maximum(sd**2, of_tail), sd**2 + of_tail)
    low, high = goal.min_load, goal.max_load
    found = _at_bound(tried, weights, low, 1.0, PeakStatus.SATURATED_AT_LOWEST)
    if found is None and high is not None:
        found = _at_bound(tried, weights, high, -1.0, PeakStatus.NOT_SATURATED)
    return found


def _at_bound(
    tried: _Tried, weights: Floats, bound: float, sign: float, status: PeakStatus
) -> float | Ending | None:
    """Return a load to try again, or the ending if no load is on the other side of the limit.

    The trials must show that ``sign`` times the log of response over limit is negative. The trials
    of one load show it if they are far enough from the limit; those of the bound and of the loads
    next to it together need less distance. A load that suggests it is tried again.
    """
    # Half a request, so that 0 failures of few requests are not far below the limit.
    half = np.where(tried.half > 0.0, 0.0, _HALF / tried.tail)  # shares have it already
    # Far from its limit, a quantile says less than the number of requests over the limit.
    is_counted = (tried.ratio < 1.0) & (tried.over < tried.tail)
    ratio = np.where(is_counted, tried.over / tried.tail, tried.ratio)
    half = np.where(is_counted, _TOGETHER * half, half)
    log_ratio = np.log((np.clip(ratio, 1e-9, math.exp(_CLIPPED)) + half) / (1.0 + half))
    log_ratio = sign * np.maximum(log_ratio, -_CLIPPED)
    if ((log_ratio < -_FAR_AWAY) & (log_ratio * np.sqrt(weights) < -_SHOWN)).any():
        return None
    loads: list[float] = sorted(set(tried.load.tolist()), reverse=sign < 0.0)
    at = [tried.load == load for load in loads]
    n = [int(np.count_nonzero(those)) for those in at]
    sums = np.array([(weights[those] @ log_ratio[those], weights[those].sum()) for those in at])
    means = np.repeat(sums[:, 0] / sums[:, 1], n)
    by_load = np.concatenate([np.flatnonzero(those) for those in at])
    within = float(weights[by_load] @ (log_ratio[by_load] - means) ** 2)
    # Trials of one load show if the noise is greater than expected.
    sums /= max((within + _TRUST) / (log_ratio.size - len(loads) + _TRUST), 1.0)
    alone = sums[:, 0] / np.sqrt(sums[:, 1])  # in standard deviations
    best = int(alone.argmin())
    if alone[best] < -_SHOWN:
        return loads[best] if n[best] < _FEWEST_THERE else None
    if alone[best] < -_SUGGESTED and n[best] < _MANY_THERE:
        return loads[best]
    if loads[0] != bound and best == 0:  # farther out the limit is farther away
        return max(loads[0] / 2.0, bound) if sign > 0.0 else min(2.0 * loads[0], bound)
    if loads[0] != bound or n[0] < _FEWEST_THERE:
        return bound
    pooled = sums.cumsum(axis=0)
    together = float((pooled[:, 0] / np.sqrt(pooled[:, 1])).min())
    is_done = n[0] >= _MOST_THERE
    if together < -(_SHOWN_AT_LAST if is_done else _SHOWN_THERE):
        return None
    if alone[0] > _SUGGESTED:
        return Ending(status)
    if n[0] < _MANY_THERE or (not is_done and together < -_HINTED):
        return bound
    return Ending(status, notices=(Notice.of(Code.NOT_CONVERGED, "near limit", load_=bound),))


def _seconds_to_narrow(found: PeakPosterior, goal: SearchGoal) -> float:
    """Return the duration of a trial that narrows the interval to the target."""
    z = student_t(math.inf, goal.confidence)
    missing = (z / math.log1p(goal.accuracy)) ** 2 - found.sd**-2
    wanted = max(missing, 0.0) * peaks.NOISE_OF_S * (found.noise / found.slope) ** 2
    return max(wanted, _seconds_to_settle(found))


def _seconds_to_settle(found: PeakPosterior) -> float:
    """Return the duration that a queue near saturation needs to show its mean: it fills slowly."""
    return peaks.NOISE_OF_S * (found.own / _SETTLED) ** 2


def _behind(counted: _Tried, goal: SearchGoal) -> float | None:
    """Return a load above all so far, to check that limits are not kept there again; else None."""
    if counted.log_ratio[counted.load.argmax()] >= _CLEARLY_FAR:
        return None
    top, lowest = float(counted.load.max()), float(counted.load[counted.ratio >= 1.0].min())
    farther = (lowest * times for times in _BEHIND if top < lowest * times)
    load = goal.within(next(farther, top))
    return load if load > top else None


def _load_to_confirm(
    found: PeakPosterior, trials: Sequence[Trial], pending: Sequence[LoadTrial]
) -> float | None:
    """Return a load just above an abrupt peak, to exclude bad luck there; None if confirmed.

    If trials are either far below or far above their limits, a server with good and bad times looks
    like one that breaks down at a load.
    """
    peak = found.quantile(0.5)
    near = (trial for trial in trials if abs(math.log(trial.asked.load / peak)) < _NEAR)
    if any(abs(math.log(trial.ratio or 1e-9)) < _AT_LIMIT for trial in near):
        return None
    done = [*(trial.asked for trial in trials), *pending]
    times = sum(asked.reason == _CONFIRM and asked.load > peak for asked in done)
    return peak * _WELL_ABOVE if times < _CONFIRMED else None


def _finish(estimate: Estimate, tried: _Tried, bad: Flags) -> Ending:
    """Return the peak, and report the trials that do not count for it."""
    notices: tuple[Notice, ...] = ()
    if bad.any():
        loads = tried.load[bad]
        ends = {"least_": loads.min(), "most_": loads.max()}
        figures = {"bad_": bad.sum(), "all_": bad.size, "loads": loads.tolist()}
        notices = (Notice.of(Code.NOT_MONOTONE, **ends, **figures),)
    return Ending(status=PeakStatus.FOUND, load=estimate, notices=notices)


def _disagreements(found: PeakPosterior, tried: _Tried, bad: Flags) -> Iterator[Notice]:
    """Report if trials near the peak disagree with each other, or change with time."""
    peak = found.quantile(0.5)
    near = np.abs(np.log(tried.load / peak)) < _NEAR
    of_counted = near[~bad]
    odd = near & bad
    odd[~bad] |= of_counted & (np.abs(found.residuals) > _SURPRISING)
    found_odd, of_near = int(odd.sum()), int(near.sum())
    drift = _drift(found, of_counted, tried.load[~bad])
    if drift is not None:
        yield Notice.of(Code.DRIFTING, change=drift)
    elif found_odd > max(_BAD_SHARE * of_near, _FEW_BAD):
        if _is_later(tried, bad):
            yield Notice.of(Code.DRIFTING, "slower", bad_=bad.sum(), all_=bad.size)
            return
        share = found_odd / of_near
        yield Notice.of(Code.BISTABLE, odd_=found_odd, near_=of_near, share=share)


def _is_later(tried: _Tried, bad: Flags) -> bool:
    """Return whether all contradicted trials came after the greater loads that kept the limits."""
    if not bad.any():
        return False
    kept = (tried.log_ratio < -_CLEARLY) & (tried.load > tried.load[bad].min() * _WELL_ABOVE)
    return bool(np.flatnonzero(kept).max() < np.flatnonzero(bad).min())


def _drift(found: PeakPosterior, near: Flags, load: Floats) -> float | None:
    """Return the relative change of responses near the peak with time, if significant.

    A trend of residuals with the load is not a trend with time: another curve would explain it.
    """
    residual = found.residuals[near]
    if residual.size < _FEWEST:
        return None
    order = np.linspace(-0.5, 0.5, residual.size)
    columns = np.column_stack([order, np.ones_like(order), np.log(load[near])])
    inverse = np.linalg.pinv(columns.T @ columns)
    fitted = inverse @ columns.T @ residual
    spread = math.sqrt(float(((residual - columns @ fitted) ** 2).mean()))
    change, error = float(fitted[0]), math.sqrt(float(inverse[0, 0]))
    if abs(change) < _DRIFTING * max(spread, 1.0) * error:
        return None
    return math.expm1(change * found.noise)


_ALIKE = 1.01  # loads that differ by less are one
_AT_AN_END = 2  # trials, to confirm it
_LONGER = 2.0  # times the shortest trial, as no curve averages their noise


def halve_bracket(trials: Sequence[Trial], goal: SearchGoal, shortest_s: float) -> Step | Ending:
    """Halve the bracket of the peak until it reaches the target, and both ends are confirmed.

    A load is saturated if the median response of its trials is over the limit. The lower end is the
    greatest load below all saturated ones.
    """
    duration_s = _LONGER * shortest_s
    by_load: dict[float, list[float]] = {}
    for trial in sorted(trials, key=lambda trial: trial.asked.load):
        load = next((x for x in by_load if trial.asked.load < x * _ALIKE), trial.asked.load)
        by_load.setdefault(load, []).append(trial.ratio or 0.0)
    saturated = [load for load, ratios in by_load.items() if float(np.median(ratios)) >= 1.0]
    high = goal.within(min(saturated, default=max(by_load) * 2.0))
    low = goal.within(max((load for load in by_load if load < high), default=high / 2.0))
    for end in (low, high):
        if len(by_load.get(end, ())) < _AT_AN_END:
            return Step(goal.within(end), duration_s, "to confirm an end of the bracket")
    if low == high:  # a bound; the peak is beyond it
        is_saturated = high in saturated
        return Ending(PeakStatus.SATURATED_AT_LOWEST if is_saturated else PeakStatus.NOT_SATURATED)
    middle = math.sqrt(low * high)
    if high > low * (1.0 + goal.accuracy) ** 2 and goal.within(middle) not in (low, high):
        return Step(goal.within(middle), duration_s, "to halve the bracket")
    how: Any = {"confidence": goal.confidence, "n": len(trials), "method": "bracket"}
    estimate = estimate_of(goal.within(middle), low, high, **how)
    return Ending(PeakStatus.FOUND, estimate, (Notice.of(Code.BRACKET),))
