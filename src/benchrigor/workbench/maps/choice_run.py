"""A choice over hosts in a campaign: how its turns are measured and stored."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Estimate, Options, Round, RunRecord, StopReason, codec
from benchrigor.model.one_line import OneLine
from benchrigor.protocols import Store
from benchrigor.storage import Journal
from benchrigor.workbench.campaign import Campaign, Carried, fact_in, round_of
from benchrigor.workbench.designs import MapSample
from benchrigor.workbench.maps.map_file import MapFile, PeakResponse, map_of
from benchrigor.workbench.maps.map_run import Began, found_in, on_hosts, surface_of
from benchrigor.workbench.maps.responses import metric_of
from benchrigor.workbench.on_host import FAILED, Outcome
from benchrigor.workbench.planning.best_choice import UNDECIDED, BestChoice, Choice, HostTurn
from benchrigor.workbench.pool import executor_for

KIND_OF_CHOICES = "choice"  # the kind of the subject of such a run
OF_MAP = "map"  # the run of its map, in the subject of a choice
_TURN = "turn"  # the fact of a round that holds it
_ACCURACY = 0.05  # of answers
_MOST_CHOSEN_FROM = 5  # configurations at the beginning


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

    turn: HostTurn
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


class ChoiceRun(Carried):
    """A choice, which a campaign carries out and stores as a run with turns as rounds.

    Parameters
    ----------
    subject
        Needed by a later process to continue: the file of the map, points, seeds, hosts, budget.
    store
        The store of turns; None without one.
    header
        The name and provenance of the run.
    """

    def __init__(
        self,
        subject: Mapping[str, Any],
        store: Store | None,
        **header: Any,
    ) -> None:
        self.subject, self.file = subject, map_of(subject["file"])
        self._metric, design = metric_of(self.file.response), self.file.design
        self.choice = BestChoice(
            subject["points"],
            subject["hosts"],
            budget_s=subject["budget_s"],
            direction=str(self._metric.direction),
            **{name: design[name] for name in ("confidence", "seed") if name in design},
            **self.file.best,
        )
        self.campaign = Campaign(
            self,
            KIND_OF_CHOICES,
            subject,
            store,
            metrics=(self._metric,),
            options=Options(budget_s=math.inf),
            **header,
        )
        self._busy: set[str] = set()  # hosts
        self._waiting: list[HostTurn] = []  # of busy hosts

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
        points = surface.leading(_MOST_CHOSEN_FROM, metric.name)
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
            OF_MAP: record.run_id,
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

    def samples_of(self, turn: HostTurn) -> list[MapSample]:
        """Return the samples of a turn, in its order."""
        places = [self.subject["points"].index(dict(point)) for point in turn.points]
        accuracy, seeds = self.file.design.get("target", _ACCURACY), self.subject["seeds"]
        return [
            MapSample(id=at, point=point, seed_load=seeds[at], accuracy=accuracy)
            for at, point in zip(places, turn.points, strict=True)
        ]

    def ask(self) -> HostTurn | None:
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

    def tell(self, turn: HostTurn, done: TurnDone, spent_s: float, /) -> Round:
        """Take the result of a turn; return it as it is stored."""
        done = replace(done, cost_s=spent_s)
        done.tell(self.choice, self.choice.tell)
        self._busy.remove(turn.host)
        for own in [own for own in self._waiting if done.lost and own.host == turn.host]:
            self._waiting.remove(own)
            self.choice.withdraw(own)
        return round_of(len(self.campaign.rounds), done.cost_s, {_TURN: done})

    def result(self) -> Choice:
        """Return the choice so far."""
        return self.choice.result()

    def reason(self) -> StopReason:
        """Return why the choice is over."""
        is_decided = self.choice.result().verdict != UNDECIDED
        return StopReason.SATISFIED if is_decided else StopReason.TIME_BUDGET

    def estimates(self) -> Iterator[Mapping[str, Any]]:
        """Yield the ratio of the choice to the next best point."""
        found = self.choice.result()
        yield {"metric": self._metric, "estimate": found.prediction, "notices": found.notices}


def turns_of(record: RunRecord) -> Sequence[TurnDone]:
    """Return the turns of a stored choice."""
    return [codec.decode(TurnDone, fact_in(turn, _TURN)) for turn in record.rounds]


def choice_in(record: RunRecord) -> Choice:
    """Return the result of a stored choice, finished or not."""
    choice = ChoiceRun.resume(record, None).choice
    choice.ask()  # to evaluate the last turn
    return choice.result()


def _hosts_of(file: MapFile) -> list[str]:
    if not file.has_pool:
        return [platform.node() or "this machine"]
    if file.hosts.names:
        return list(file.hosts.names)
    executor = executor_for(file.hosts)
    executor.close()
    return list(executor.hosts)


def measure_choice(
    run: ChoiceRun, *, store: Journal, began: Began, after: Callable[[], object]
) -> None:
    """Carry out a choice, on the hosts of its file or on this machine."""
    name = metric_of(run.file.response).name

    def read(turn: HostTurn, job: Outcome) -> TurnDone:
        if job.kind == FAILED:
            raise WorkloadFailed(f"{turn.host}: {job.failure}")
        found = [] if job.failure else found_in(job, store)
        estimates = tuple(one.estimates.get(name) for one in found)
        nothing = "" if any(estimates) else "no configuration has a number on this host"
        return TurnDone(
            turn=turn,
            estimates=estimates,
            better_than=tuple(one.at_least for one in found),
            lost=job.failure or nothing,
            attempts=job.remarks,
        )

    cwd = run.subject["cwd"]
    with on_hosts(run.campaign, run.file, cwd, store=store, began=began, after=after) as hosts:
        submit, carry_out = hosts
        carry_out(lambda turn: submit(run.samples_of(turn), first=turn.host), read=read)
