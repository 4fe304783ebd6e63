"""Carries out a search for a peak: asks for trials, offers the loads, and stores the results."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from benchrigor.errors import BenchrigorError, WorkloadFailed
from benchrigor.model import Code, Options, Round, RunRecord, StopReason, codec
from benchrigor.model.metric import describe_metric
from benchrigor.model.options import LATEST
from benchrigor.model.run import Provenance
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Store
from benchrigor.safe_text import hide_secrets
from benchrigor.units import show_duration, show_value
from benchrigor.workbench import loadgen
from benchrigor.workbench.campaign import Campaign, Carried, fact_in, here, round_of
from benchrigor.workbench.data import (
    Limit,
    LoadGenerator,
    LoadResult,
    LoadTrial,
    PeakRate,
    PeakStatus,
    Trial,
)
from benchrigor.workbench.loadgen.senders import Senders
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.pool import HostTable, Pool, executor_for
from benchrigor.workbench.settings import ADAPTIVE, LOADS, SENDING
from benchrigor.workloads import Pick
from benchrigor.workloads.named_functions import imported
from benchrigor.workloads.processes.command_line import CommandLine, run_hook
from benchrigor.workloads.processes.time_limits import CallLimit, CallOverran

KIND = "peak"  # of the subject of such a run
_TRIAL = "trial"  # the fact of a round that holds it
PUBLISHED_ACCURACY = 0.10  # of the policies other than "adaptive"
_BUDGET_S = 240.0  # of the policy "adaptive"
_REASONS: dict[PeakStatus | None, StopReason] = {
    PeakStatus.FOUND: StopReason.SATISFIED,
    PeakStatus.BUDGET_SPENT: StopReason.TIME_BUDGET,
}
After = Callable[[Trial, PeakRate], object]


class PeakRun(Carried):
    """Carries out a search, and stores it as a run with trials as rounds.

    Parameters
    ----------
    search
        The search, which asks for trials.
    name
        Of the server, for people.
    options, generator
        The options of `PeakSearch` by name, as `search_of` needs them; and a description of the
        load generator.
    subject
        Further facts on the measured subject, for programs.
    store
        The store of trials; None without one.
    now_ns
        A clock, for the time between trials, which also counts for the budget.

    Examples
    --------
    >>> class Fake:
    ...     def offer(self, trial):
    ...         spare = 200.0 - trial.load
    ...         return LoadResult(mean_response_s=1 / spare if spare > 0 else 9.0)
    >>> run = PeakRun(PeakSearch(threshold_s=0.04), name="a queue")
    >>> run.carry_out(Fake()).load.low < 175.0
    True
    """

    def __init__(
        self,
        search: PeakSearch,
        *,
        name: str,
        options: Mapping[str, Any] | None = None,
        generator: Mapping[str, Any] | None = None,
        subject: Mapping[str, Any] | None = None,
        provenance: Provenance | None = None,
        store: Store | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.search, self._now_ns = search, now_ns
        self._ahead: LoadTrial | None = None  # asked for already
        self._idle_ns, self._prepared_s = 0, 0.0
        self._metric = describe_metric("peak", search.unit)
        goal = search.goal
        self._budget_s = math.inf if goal.budget_s is None else goal.budget_s
        self.campaign = Campaign(
            self,
            KIND,
            {"search": options or {}, "generator": generator or {}, **(subject or {})},
            store,
            now_ns=now_ns,
            name=name,
            metrics=(self._metric,),
            options=Options(
                target=goal.accuracy, confidence=goal.confidence, budget_s=self._budget_s
            ),
            provenance=provenance,
        )

    @classmethod
    def resumed(cls, search: PeakSearch, record: RunRecord, store: Store) -> PeakRun:
        """Take up a stored search; ``search`` already has its trials."""
        found = cls(search, name=record.name, store=store)
        found.campaign.take_up(record)
        return found

    def carry_out(
        self,
        generator: LoadGenerator,
        *,
        after: After = lambda *_: None,
        prepared_s: float = 0.0,
    ) -> PeakRate:
        """Run trials until the search is over; pass results to ``after`` once the next is known.

        A trial that lasts two seconds longer than the budget is ended, and so is the search.
        ``prepared_s`` of the budget were spent before the first one, to prepare it.

        Time that a generator does not account for, such as starting processes, counts as set-up.

        If an error ends the search, the error has the finished trials as ``record``.
        """
        self._idle_ns, self._prepared_s = self._now_ns(), prepared_s

        def follow() -> None:
            self._ahead = self.search.ask()  # which may end the search
            after(self.search.last, self.search.result())

        found: PeakRate = self.campaign.carry_out(
            here(partial(self._offer, generator)), after=follow
        )
        return found

    def ask(self) -> LoadTrial | None:
        """Return the next trial."""
        ahead, self._ahead = self._ahead, None
        return self.search.ask() if ahead is None else ahead

    def _offer(self, generator: LoadGenerator, trial: LoadTrial) -> LoadResult | None:
        """Offer the load of a trial; return None if it was ended at the end of the budget."""
        begun_ns, left_s = self._now_ns(), self.left_s() - self._prepared_s
        decision_s, self._prepared_s = (begun_ns - self._idle_ns) / 1e9, 0.0
        try:
            with _ended_with_budget(left_s):
                result = generator.offer(trial)
        except CallOverran:
            self.search.cut(trial, self._say_cut(trial, self._now_ns() - begun_ns))
            return None
        self._idle_ns = self._now_ns()
        if not result.spent_s:
            return result
        spent_s = {"decision": decision_s, **result.spent_s}
        other_s = (self._idle_ns - begun_ns) / 1e9 - sum(result.spent_s.values())
        if other_s > 0.0:
            spent_s["set-up"] = spent_s.get("set-up", 0.0) + other_s
        return replace(result, spent_s=spent_s)

    def tell(self, trial: LoadTrial, result: LoadResult | None, _spent_s: float, /) -> Round | None:
        """Take the result of a trial; return it as it is stored."""
        if result is None:
            return None
        self.search.tell(trial, result)
        return _round_of(self.search.last)

    def left_s(self) -> float:
        """Return the rest of the budget in seconds."""
        return self._budget_s - self.search.spent_s

    def _say_cut(self, trial: LoadTrial, elapsed_ns: int) -> str:
        """Return the sentence on a trial that was ended at the end of the budget."""
        load = show_value(trial.load, self.search.unit)
        return (
            f"The trial at {load} was ended after {show_duration(elapsed_ns / 1e9)}, because the "
            "budget was spent: nothing of it counts. Check that it cannot hang, or allow more."
        )

    def result(self) -> PeakRate:
        """Return the present knowledge of the peak."""
        return self.search.result()

    def record(self) -> RunRecord:
        """Return the run so far."""
        return self.campaign.record()

    def estimates(self) -> Iterator[Mapping[str, Any]]:
        """Yield the load, and how many trials count."""
        found = self.search.result()
        known = {"metric": self._metric, "estimate": found.load, "notices": found.notices}
        yield {**known, "n_kept": sum(trial.counts for trial in found.trials)}

    def reason(self) -> StopReason:
        """Return why the search ended."""
        return _REASONS.get(self.search.result().status, StopReason.EXHAUSTED)


class _Overtime(CallLimit):
    """Ends the code inside at the first check, two seconds after the time is up."""

    def _is_late(self) -> bool:
        return True


def _ended_with_budget(left_s: float) -> AbstractContextManager[None]:
    """Raise CallOverran inside, two seconds after the seconds left of a budget have passed.

    `CallLimit` documents where it cannot interrupt.
    """
    is_limited = left_s < threading.TIMEOUT_MAX
    return _Overtime().kept(max(left_s, 0.0) / LATEST if is_limited else None)


def find_peak(run: PeakRun, generator: Prepared, *, after: After) -> PeakRate:
    """Carry out a search; the preparation of its first trial counts for the budget, too."""
    begun_s = time.monotonic()
    try:
        with _ended_with_budget(run.left_s()):
            generator.check()
        prepared_s = time.monotonic() - begun_s
        return run.carry_out(generator, after=after, prepared_s=prepared_s)
    except CallOverran:
        raise WorkloadFailed(
            f"The first trial was not prepared, nor a request answered, within the "
            f"{show_duration(run.left_s())} of the budget: check that it cannot hang, or allow more"
        ) from None
    finally:
        generator.close()


def search_options(
    given: Mapping[str, Any], *, load: str, limits: Sequence[Limit], accuracy: float
) -> dict[str, Any]:
    """Return the options of `PeakSearch`: those that are given, and what else its policy wants.

    ``accuracy`` is for the policy "adaptive".
    """
    is_adaptive = given.get("policy", ADAPTIVE) == ADAPTIVE
    return {
        "accuracy": accuracy if is_adaptive else PUBLISHED_ACCURACY,
        "budget_s": _BUDGET_S if is_adaptive else None,
        "whole": load != "rate",
        "unit": LOADS[load],
        **given,
        "limits": limits,
    }


def peak_of(record: RunRecord) -> PeakRate:
    """Return the result of a stored search, finished or not."""
    search = search_of(record)
    trial = search.ask() if record.decision is not None else None  # None if it ended by itself
    if trial is not None:
        cuts = [notice for notice in record.notices if notice.code is Code.CUT_ROUND]
        search.cut(trial, cuts[-1].sentence if cuts else "The search ended before its last trial.")
    return search.result()


def search_of(record: RunRecord, **changed: Any) -> PeakSearch:
    """Return the search of a stored run with all its trials; ``changed`` replaces options."""
    options = {**record.subject["search"], **changed}
    options["limits"] = [codec.decode(Limit, limit) for limit in options["limits"]]
    search = PeakSearch(**options)
    for finished in record.rounds:
        search.recall(*_trial_of(finished))
    return search


def _round_of(trial: Trial) -> Round:
    """Return a trial as it is stored; `_trial_of` reads it."""
    asked, result = trial.asked, trial.result
    values = {"mean": result.mean_response_s, "p95": result.p95_response_s, **result.metrics}
    known = {name: value for name, value in values.items() if value is not None}
    facts = {_TRIAL: {"asked": asked, "result": result}}
    plan = {"work": asked.load, "seconds": asked.duration_s}
    return round_of(asked.id, trial.cost_s, facts, known, **plan)


def _trial_of(finished: Round) -> tuple[LoadTrial, LoadResult]:
    facts = dict(finished.facts)
    if _TRIAL in facts:
        told = fact_in(finished, _TRIAL)
        return codec.decode(LoadTrial, told["asked"]), codec.decode(LoadResult, told["result"])
    # Earlier versions kept a fact for each field, items of mappings as field.key.
    plan, nested = finished.plan, dict[str, Any]()
    asked = LoadTrial(
        id=plan.index,
        load=float(plan.work or 0.0),
        duration_s=plan.seconds or 0.0,
        reason=str(facts.pop("reason")),
    )
    for name, value in facts.items():
        field, dot, key = name.partition(".")
        if dot:
            nested.setdefault(field, {})[key] = value
        else:
            nested[field] = value
    return asked, codec.decode(LoadResult, nested)


# --- the load generator that `peak` describes


class Prepared:
    """A load generator with commands before a trial, and after a crash of the server."""

    def __init__(
        self,
        generator: loadgen.OpenLoop | loadgen.LoadCommand,
        *,
        prepare: Callable[[], object],
        recover: Callable[[], object],
    ) -> None:
        self._generator, self._prepare, self._recover = generator, prepare, recover
        self._broken: BenchrigorError | None = None  # why the server did not recover
        self._checked_s: float | None = None  # duration of the check, which prepares a first trial

    def check(self) -> None:
        """Prepare the first trial, and check that the server answers."""
        begun_s = time.monotonic()
        self._prepare()
        self._generator.check()
        self._checked_s = time.monotonic() - begun_s

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Prepare, carry out the trial, and recover.

        If the server does not recover, the next trial fails: this one shows the breaking load.
        """
        if self._broken is not None:
            raise self._broken
        setup_s, self._checked_s = self._checked_s, None
        if setup_s is None:
            begun_s = time.monotonic()
            self._prepare()
            setup_s = time.monotonic() - begun_s
        result = self._generator.offer(trial)
        begun_s = time.monotonic()
        if result.crashed:
            try:
                self._recover()
                self._generator.check()
            except BenchrigorError as error:
                self._broken = error
            except CallOverran:
                self._broken = WorkloadFailed(
                    "The server had not recovered by the end of the budget"
                )
        spent_s = {"set-up": setup_s, **result.spent_s}
        spent_s["teardown"] = spent_s.get("teardown", 0.0) + time.monotonic() - begun_s
        return replace(result, spent_s=spent_s)

    def close(self) -> None:
        """Release the generator."""
        self._generator.close()


def _pool(described: Mapping[str, Any]) -> Pool:
    """Return the sending hosts, held for the search; a resumed one can take them at once."""
    executor = executor_for(HostTable(**described["hosts"]))
    return Pool(executor, owner=described["owner"], timed=True)


def _hook(command: str | None, option: str, cwd: str | None) -> Callable[[], object]:
    """Return what runs a command that is given as a text."""
    if command is None:
        return lambda: None
    words = words_of(command, f"{option} {hide_secrets(command)!r}")
    return partial(run_hook, option, words, CommandLine(words, cwd=cwd))


def generator_of(
    described: Mapping[str, Any],
    limits: Sequence[Limit],
    *,
    cwd: str | None = None,
    recover: Callable[[], object] | None = None,
    senders: Senders | None = None,
) -> Prepared:
    """Return the load generator that `peak` describes; ``recover`` replaces its command.

    Commands run in ``cwd``, or in the folder of the description; ``senders`` replace its own.
    """
    cwd = cwd or described.get("cwd")
    made: loadgen.OpenLoop | loadgen.LoadCommand
    if described["kind"] == "command":
        picks, is_rate = map(Pick.parse, described["read"]), described["load"] == "rate"
        how: dict[str, Any] = {"limits": limits, "is_rate": is_rate, "cwd": cwd}
        made = loadgen.LoadCommand(described["words"], [*picks], **how)
    else:
        requests: Any
        if described["kind"] == "target":
            requests = imported(described["words"][0], described["cwd"])
        else:
            kinds = [loadgen.HttpRequest(**request) for request in described["requests"]]
            requests = loadgen.HttpRequests(kinds=kinds)
        if described.get("hosts"):
            senders = loadgen.HostSenders(partial(_pool, described))
        sending = {name: described[name] for name in SENDING}
        made = loadgen.OpenLoop(requests, limits, senders=senders, **sending)
    return Prepared(
        made,
        prepare=_hook(described["prepare"], "--prepare", cwd),
        recover=recover or _hook(described["recover"], "--recover", cwd),
    )
