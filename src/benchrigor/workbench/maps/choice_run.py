"""Carries out a choice, and stores its turns on hosts."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from benchrigor.model import (
    Analysis,
    Estimate,
    Metric,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
    codec,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.one_line import OneLine
from benchrigor.model.run import Provenance
from benchrigor.protocols import Store
from benchrigor.workbench.kept_run import KeptRun, keep_record
from benchrigor.workbench.maps.map_run import finish_each
from benchrigor.workbench.planning.best_choice import UNDECIDED, BestChoice, Choice, Turn

KIND = "choice"  # of the subject of such a run
_TURN = "turn"  # the fact of a round that holds it


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone(OneLine):
    """The result of a turn.

    Parameters
    ----------
    estimates, better_than
        In the order of its points: the estimate or None; and the bound, if a point is only known to
        be better than a bound.
    lost
        Why the turn has no result, such as the loss of its host; empty if it counts.
    attempts
        Why it was measured again, by attempt.
    """

    turn: Turn
    estimates: tuple[Estimate | None, ...] = ()
    better_than: tuple[float | None, ...] = ()
    cost_s: float = 0.0
    lost: str = ""
    attempts: tuple[str, ...] = ()


Take = Callable[[Turn], Future[TurnDone]]


class ChoiceRun:
    """Carries out a choice, and stores it as a run with turns as rounds.

    Parameters
    ----------
    choice
        The planner, which asks for turns.
    metric
        The metric of the response to choose by.
    subject
        The facts that a later process needs to continue.
    store
        The store of turns; None without one.
    now_ns
        A clock for the deadline.
    """

    def __init__(
        self,
        choice: BestChoice,
        *,
        name: str,
        metric: Metric,
        subject: Mapping[str, Any] | None = None,
        provenance: Provenance | None = None,
        store: Store | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.choice, self._metric, self._now_ns = choice, metric, now_ns
        self._reason: StopReason | None = None
        self.kept = KeptRun(
            KIND,
            subject,
            store,
            name=name,
            metrics=(metric,),
            options=Options(budget_s=math.inf),
            provenance=provenance,
        )

    @classmethod
    def resume(cls, choice: BestChoice, record: RunRecord, store: Store) -> ChoiceRun:
        """Take up a stored choice, and pass its turns to ``choice``."""
        run = cls(choice, name=record.name, metric=record.metrics[0], store=store)
        run.kept.take_up(record)
        recall_turns(choice, record)
        return run

    def carry_out(
        self,
        take: Take,
        *,
        hosts: int,
        deadline_s: float = math.inf,
        after: Callable[[TurnDone], object] = lambda _: None,
    ) -> Choice:
        """Have turns measured until a point is chosen, or the budget is spent.

        A host measures one turn at a time; waiting turns of this host do not count for the budget.
        ``take`` begins a turn on its host, up to ``hosts`` at once, until ``deadline_s``; ``after``
        is called with every finished turn. Errors have the finished rounds as ``record``.
        """
        self.kept.begin()
        busy: set[str] = set()
        waiting: list[Turn] = []

        def ask() -> Turn | None:
            turn = self._next(waiting, busy)
            busy.update([turn.host] if turn else [])
            return turn

        clock: dict[str, Any] = {"late_ns": self._now_ns() + 1e9 * deadline_s}
        clock["now_ns"] = self._now_ns
        with keep_record(self.record):
            for turn, done, _ in finish_each(ask, take, hosts=hosts, **clock):
                busy.remove(turn.host)
                self._keep(done)
                if done.lost:
                    self._withdraw(waiting, turn.host)
                after(done)
        found = self.choice.result()
        is_decided = found.verdict != UNDECIDED
        self._reason = StopReason.SATISFIED if is_decided else StopReason.TIME_BUDGET
        self.kept.finish(self.record())
        return found

    def _next(self, waiting: list[Turn], busy: Collection[str]) -> Turn | None:
        """Return a turn of a free host; add turns of busy hosts to ``waiting``."""
        for turn in waiting:
            if turn.host not in busy:
                waiting.remove(turn)
                return turn
        while (asked := self.choice.ask()) is not None and asked.host in busy:
            waiting.append(asked)
        return asked

    def _withdraw(self, waiting: list[Turn], host: str) -> None:
        """Withdraw the turns that wait for a lost host."""
        for turn in [turn for turn in waiting if turn.host == host]:
            waiting.remove(turn)
            self.choice.withdraw(turn)

    def _keep(self, done: TurnDone) -> None:
        tell_turn(self.choice, self.choice.tell, done)
        self.kept.add(
            Round(
                plan=RoundPlan(index=len(self.kept.rounds)),
                elapsed_ns=round(done.cost_s * 1e9),
                readings={},
                facts={_TURN: json.dumps(codec.encode(done))},
            )
        )

    def record(self) -> RunRecord:
        """Return the run so far; its estimate is the ratio of the choice to the next best point."""
        found = self.choice.result()
        analysis = Analysis(
            metric=self._metric,
            kind=Kind.READINGS,
            n=len(self.kept.rounds),
            estimate=found.prediction,
            notices=found.notices,
        )
        return self.kept.record(analysis, reason=self._reason)


def turns_of(record: RunRecord) -> Sequence[TurnDone]:
    """Return the turns of a stored choice."""
    return [codec.decode(TurnDone, json.loads(str(turn.facts[_TURN]))) for turn in record.rounds]


def recall_turns(choice: BestChoice, record: RunRecord) -> None:
    """Pass the turns of a stored choice to another one."""
    for done in turns_of(record):
        tell_turn(choice, choice.recall, done)


def tell_turn(choice: BestChoice, tell: Callable[..., None], done: TurnDone) -> None:
    """Pass a turn to a choice; ``tell`` takes turns of this or of an earlier process."""
    if done.lost:
        choice.withdraw(done.turn)
    else:
        tell(done.turn, done.estimates, better_than=done.better_than, cost_s=done.cost_s)
