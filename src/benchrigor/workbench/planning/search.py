"""The search for a peak: it asks for trials, and takes their results; and its expected cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import attempt, refuse, wrong_number
from benchrigor.model.series import short
from benchrigor.units import show_duration
from benchrigor.workbench.data import (
    MEAN,
    P95,
    Limit,
    LoadResult,
    LoadTrial,
    PeakRate,
    PeakStatus,
    Trial,
)
from benchrigor.workbench.planning import adaptive_search, steps
from benchrigor.workbench.planning.published_search import published_policy
from benchrigor.workbench.planning.steps import AskedPlans, Ending, Judge, Step
from benchrigor.workbench.settings import ADAPTIVE, GOAL

RATE = "req/s"  # unit of loads by which counts of requests are checked
_MOST_TRIALS, _MOST_PUBLISHED = 1_000, 10_000  # a strawman takes 1,200 to 2,500/s
_MOST_FAILED = 5
_STRIDE_DOWN = 4.0  # while no load could be offered
_MOST_EXPECTED = 100  # trials of a simulated search, as its decisions take ever longer
_TIMES = (2.0, 10.0, 100.0)  # simulated peaks over the first load
_SPARE, _NOISE = 0.2, 0.12  # share of spare capacity at the peak; noise of a trial
_CAPPED = 0.5  # of the duration: above the capacity a queue grows during the whole trial


class PeakSearch:
    """Find the greatest load at which a server keeps its limits.

    It runs nothing itself: the caller asks for a trial, runs it and passes the result back. Several
    trials may be under way at the same time.

    Parameters
    ----------
    threshold_s, p95_threshold_s
        Limits of the mean and of the 95th percentile of the response, in seconds.
    limits
        Further limits; one or more in all. The response of a trial is its greatest value over its
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
        When an argument is out of range, or no limit is given.

    Notes
    -----
    The published policies are from Shivam et al. (USENIX ATC 2008), Algorithms 2 to 4; "adaptive"
    is this library's own, see `workbench.planning.adaptive_search`.

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
        problems: list[str] = []
        found = attempt(problems, _all_limits, threshold_s, p95_threshold_s, limits) or ()
        goal = attempt(problems, lambda: steps.SearchGoal(**{name: given[name] for name in GOAL}))
        if problems or goal is None:
            raise InvalidInput(problems)
        self.limits, self.goal = found, goal
        self._is_adaptive = goal.is_adaptive
        self._judge = Judge(limits=found, goal=goal, is_rate=unit == RATE and not whole)
        # The number of requests of users and connections is unknown.
        is_counted = goal.is_adaptive and not whole
        self._least_requests = steps.least_requests(found) if is_counted else 0
        self._policy: steps.Policy = (
            adaptive_search.adaptive if goal.is_adaptive else published_policy(policy)
        )
        self._trials: list[Trial] = []
        self._asked = AskedPlans[LoadTrial]("trial")
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
        self._asked.check(trial)
        self._judge.refuse_wrong_counts(trial, result)
        counted = self._judge.judge(trial, result)
        self._asked.end(trial)
        self._take(counted)

    def recall(self, trial: LoadTrial, result: LoadResult) -> None:
        """Add a trial of an earlier search with the same limits, to continue that search."""
        self._take(self._judge.judge(trial, result))
        self._asked.recall(trial)
        self._again = [step for step in self._again if step.load != trial.load]

    def cut(self, trial: LoadTrial, sentence: str) -> None:
        """End the search, as the budget was spent during a trial, which does not count."""
        self._asked.end(trial)
        ending = self._out_of_budget()
        notice = Notice.of(Code.CUT_ROUND, "trial", why_=sentence)
        self._ending = replace(ending, notices=(*ending.notices, notice))

    def _take(self, trial: Trial) -> None:
        self._trials.append(trial)
        if trial.invalid and self._ending is None:
            self._repeat_or_limit(trial)

    def result(self) -> PeakRate:
        """Return the present knowledge of the peak, also while the search runs."""
        trials, ending = self._valid(), self._ending
        load = ending.load if ending is not None else self._so_far()
        kept, saturated = steps.highest_kept(trials), steps.lowest_saturated(trials)
        if load is not None:  # trials on the wrong side of it were chance
            kept = steps.highest_kept([trial for trial in trials if trial.asked.load <= load.value])
            above = [trial for trial in trials if trial.asked.load > load.value]
            saturated = steps.lowest_saturated(above)
        status = None if ending is None else ending.status
        if status is PeakStatus.SATURATED_AT_LOWEST:  # trials that kept the limits were chance
            kept, saturated = None, min(trial.asked.load for trial in trials)
        unread = _note_unread(self.limits, trials)
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
            notices=() if ending is None else (*ending.notices, *unread),
        )

    @property
    def last(self) -> Trial:
        """The last finished trial."""
        return self._trials[-1]

    @property
    def spent_s(self) -> float:
        """The total cost of finished trials."""
        return sum(trial.cost_s for trial in self._trials)

    def _valid(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.counts]

    def _next_step(self) -> Step | Ending:
        most = _MOST_TRIALS if self._is_adaptive else _MOST_PUBLISHED
        pending = self._asked.under_way
        if len(self._trials) + len(pending) >= most:
            return self._out_of_budget()
        step = self._policy(self._valid(), pending, self.goal.by_now(self._trials))
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
        return min(least_s, self.goal.budget_s / steps.IN_BUDGET)

    def _plan(self, step: Step) -> LoadTrial:
        trial = LoadTrial(
            id=self._asked.next, load=step.load, duration_s=step.duration_s, reason=step.reason
        )
        return self._asked.add(trial)

    def _affordable(self, step: Step) -> Step | None:
        """Return the step, shortened if necessary, if it fits into the budget; else None."""
        goal = self.goal.by_now(self._trials)
        left_s = goal.left_s(self._trials, self._asked.under_way)
        if left_s >= step.duration_s:
            return step
        is_enough = left_s >= max(goal.shortest_s, self._least_s(step))
        is_enough &= self._is_adaptive and goal.trial_s is None
        return replace(step, duration_s=left_s) if is_enough else None

    def _finish(self, ending: Ending) -> Ending:
        """Report the limit of the generator, or of the search, that kept it from the peak."""
        least = min((trial.asked.load for trial in self._valid()), default=0.0)
        is_lowest = ending.status is PeakStatus.SATURATED_AT_LOWEST and least == self.goal.min_load
        if is_lowest and not ending.notices and not self.goal.whole:
            notice = Notice.of(Code.NOT_CONVERGED, "least load", load_=least)
            return replace(ending, notices=(notice,))
        if ending.status is not PeakStatus.NOT_SATURATED or not self._limited:
            return ending
        return replace(ending, notices=(Notice.of(Code.GENERATOR_LIMIT, why_=self._limited),))

    def _so_far(self) -> Estimate | None:
        return adaptive_search.so_far(self._valid(), self.goal) if self._is_adaptive else None

    def _out_of_budget(self) -> Ending:
        if ending := self._refuse_all_invalid(PeakStatus.BUDGET_SPENT):
            return ending
        load, kept = self._so_far(), steps.highest_kept(self._valid())
        wanted = None if load is None else self.goal.accuracy * load.value
        price = ""
        if load is None and kept is not None and self._is_adaptive:
            needed_s = self.goal.by_now(self._trials).usual_s(self._least_requests / kept)
            if needed_s > (self.goal.budget_s or math.inf):
                price = f" A peak near {kept:.3g} takes about {show_duration(needed_s)}."
        notice = Notice.of(Code.NOT_CONVERGED, "search", price_=price, wanted=wanted)
        return Ending(PeakStatus.BUDGET_SPENT, load, (notice,))

    def _repeat_or_limit(self, invalid: Trial) -> None:
        """Repeat an invalid trial once; then search below it, or end if that is impossible.

        A load that is not at fault is repeated more often: below a valid one others probably
        disturbed the generator for a while, and a host that was lost is left out from then on.
        """
        load, is_lost = invalid.asked.load, bool(invalid.result.invalid)
        alike = [trial for trial in self._trials if bool(trial.result.invalid) == is_lost]
        failed = sum(bool(trial.invalid) and trial.asked.load == load for trial in alike)
        is_fine = is_lost or any(trial.asked.load > load for trial in self._valid())
        if failed < (_MOST_FAILED if is_fine else 2):
            reason = "again: the last one was invalid"
            self._again.append(Step(load, invalid.asked.duration_s, reason))
            return
        can_continue = self._is_adaptive and not is_fine
        if can_continue and (below := self._offered_below(load)) is not None:
            self._limited = invalid.invalid
            self.goal = replace(self.goal, max_load=self.goal.within(below))
            return
        which = "one" if is_fine else ""
        notice = Notice.of(Code.GENERATOR_LIMIT, which, load_=load, why_=invalid.invalid)
        ending = Ending(PeakStatus.NOT_SATURATED, notices=(notice,))
        if is_fine:
            ending = Ending(PeakStatus.FAILED, self._so_far(), (notice,))
        self._ending = self._refuse_all_invalid(PeakStatus.FAILED) or ending

    def _refuse_all_invalid(self, status: PeakStatus) -> Ending | None:
        """Return an ending if trials were run, and all were invalid; else None."""
        if not self._trials or self._valid():
            return None
        n, why = len(self._trials), self.last.invalid
        which = "the only trial was" if n == 1 else f"all {n} trials were"
        notice = Notice.of(Code.GENERATOR_LIMIT, "none", which_=which, why_=why)
        return Ending(status, notices=(notice,))

    def _offered_below(self, load: float) -> float | None:
        """Return the greatest load to continue with below an impossible one; None without one."""
        ratios = {trial.asked.load: trial.ratio or 0.0 for trial in self._valid()}
        top = max(ratios, default=0.0)
        if load <= top:
            return None
        if load > top * (1.0 + self.goal.width):
            below = math.sqrt(load * top) if top else load / _STRIDE_DOWN
            late = [trial for trial in self._trials if not trial.result.invalid]
            is_late_at_any = not top and len(late) >= _MOST_FAILED
            return None if is_late_at_any or below < self.goal.min_load else below
        return top if max(ratios.values()) >= 1.0 else None


def _all_limits(
    threshold_s: float | None, p95_threshold_s: float | None, limits: Sequence[Limit]
) -> tuple[Limit, ...]:
    """Return all limits, one or more, and one of each metric."""
    named = (("threshold_s", MEAN, threshold_s), ("p95_threshold_s", P95, p95_threshold_s))
    refuse(
        (f"limits hold {short(one)}, expected a Limit" for one in limits if type(one) is not Limit),
        *(wrong_number(name, most) for name, _, most in named if most is not None),
    )
    found = [Limit(metric=metric, at_most=most) for _, metric, most in named if most is not None]
    found += limits
    times = Counter(limit.metric for limit in found)
    refuse(
        [] if found else ["no limit is given, expected threshold_s, p95_threshold_s or limits"],
        (f"{metric!r} has {n} limits, expected one" for metric, n in times.items() if n > 1),
    )
    return tuple(found)


def _note_unread(limits: Sequence[Limit], trials: Sequence[Trial]) -> Iterator[Notice]:
    """Report limits without a value in any trial."""
    names = [
        repr(limit.metric)
        for limit in limits
        if all(trial.result.value(limit.metric) is None for trial in trials)
    ]
    if trials and names:
        yield Notice.of(Code.LIMIT_NOT_CHECKED, names_=" or ".join(names))


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
            rates.append(answers / max(trial.result.run_s or 0.0, trial.asked.duration_s))
    return sum(rates) / len(rates) if rates else None


# --- the expected cost of a search, from simulated servers with known peaks


class SimulatedServer:
    """Serves one request after the other (M/M/1); a `LoadGenerator`.

    Parameters
    ----------
    capacity
        Requests that it serves per second. The mean response is 1 / (capacity - load), so that it
        keeps a limit up to a load of capacity - 1 / limit.
    noise
        Relative standard deviation of the mean response of a trial of a minute; it is proportional
        to 1 / sqrt(duration).
    seed
        Of the noise.

    Examples
    --------
    >>> server = SimulatedServer(200.0)
    >>> server.offer(LoadTrial(id=0, load=175.0, duration_s=60.0)).mean_response_s
    0.04
    """

    def __init__(self, capacity: float, *, noise: float = 0.0, seed: int = 1) -> None:
        self.capacity, self.noise = capacity, noise
        self._rng = np.random.default_rng(seed)

    def peak(self, limit_s: float) -> float:
        """Return the greatest load at which the mean response keeps a limit."""
        return self.capacity - 1.0 / limit_s

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Carry out a trial, at once."""
        spare, duration_s = self.capacity - trial.load, trial.duration_s
        mean_s = min(1.0 / spare if spare > 0.0 else math.inf, _CAPPED * duration_s)
        mean_s *= math.exp(self._rng.normal(0.0, self.noise * math.sqrt(60.0 / duration_s)))
        requests = int(self._rng.poisson(trial.load * duration_s))
        return LoadResult(
            mean_response_s=mean_s,
            p95_response_s=-math.log(0.05) * mean_s,  # responses of M/M/1 are exponential
            scheduled=requests,
            sent=requests,
        )


def wrong_budget(options: Mapping[str, Any]) -> list[str]:
    """Return the problem of a budget that is shorter than a trial of the search."""
    budget_s = options["budget_s"]
    if budget_s is None or PeakSearch(**options).ask() is not None:
        return []
    return [f"budget is {show_duration(budget_s)}, and a trial takes longer: expected more"]


def expected_costs(options: Mapping[str, Any]) -> list[PeakRate]:
    """Return the results of searches with these options, for several peaks.

    The servers serve one request after the other; the mean of a trial of a minute varies by 12 %.
    A search of the default policy stops unfinished after a hundred trials.
    """
    most = _MOST_EXPECTED if options.get("policy", ADAPTIVE) == ADAPTIVE else math.inf
    found = []
    for times in _TIMES:
        peak = times * PeakSearch(**options).goal.seed_load
        server = SimulatedServer(peak / (1.0 - _SPARE), noise=_NOISE)
        mean = Limit(metric=MEAN, at_most=1.0 / (server.capacity - peak))
        limits = [mean, *(_met_with(mean, given) for given in options["limits"])]
        by_metric = {limit.metric: limit for limit in limits}
        search = PeakSearch(**{**options, "limits": [*by_metric.values()], "max_load": None})
        while len(search.result().trials) < most and (trial := search.ask()) is not None:
            search.tell(trial, server.offer(trial))
        found.append(search.result())
    return found


def _met_with(mean: Limit, limit: Limit) -> Limit:
    """Return a limit of the same metric that such servers keep up to the same load as ``mean``."""
    if limit.metric == MEAN:
        return mean
    q = 1.0 - limit.at_most if limit.conditions else limit.quantile  # responses are exponential
    if q is None:
        return limit
    at_most = -math.log(1.0 - q) * mean.at_most
    return Limit(metric=f"p{100.0 * q:.10g}", at_most=at_most)
