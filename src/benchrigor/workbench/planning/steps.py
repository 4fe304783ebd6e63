"""The input and output of policies: goals, trials and how they count; the next step, or the end.

Also the plans of any planner that are under way (`AskedPlans`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Generic, Protocol, TypeVar

from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.model import Estimate, Notice
from benchrigor.model.checks import refuse, wrong_settings
from benchrigor.model.series import short
from benchrigor.stats.shares_and_quantiles import WILSON
from benchrigor.units import show_duration
from benchrigor.workbench.data import (
    CHUNK_GAP,
    FAILED,
    Limit,
    LoadResult,
    LoadTrial,
    PeakStatus,
    Trial,
)
from benchrigor.workbench.settings import ADAPTIVE, GOAL

_LEAST_REQUESTS, _IN_TAIL = 30, 10.0  # of a trial; beyond a quantile that is limited
_SHORTEST_S, _LEAST_S, _SETUPS, IN_BUDGET = 10.0, 1.0, 1.5, 14.0
_USUAL = 20  # trials of a search
_FAR, _IN_FAR_TAIL = 0.005, 30.0  # of tails that one busy period of a queue may fill


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGoal:
    """The target of a search, and its bounds.

    Parameters
    ----------
    width
        Half-width of the region around the limit in which a response counts as at the peak.
    accuracy
        Target relative half-width of the peak; for the published policies, of the response there.
    confidence
        Of that interval.
    seed_load, min_load, max_load
        The first, least and greatest load; None for no greatest one.
    setup_s
        Seconds that a trial costs in addition to its duration.
    budget_s
        The limit of the total cost of trials; None without a limit.
    trial_s
        Seconds of a trial; None for the policy's choice.
    whole
        Whether loads are whole numbers.
    policy
        The way to choose loads.
    """

    width: float
    accuracy: float
    confidence: float
    seed_load: float
    min_load: float
    max_load: float | None
    setup_s: float
    budget_s: float | None
    trial_s: float | None
    whole: bool
    policy: str

    def __post_init__(self) -> None:
        refuse(wrong_settings(GOAL, asdict(self), _CLASHES))

    @property
    def is_adaptive(self) -> bool:
        """Whether the policy fits curves, and needs the number of requests of a response."""
        return self.policy == ADAPTIVE

    def within(self, load: float) -> float:
        """Return the load, or the nearest allowed one."""
        load = float(max(round(load), 1)) if self.whole else load
        return min(max(load, self.min_load), math.inf if self.max_load is None else self.max_load)

    def by_now(self, trials: Sequence[Trial]) -> SearchGoal:
        """Return the goal; if it has no cost of set-up, with the mean cost of trials so far."""
        spent = [trial.result.spent_s.get("set-up", 0.0) for trial in trials]
        if self.setup_s or not spent:
            return self
        return replace(self, setup_s=sum(spent) / len(spent))

    def left_s(self, trials: Sequence[Trial], pending: Sequence[LoadTrial]) -> float:
        """Return the seconds of a further trial that the budget allows; infinite without one."""
        if self.budget_s is None:
            return math.inf
        spent_s = sum(trial.cost_s for trial in trials)
        spent_s += sum(trial.duration_s + self.setup_s for trial in pending)
        return self.budget_s - spent_s - self.setup_s

    @property
    def shortest_s(self) -> float:
        """The shortest duration of a trial, in proportion to its set-up and the budget."""
        shortest = max(_SHORTEST_S, _SETUPS * self.setup_s)
        if self.budget_s is not None:
            shortest = min(shortest, self.budget_s / IN_BUDGET - self.setup_s)
        return max(shortest, _LEAST_S)

    def usual_s(self, trial_s: float) -> float:
        """Return the time of a typical search with trials of ``trial_s`` or more."""
        return _USUAL * ((self.trial_s or max(trial_s, self.shortest_s)) + self.setup_s)


_WHOLE = "expected a whole number, as all loads are"
# What does not go together, and how to say so.
_CLASHES: tuple[tuple[Callable[[SearchGoal], bool], str], ...] = (
    (
        lambda its: its.max_load is not None and its.min_load > its.max_load,
        "min_load is {0.min_load:g}, but max_load is {0.max_load:g}, expected no less",
    ),
    (
        lambda its: its.whole and its.min_load % 1.0 != 0.0,
        f"min_load is {{0.min_load:g}}, {_WHOLE}",
    ),
    (
        lambda its: its.whole and (its.max_load or 0.0) % 1.0 != 0.0,
        f"max_load is {{0.max_load:g}}, {_WHOLE}",
    ),
    (
        lambda its: its.whole and its.policy != ADAPTIVE,
        "policy is {0.policy!r}, expected 'adaptive' for whole loads",
    ),
)


@dataclass(frozen=True, slots=True)
class Step:
    """The next trial of a policy; a rough one only locates the peak approximately."""

    load: float
    duration_s: float
    reason: str
    is_rough: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a search ended, in a policy's view."""

    status: PeakStatus
    load: Estimate | None = None
    notices: tuple[Notice, ...] = ()


Policy = Callable[[Sequence[Trial], Sequence[LoadTrial], SearchGoal], Step | Ending]
"""Maps the trials that count, in the order of results, and those under way to the next step."""


def highest_kept(trials: Sequence[Trial]) -> float | None:
    """Return the greatest load that kept the limits."""
    kept = (trial.asked.load for trial in trials if trial.ratio is not None and trial.ratio < 1.0)
    return max(kept, default=None)


def lowest_saturated(trials: Sequence[Trial]) -> float | None:
    """Return the least load above which no trial kept the limits."""
    top = highest_kept(trials) or 0.0
    above = (trial.asked.load for trial in trials if trial.ratio is not None and trial.ratio >= 1.0)
    return min((load for load in above if load > top), default=None)


def least_requests(limits: Sequence[Limit]) -> int:
    """Return the number of requests that a trial needs.

    The tail needs ten; beyond p99.5 it needs 30, as slow responses come together.
    """
    shares = [1.0 - limit.quantile for limit in limits if limit.quantile is not None]
    shares += [limit.at_most for limit in limits if limit.conditions]
    needed = [
        (_IN_FAR_TAIL if share < _FAR else _IN_TAIL) / min(share, 1.0 - share) for share in shares
    ]
    failed = (limit.at_most for limit in limits if limit.metric == FAILED)
    needed += [_IN_TAIL / min(share, 1.0 - share) for share in failed]
    return max(_LEAST_REQUESTS, *map(round, needed), 0)


class _Numbered(Protocol):
    @property
    def id(self) -> int:
        """Its number, counted from 0."""


P = TypeVar("P", bound=_Numbered)


class AskedPlans(Generic[P]):
    """Plans that were asked for; the result of each is passed once, in any order.

    Parameters
    ----------
    noun
        The name of a plan.

    Attributes
    ----------
    under_way
        The plans without a result.
    numbers
        Of all plans. Smaller ones are of plans that an earlier process did not finish.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._told: list[P] = []
        self.under_way: list[P] = []
        self.numbers: set[int] = set()

    @property
    def next(self) -> int:
        """The number after all others."""
        return max(self.numbers, default=-1) + 1

    @property
    def first_free(self) -> int:
        """The least number of no plan."""
        return next(number for number in count() if number not in self.numbers)

    def add(self, plan: P) -> P:
        """Count a plan as under way, and return it."""
        self.numbers.add(plan.id)
        self.under_way.append(plan)
        return plan

    def check(self, plan: P) -> None:
        """Raise PlanMismatch unless a plan is under way."""
        if plan not in self.under_way:
            what = "has been told already" if plan in self._told else "was never asked for"
            raise PlanMismatch(
                f"{short(plan)} {what}; tell each {self._noun} that ask() returned, once"
            )

    def end(self, plan: P) -> None:
        """Count a plan as told, or as given up, if it is under way."""
        if plan in self.under_way:
            self.under_way.remove(plan)
            self._told.append(plan)

    def recall(self, plan: P) -> None:
        """Count a plan as told, which an earlier process may have asked for."""
        if plan not in self.under_way:
            self.add(plan)
        self.end(plan)


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
