"""The search for a peak: it asks for trials, and takes their results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import refuse
from benchrigor.model.series import short
from benchrigor.model.text import show_duration
from benchrigor.stats.statistics.proportion import WILSON
from benchrigor.workbench.data import (
    FAILED,
    MEAN,
    P95,
    Limit,
    LoadResult,
    LoadTrial,
    PeakRate,
    PeakStatus,
    Trial,
)
from benchrigor.workbench.good_requests import CHUNK_GAP
from benchrigor.workbench.planning import adaptive_search
from benchrigor.workbench.planning.published_search import find_policy
from benchrigor.workbench.planning.steps import (
    Ending,
    Goal,
    Policy,
    Step,
    highest_kept,
    least_requests,
    lowest_saturated,
    requests_over,
)
from benchrigor.workbench.settings import ADAPTIVE, GOAL

RATE = "req/s"  # unit of loads by which counts of requests are checked
_LAGS = 3.0  # times the p99 of the lag: the most that late requests add to a response
_MOST_LAG = 0.1  # of the least limit in seconds: a greater lag measures the generator
_GROWING = 10.0  # the least response over the limit of a trial in which a backlog grew
_LEAST_SENT = 0.98  # of the scheduled requests
_LEAST_ANSWERED = 0.9  # of the requests with enough time for an answer
_MOST_TRIALS, _MOST_PUBLISHED = 1_000, 10_000  # a strawman takes 1,200 to 2,500/s
_MOST_FAILED = 5
_STRIDE_DOWN = 4.0  # while no load could be offered
_OWN_PROCESSOR = "leave the generator a processor of its own (taskset)"
_NO_REQUEST = 1e-3  # in a tail


class PeakSearch:
    """Find the greatest load at which a server keeps its limits.

    It runs nothing itself: the caller asks for a trial, runs it and passes the result back. Several
    trials may be under way at the same time.

    Parameters
    ----------
    threshold_s, p95_threshold_s
        Limits of the mean and of the 95th percentile of the response, in seconds.
    limits
        Further limits; at least one in all. The response of a trial is its greatest value over its
        limit.
    setup_s
        Seconds that a trial costs in addition to its duration.
    width
        The published policies take a response within this share of the limit for the peak.
    accuracy
        Target relative half-width of the peak; for the published policies, of the response there.
    confidence
        Of that interval.
    policy
        "adaptive", or one of the published ones: "strawman", "linear", "binsearch", "model",
        "quadratic".
    seed_load, min_load, max_load
        The first, least and greatest load; None for no greatest one.
    budget_s
        The limit of the total cost, including set-up; None without a limit.
    trial_s
        Seconds of a trial (the runlength r of the paper); None for the policy's choice: 180 s,
        300 s for "strawman", and as long as the interval needs for "adaptive".
    whole
        Whether loads are whole numbers, of users or connections that wait for answers: then
        "adaptive" fits other curves.
    unit
        Of the load. Counts of requests are checked against loads in "req/s".

    Raises
    ------
    InvalidInput
        When an argument is out of range, or there is no limit.

    Notes
    -----
    The published policies are from Shivam et al. (USENIX ATC 2008), Algorithms 2 to 4; "adaptive"
    is this library's own, see `workbench.arithmetic.peaks`.

    Examples
    --------
    A server that serves 200 a second, one after the other, may be offered 175 when responses shall
    take 40 ms on average:

    >>> search = PeakSearch(threshold_s=0.04)
    >>> while (trial := search.ask()) is not None:
    ...     spare = 200.0 - trial.load
    ...     found = LoadResult(mean_response_s=1 / spare if spare > 0 else 9.0)
    ...     search.tell(trial, found)
    >>> peak = search.result()
    >>> str(peak.status), peak.load.low < 175.0 < peak.load.high
    ('found', True)
    """

    def __init__(
        self,
        threshold_s: float | None = None,
        p95_threshold_s: float | None = None,
        limits: Sequence[Limit] = (),
        setup_s: float = 0.0,
        *,
        width: float = 0.10,
        accuracy: float = 0.05,
        confidence: float = 0.95,
        policy: str = ADAPTIVE,
        seed_load: float = 50.0,
        min_load: float = 1.0,
        max_load: float | None = None,
        budget_s: float | None = None,
        trial_s: float | None = None,
        whole: bool = False,
        unit: str = RATE,
    ) -> None:
        given = locals()
        self.unit = unit
        self._is_rate = unit == RATE and not whole
        self.limits = _all_limits(threshold_s, p95_threshold_s, limits)
        self.goal = Goal(**{name: given[name] for name in GOAL})
        self._is_adaptive = policy == ADAPTIVE
        # The number of requests of users and connections is unknown.
        self._least_requests = 0 if whole or not self._is_adaptive else least_requests(self.limits)
        self._policy: Policy = (
            adaptive_search.adaptive if self._is_adaptive else find_policy(policy)
        )
        self._trials: list[Trial] = []
        self._pending: dict[int, LoadTrial] = {}
        self._asked = 0
        self._again: list[Step] = []  # invalid trials to repeat
        self._limited = ""  # why a greater load could not be offered
        self._ending: Ending | None = None

    def ask(self) -> LoadTrial | None:
        """Return the next trial to run; None when the search is over."""
        if self._ending is None:
            step = self._again.pop() if self._again else self._next_step()
            affordable = self._affordable(step) if isinstance(step, Step) else None
            if affordable is not None:
                return self._plan(affordable)
            self._ending = self._finish(step) if isinstance(step, Ending) else self._out_of_budget()
        return None

    def tell(self, trial: LoadTrial, result: LoadResult) -> None:
        """Add the result of a trial.

        A trial that the generator could not offer as planned is repeated once; if the second one is
        invalid too, the search takes its load as the limit of the generator.

        Raises
        ------
        PlanMismatch
            When the trial was not asked for, or already has a result.
        InvalidInput
            When the result lacks all limited values, or its counts of requests are impossible at
            such a rate.
        """
        if not isinstance(trial, LoadTrial) or self._pending.get(trial.id) != trial:
            known = isinstance(trial, LoadTrial) and any(one.asked == trial for one in self._trials)
            what = "has been told already" if known else "was never asked for"
            raise PlanMismatch(f"{short(trial)} {what}; tell each trial that ask() returned, once")
        self._refuse_wrong_counts(trial, result)
        counted = self._count(trial, result)
        del self._pending[trial.id]
        self._take(counted)

    def _refuse_wrong_counts(self, trial: LoadTrial, result: LoadResult) -> None:
        """Refuse more requests than a rate can yield, and requests in 0 s."""
        if not self._is_rate:
            return
        counts = (result.scheduled, result.sent, result.completed)
        requests, run_s = max(count or 0 for count in counts), result.run_s
        wrong = trial.too_many(requests, run_s or 0.0)
        refuse(
            [f"{wrong}; of a load that is no rate, give PeakSearch the unit"] if wrong else [],
            [f"{requests} requests were sent in 0 s, expected about {trial.duration_s:g} s"]
            * (requests > 0 and run_s == 0.0),
        )

    def recall(self, trial: LoadTrial, result: LoadResult) -> None:
        """Add a trial of an earlier search with the same limits, to continue that search."""
        self._take(self._count(trial, result))
        self._asked = max(self._asked, trial.id + 1)
        self._again = [step for step in self._again if step.load != trial.load]

    def cut(self, trial: LoadTrial, sentence: str) -> None:
        """End the search, as the budget was spent during a trial, which does not count."""
        del self._pending[trial.id]
        ending = self._out_of_budget()
        notice = Notice.warning(Code.CUT_ROUND, sentence)
        self._ending = replace(ending, notices=(*ending.notices, notice))

    def _take(self, trial: Trial) -> None:
        self._trials.append(trial)
        if trial.invalid and self._ending is None:
            self._repeat_or_limit(trial)

    def result(self) -> PeakRate:
        """Return the present knowledge of the peak, also while the search runs."""
        trials, ending = self._valid(), self._ending
        load = ending.load if ending is not None else self._so_far()
        kept, saturated = highest_kept(trials), lowest_saturated(trials)
        if load is not None:  # trials on the wrong side of it were chance
            kept = highest_kept([trial for trial in trials if trial.asked.load <= load.value])
            above = [trial for trial in trials if trial.asked.load > load.value]
            saturated = lowest_saturated(above)
        status = None if ending is None else ending.status
        if status is PeakStatus.SATURATED_AT_LOWEST:  # trials that kept the limits were chance
            kept, saturated = None, min(trial.asked.load for trial in trials)
        notices = () if ending is None else (*ending.notices, *self._note_unread_limits(trials))
        return PeakRate(
            status=status,
            load=load,
            at_least=kept,
            at_most=saturated,
            limits=self.limits,
            binding=_binding(trials, load),
            trials=tuple(self._trials),
            cost_s=self.spent_s,
            goodput=_goodput(trials, kept),
            unit=self.unit,
            notices=notices,
        )

    @property
    def last(self) -> Trial:
        """The last finished trial."""
        return self._trials[-1]

    @property
    def spent_s(self) -> float:
        """The total cost of finished trials."""
        return sum(trial.cost_s for trial in self._trials)

    def _note_unread_limits(self, trials: Sequence[Trial]) -> Iterator[Notice]:
        """Report limits without a value in any trial."""
        names = [
            repr(limit.metric)
            for limit in self.limits
            if all(trial.result.value(limit.metric) is None for trial in trials)
        ]
        if trials and names:
            sentence = f"No trial told its {' or '.join(names)}: that limit was not checked."
            yield Notice.warning(Code.LIMIT_NOT_CHECKED, sentence)

    def _valid(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.counts]

    def _next_step(self) -> Step | Ending:
        most = _MOST_TRIALS if self._is_adaptive else _MOST_PUBLISHED
        if len(self._trials) + len(self._pending) >= most:
            return self._out_of_budget()
        pending = [
            Step(trial.load, trial.duration_s, trial.reason) for trial in self._pending.values()
        ]
        step = self._policy(self._valid(), pending, self._goal_by_now())
        if isinstance(step, Step):
            wanted = max(step.duration_s, self._least_s(step))
            step = replace(step, duration_s=self.goal.trial_s or wanted)
        return step

    def _least_s(self, step: Step) -> float:
        """Return the duration of a trial with enough requests for the limits.

        At the first, low loads that may be most of the budget. So a rough trial is limited to its
        share of the budget: it leads to greater loads, which have plenty of requests.
        """
        least_s = self._least_requests / step.load
        if not step.is_rough or self.goal.budget_s is None:
            return least_s
        return min(least_s, self.goal.budget_s / adaptive_search.IN_BUDGET)

    def _goal_by_now(self) -> Goal:
        """Return the goal; if it has no cost of set-up, with the mean cost so far."""
        spent = [trial.result.spent_s.get("set-up", 0.0) for trial in self._trials]
        if self.goal.setup_s or not spent:
            return self.goal
        return replace(self.goal, setup_s=sum(spent) / len(spent))

    def _plan(self, step: Step) -> LoadTrial:
        trial = LoadTrial(
            id=self._asked, load=step.load, duration_s=step.duration_s, reason=step.reason
        )
        self._asked += 1
        self._pending[trial.id] = trial
        return trial

    def _affordable(self, step: Step) -> Step | None:
        """Return the step, shortened if necessary, if it fits into the budget; else None."""
        goal = self._goal_by_now()
        if goal.budget_s is None:
            return step
        spent = self.spent_s + sum(
            trial.duration_s + goal.setup_s for trial in self._pending.values()
        )
        left_s = goal.budget_s - spent - goal.setup_s
        if left_s >= step.duration_s:
            return step
        is_enough = left_s >= max(adaptive_search.shortest_s(goal), self._least_s(step))
        is_enough &= self._is_adaptive and goal.trial_s is None
        return replace(step, duration_s=left_s) if is_enough else None

    def _finish(self, ending: Ending) -> Ending:
        """Report the limit of the generator, or of the search, that kept it from the peak."""
        least = min((trial.asked.load for trial in self._valid()), default=0.0)
        is_lowest = ending.status is PeakStatus.SATURATED_AT_LOWEST and least == self.goal.min_load
        if is_lowest and not ending.notices and not self.goal.whole:
            sentence = (
                f"The limits are exceeded at the least load, {least:.4g}: allow lower loads, or "
                "take other limits."
            )
            return replace(ending, notices=(Notice.warning(Code.NOT_CONVERGED, sentence),))
        if ending.status is not PeakStatus.NOT_SATURATED or not self._limited:
            return ending
        sentence = f"No greater load was offered: {self._limited}."
        return replace(ending, notices=(Notice.warning(Code.GENERATOR_LIMIT, sentence),))

    def _so_far(self) -> Estimate | None:
        return adaptive_search.so_far(self._valid(), self.goal) if self._is_adaptive else None

    def _out_of_budget(self) -> Ending:
        if ending := self._refuse_all_invalid(PeakStatus.BUDGET_SPENT):
            return ending
        sentence = "The search ended before the interval was as narrow as wanted: allow more."
        load = self._so_far()
        wanted = None if load is None else self.goal.accuracy * load.value
        kept = highest_kept(self._valid())
        if load is None and kept is not None and self._is_adaptive:
            trial_s = self._least_requests / kept
            needed_s = adaptive_search.usual_s(self._goal_by_now(), trial_s)
            if needed_s > (self.goal.budget_s or math.inf):
                sentence += f" A peak near {kept:.3g} takes about {show_duration(needed_s)}."
        notice = Notice.warning(Code.NOT_CONVERGED, sentence, wanted=wanted)
        return Ending(PeakStatus.BUDGET_SPENT, load, (notice,))

    def _count(self, trial: LoadTrial, result: LoadResult) -> Trial:
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
        setup_s = self.goal.setup_s
        cost_s = sum(result.spent_s.values()) or trial.duration_s + setup_s
        return Trial(
            asked=trial,
            result=result,
            ratio=ratio,
            binding=binding,
            cost_s=cost_s,
            invalid=invalid,
            tail=self._tail(trial, result, binding),
            over=None if self.goal.whole else requests_over(self.limits, result),
        )

    def _tail(self, trial: LoadTrial, result: LoadResult, binding: str) -> float:
        """Return the number of requests behind the binding value; infinite if unknown."""
        limit = next((limit for limit in self.limits if limit.metric == binding), None)
        if limit is None or self.goal.whole or not self._is_adaptive:
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
        if not self._is_rate or result.sent is not None or result.completed is None or not is_kept:
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
        if self._is_rate and not result.growing:
            scheduled = max(scheduled, trial.least(result.run_s or math.inf))
        return result.sent, scheduled

    def _repeat_or_limit(self, invalid: Trial) -> None:
        """Repeat an invalid trial once; then search below it, or end if that is impossible.

        A load below a valid one is repeated more often: then other processes probably disturbed
        the generator for a while.
        """
        load = invalid.asked.load
        failed = sum(bool(trial.invalid) and trial.asked.load == load for trial in self._trials)
        is_below = any(trial.asked.load > load for trial in self._valid())  # it can offer that
        if failed < (_MOST_FAILED if is_below else 2):
            reason = "again: the last one was invalid"
            self._again.append(Step(load, invalid.asked.duration_s, reason))
            return
        self._limited = invalid.invalid
        below = self._offered_below(load) if self._is_adaptive else None
        if below is not None:
            self.goal = replace(self.goal, max_load=self.goal.within(below))
            return
        what = f"A load of {load:.4g} was not" if is_below else "No greater load was"
        notice = Notice.warning(Code.GENERATOR_LIMIT, f"{what} offered: {invalid.invalid}.")
        ending = Ending(PeakStatus.NOT_SATURATED, notices=(notice,))
        if is_below:
            ending = Ending(PeakStatus.FAILED, self._so_far(), (notice,))
        self._ending = self._refuse_all_invalid(PeakStatus.FAILED) or ending

    def _refuse_all_invalid(self, status: PeakStatus) -> Ending | None:
        """Return an ending if trials were run, and all were invalid; else None."""
        if not self._trials or self._valid():
            return None
        n, why = len(self._trials), self._trials[-1].invalid
        trials = "the only trial was" if n == 1 else f"all {n} trials were"
        sentence = f"No load could be offered on time: {trials} invalid, since {why}."
        return Ending(status, notices=(Notice.warning(Code.GENERATOR_LIMIT, sentence),))

    def _offered_below(self, load: float) -> float | None:
        """Return the greatest load to continue with below an impossible one; None without one."""
        ratios = {trial.asked.load: trial.ratio or 0.0 for trial in self._valid()}
        top = max(ratios, default=0.0)
        if load <= top:
            return None
        if load > top * (1.0 + self.goal.width):
            below = math.sqrt(load * top) if top else load / _STRIDE_DOWN
            is_late_at_any = not top and len(self._trials) >= _MOST_FAILED
            return None if is_late_at_any or below < self.goal.min_load else below
        return top if max(ratios.values()) >= 1.0 else None


def _all_limits(
    threshold_s: float | None, p95_threshold_s: float | None, limits: Sequence[Limit]
) -> tuple[Limit, ...]:
    """Return all limits, at least one, and one of each metric."""
    wrong = [limit for limit in limits if not isinstance(limit, Limit)]
    refuse(f"limits hold {short(limit)}, expected a Limit" for limit in wrong)
    named = ((MEAN, threshold_s), (P95, p95_threshold_s))
    found = [Limit(metric=metric, at_most=most) for metric, most in named if most is not None]
    found += limits
    times = Counter(limit.metric for limit in found)
    refuse(
        [] if found else ["no limit is given, expected threshold_s, p95_threshold_s or limits"],
        (f"{metric!r} has {n} limits, expected one" for metric, n in times.items() if n > 1),
    )
    return tuple(found)


def _binding(trials: Sequence[Trial], load: Estimate | None) -> str:
    """Return the metric that is nearest to its limit at the load nearest to the peak."""
    if load is None or not trials:
        return ""
    nearest = min(trials, key=lambda trial: abs(math.log(trial.asked.load / load.value)))
    return nearest.binding


def _goodput(trials: Sequence[Trial], kept: float | None) -> float | None:
    """Return the answers within the limits per second, at the greatest load that kept them."""
    rates = []
    for trial in trials:
        answers = trial.result.within_limits
        answers = trial.result.completed if answers is None else answers
        if trial.asked.load == kept and answers is not None:
            rates.append(answers / max(trial.ran_s, trial.asked.duration_s))
    return sum(rates) / len(rates) if rates else None
