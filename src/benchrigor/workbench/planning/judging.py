"""How a trial counts: its response over the limits, and whether it measured the server at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse
from benchrigor.stats.statistics.shares_and_quantiles import WILSON
from benchrigor.units import show_duration
from benchrigor.workbench.data import CHUNK_GAP, FAILED, Limit, LoadResult, LoadTrial, Trial
from benchrigor.workbench.planning.steps import SearchGoal

_LAGS = 3.0  # times the p99 of the lag: the most that late requests add to a response
_MOST_LAG = 0.1  # of the least limit in seconds: a greater lag measures the generator
_GROWING = 10.0  # the least response over the limit of a trial in which a backlog grew
_LEAST_SENT = 0.98  # of the scheduled requests
_LEAST_ANSWERED = 0.9  # of the requests with enough time for an answer
_OWN_PROCESSOR = "leave the generator a processor of its own (taskset)"
_NO_REQUEST = 1e-3  # in a tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Judges the results of trials.

    Parameters
    ----------
    limits
        The limits of the server.
    goal
        The target of the search.
    is_rate
        Whether loads are requests per second, by which counts of requests are checked.
    """

    limits: Sequence[Limit]
    goal: SearchGoal
    is_rate: bool

    def refuse_wrong_counts(self, trial: LoadTrial, result: LoadResult) -> None:
        """Refuse more requests than a rate can yield, and requests in 0 s."""
        if not self.is_rate:
            return
        counts = (result.scheduled, result.sent, result.completed)
        requests, run_s = max(count or 0 for count in counts), result.run_s
        wrong = trial.too_many(requests, run_s or 0.0)
        refuse(
            [f"{wrong}; of a load that is not a rate, give PeakSearch the unit"] if wrong else [],
            [f"{requests} requests were sent in 0 s, expected about {trial.duration_s:g} s"]
            * (requests > 0 and run_s == 0.0),
        )

    def judge(self, trial: LoadTrial, result: LoadResult) -> Trial:
        """Return a trial with the greatest ratio of a value to its limit."""
        ratios = {limit.metric: limit.ratio_of(result) for limit in self.limits}
        known = {metric: ratio for metric, ratio in ratios.items() if ratio is not None}
        invalid = self._why_invalid(trial, result)
        if not (known or result.crashed or invalid):
            names = " or ".join(repr(ratio) for ratio in ratios)
            raise InvalidInput(
                f"the result has no value of {names}, expected those that have limits"
            )
        binding = max(known, key=lambda metric: known[metric], default="")
        ratio = known.get(binding)
        if result.crashed:
            ratio = math.inf
        elif result.growing and ratio is not None:
            ratio = max(ratio, _GROWING)
        cost_s = sum(result.spent_s.values()) or trial.duration_s + self.goal.setup_s
        return Trial(
            asked=trial,
            result=result,
            ratio=ratio,
            binding=binding,
            cost_s=cost_s,
            invalid=invalid,
            tail=self._tail(trial, result, binding),
            over=None if self.goal.whole else _requests_over(self.limits, result),
        )

    def _tail(self, trial: LoadTrial, result: LoadResult, binding: str) -> float:
        """Return the number of requests of the binding value; infinite if unknown."""
        limit = next((limit for limit in self.limits if limit.metric == binding), None)
        if limit is None or self.goal.whole or not self.goal.is_adaptive:
            return math.inf
        requests = trial.load * trial.duration_s if result.sent is None else result.sent
        found = result.response
        if limit.conditions and found is not None and found.method.startswith(WILSON):
            requests = found.n_effective  # lost requests come in bursts
        if limit.metric == FAILED or limit.conditions:
            return max(requests * limit.at_most, _NO_REQUEST)
        q = limit.quantile
        share = 1.0 if q is None else min(1.0 - q, q)
        return max(requests * share, _NO_REQUEST) if limit.is_of_time else math.inf

    def _why_invalid(self, trial: LoadTrial, result: LoadResult) -> str:
        """Return why a trial measured the generator, not the server; empty if it is valid.

        An overloaded server also makes the generator late, which then opens connections by the
        hundred. If a response exceeds its limit even without the lag, the server is saturated.
        """
        if result.crashed or result.invalid:
            return result.invalid
        seconds = {
            metric: most
            for limit in self.limits
            for metric, most in limit.times.items()
            if not metric.startswith(CHUNK_GAP)  # a gap does not include the lag
        }
        least_s = min(seconds.values(), default=math.inf)
        lag_s = result.lag_p99_s or 0.0
        is_over = any(
            (result.value(metric) or 0.0) - _LAGS * lag_s > most for metric, most in seconds.items()
        )
        if lag_s > _MOST_LAG * least_s and not is_over:
            return (
                f"requests were sent {show_duration(lag_s)} late (99th percentile), over "
                f"a tenth of the limit: {_OWN_PROCESSOR}, send from more processes "
                "(--processes), or let requests wait instead of compute"
            )
        sent, scheduled = self._count_sent(trial, result)
        if sent < _LEAST_SENT * scheduled:
            return (
                f"only {sent} of {scheduled:.0f} requests were sent: allow more "
                f"connections, or {_OWN_PROCESSOR}"
            )
        return self._too_few_answers(trial, result)

    def _too_few_answers(self, trial: LoadTrial, result: LoadResult) -> str:
        """Return why a generator that counts only answers sent less than its load; else "".

        If the limits are kept, the requests that wait at the end came within one limit.
        """
        seconds = [most for limit in self.limits for most in limit.times.values()]
        slowest_s = max(seconds, default=math.inf)
        is_kept = all((limit.ratio_of(result) or 0.0) < 1.0 for limit in self.limits)
        if not self.is_rate or result.sent is not None or result.completed is None or not is_kept:
            return ""
        answered = result.completed + result.failed
        least = trial.least(result.run_s or math.inf) - trial.load * slowest_s
        if answered >= _LEAST_ANSWERED * least:
            return ""
        return (
            f"only {answered} requests were answered, expected about "
            f"{trial.load * trial.duration_s:.0f}, although the limits were kept: let the "
            "generator obey its rate"
        )

    def _count_sent(self, trial: LoadTrial, result: LoadResult) -> tuple[int, float]:
        """Return the numbers of sent and scheduled requests; 0 and 0 if unknown."""
        if result.sent is None:
            return 0, 0.0
        scheduled = float(result.scheduled or 0)
        if self.is_rate and not result.growing:
            scheduled = max(scheduled, trial.least(result.run_s or math.inf))
        return result.sent, scheduled


def _requests_over(limits: Sequence[Limit], result: LoadResult) -> int | None:
    """Return the number of requests over the limit of a quantile that is the only limit."""
    (only, *others) = limits
    if others or only.quantile is None or result.sent is None or result.within_limits is None:
        return None
    return result.sent - result.within_limits
