"""A choice in a campaign: what it asks for, and how its turns are stored and read again."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Analysis,
    Estimate,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
    codec,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.one_line import OneLine
from benchrigor.protocols import Store
from benchrigor.workbench.campaign import Campaign
from benchrigor.workbench.maps.map_file import MapFile, PeakResponse, map_of
from benchrigor.workbench.maps.map_run import surface_of
from benchrigor.workbench.maps.responses import metric_of
from benchrigor.workbench.planning.best_choice import UNDECIDED, BestChoice, Choice, Turn
from benchrigor.workbench.pool.host_table import executor_for
from benchrigor.workbench.surfaces.samples import Sample

KIND = "choice"  # of the subject of such a run
MAP = "map"  # the run of its map, in the subject
_TURN = "turn"  # the fact of a round that holds it
_ACCURACY = 0.05  # of answers
_MOST = 5  # configurations at the beginning


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

    def tell(self, choice: BestChoice, tell: Callable[..., None]) -> None:
        """Pass it to a choice; ``tell`` takes turns of this or of an earlier process."""
        if self.lost:
            choice.withdraw(self.turn)
        else:
            tell(self.turn, self.estimates, better_than=self.better_than, cost_s=self.cost_s)


class ChoiceRun:
    """A choice, which a campaign carries out and stores as a run with turns as rounds.

    Parameters
    ----------
    subject
        What a later process needs to continue: the file of the map, points, seeds, hosts, budget.
    store
        The store of turns; None without one.
    now_ns
        A clock for the costs of turns.
    header
        The name and provenance of the run.
    """

    def __init__(
        self,
        subject: Mapping[str, Any],
        store: Store | None,
        *,
        now_ns: Callable[[], int] = time.perf_counter_ns,
        **header: Any,
    ) -> None:
        file = map_of(subject["file"])
        self.subject, self.file, self.choice = subject, file, _planner_of(subject, file)
        self._metric = metric_of(file.response)
        self.campaign = Campaign(
            self,
            KIND,
            subject,
            store,
            now_ns=now_ns,
            metrics=(self._metric,),
            options=Options(budget_s=math.inf),
            **header,
        )
        self._busy: set[str] = set()  # hosts
        self._waiting: list[Turn] = []  # of busy hosts

    @classmethod
    def after(cls, record: RunRecord, file: MapFile, store: Store) -> ChoiceRun:
        """Begin a choice among the leading points of a map, within the rest of its budget.

        Raises
        ------
        NotEstimable
            When the map has no model.
        InvalidInput
            When nothing of its budget is left.
        """
        metric, surface = record.metrics[0], surface_of(record)
        left_s = None if file.budget_s is None else file.budget_s - (record.elapsed_s or 0.0)
        points = surface.leading(_MOST, metric.name)
        if left_s is not None and left_s <= 0.0:
            raise InvalidInput(
                "the map took all of its budget, expected some of it left for --best"
            )
        is_peak = isinstance(file.response, PeakResponse)
        subject = {
            **{name: record.subject[name] for name in ("file", "cwd")},
            "points": points,
            "seeds": [
                surface.predict(point, metric.name).value if is_peak else None for point in points
            ],
            "hosts": _hosts_of(file),
            "budget_s": left_s,
            MAP: record.run_id,
        }
        return cls(subject, store, name=f"best of {record.name}", provenance=record.provenance)

    @classmethod
    def resume(cls, record: RunRecord, store: Store | None, **changed: Any) -> ChoiceRun:
        """Take up a stored choice with its turns; ``changed`` replaces parts of its subject."""
        run = cls({**record.subject, **changed}, store, name=record.name)
        run.campaign.take_up(record)
        for done in turns_of(record):
            done.tell(run.choice, run.choice.recall)
        return run

    def samples_of(self, turn: Turn) -> list[Sample]:
        """Return the samples of a turn, in its order."""
        places = [self.subject["points"].index(dict(point)) for point in turn.points]
        accuracy, seeds = self.file.design.get("target", _ACCURACY), self.subject["seeds"]
        return [
            Sample(id=at, point=point, seed_load=seeds[at], accuracy=accuracy)
            for at, point in zip(places, turn.points, strict=True)
        ]

    def ask(self) -> Turn | None:
        """Return the next turn of a free host: a host measures one turn at a time.

        Turns that wait for their hosts do not count for the budget.
        """
        turn = next((turn for turn in self._waiting if turn.host not in self._busy), None)
        if turn is not None:
            self._waiting.remove(turn)
        while turn is None and (asked := self.choice.ask()) is not None:
            if asked.host in self._busy:
                self._waiting.append(asked)
            else:
                turn = asked
        self._busy.update([] if turn is None else [turn.host])
        return turn

    def tell(self, turn: Turn, done: TurnDone, took_s: float, /) -> Round:
        """Take the result of a turn; return it as it is stored."""
        done = replace(done, cost_s=done.cost_s or took_s)
        done.tell(self.choice, self.choice.tell)
        self._busy.remove(turn.host)
        for own in [own for own in self._waiting if done.lost and own.host == turn.host]:
            self._waiting.remove(own)
            self.choice.withdraw(own)
        return Round(
            plan=RoundPlan(index=len(self.campaign.rounds)),
            elapsed_ns=round(done.cost_s * 1e9),
            readings={},
            facts={_TURN: json.dumps(codec.encode(done))},
        )

    def result(self) -> Choice:
        """Return the choice so far."""
        return self.choice.result()

    def reason(self, *, is_late: bool) -> StopReason:  # noqa: ARG002  # a budget ends it, too
        """Return why the choice is over."""
        is_decided = self.choice.result().verdict != UNDECIDED
        return StopReason.SATISFIED if is_decided else StopReason.TIME_BUDGET

    def analyses(self) -> Iterator[Analysis]:
        """Yield the ratio of the choice to the next best point."""
        found = self.choice.result()
        yield Analysis(
            metric=self._metric,
            kind=Kind.READINGS,
            n=len(self.campaign.rounds),
            estimate=found.prediction,
            notices=found.notices,
        )


def turns_of(record: RunRecord) -> Sequence[TurnDone]:
    """Return the turns of a stored choice."""
    return [codec.decode(TurnDone, json.loads(str(turn.facts[_TURN]))) for turn in record.rounds]


def choice_in(record: RunRecord) -> Choice:
    """Return the result of a stored choice, finished or not."""
    choice = ChoiceRun.resume(record, None).choice
    choice.ask()  # to evaluate the last turn
    return choice.result()


def _planner_of(subject: Mapping[str, Any], file: MapFile) -> BestChoice:
    options = {name: file.design[name] for name in ("confidence", "seed") if name in file.design}
    return BestChoice(
        subject["points"],
        subject["hosts"],
        budget_s=subject["budget_s"],
        direction=str(metric_of(file.response).direction),
        **options,
        **file.best,
    )


def _hosts_of(file: MapFile) -> list[str]:
    if not file.has_pool:
        return [platform.node() or "this machine"]
    if file.hosts.names:
        return list(file.hosts.names)
    executor = executor_for(file.hosts)
    executor.close()
    return list(executor.hosts)
