"""Both sides of a comparison as runs: kept while they are measured in turn, and compared later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from benchrigor.errors import BenchrigorError, WorkloadFailed
from benchrigor.model import Code, Comparison, Notice, Round, RoundPlan, RunRecord
from benchrigor.model.pace import INTERPRETER
from benchrigor.model.series import Floats
from benchrigor.protocols import Clock, Store, Workload
from benchrigor.session.conditions.red_rounds import was_stopped
from benchrigor.session.controller import seed_of
from benchrigor.session.pairs.pair_engine import PairEngine, PairRound
from benchrigor.session.pairs.pairs_so_far import Paces
from benchrigor.session.session import Session
from benchrigor.session.stored_runs import AGAIN, PAIR
from benchrigor.stats.comparison.samples import Question
from benchrigor.stats.series.undisturbed import choose_undisturbed, groups_of

_TIME = "time"
STOPPED_PAIR = Notice.warning(
    Code.STOPPED, "A process was stopped, by a signal or with its machine: its pair does not count."
)
Performers = Mapping[str, Callable[[RoundPlan], Callable[[int], Round] | None]]


@contextmanager
def sides_of(
    engine: PairEngine,
    workloads: Mapping[str, Workload],
    subjects: Sequence[Mapping[str, Any]],
    *,
    clock: Clock,
    store: str | Path | Store | None,
    reference: bool,
) -> Iterator[tuple[dict[str, Session], Performers]]:
    """Give a session for either side, and a function that carries out its plans.

    Both sessions end when the engine does. The subject of either run names the other side.
    """
    names = [str(getattr(workload, "name", role)) for role, workload in workloads.items()]
    sessions, pair = {}, uuid4().hex
    for index, role in enumerate(workloads):
        told = {"name": names[index], **subjects[index], "in turn with": names[1 - index]}
        sessions[role] = Session(
            replace(engine.options, target=None, reference=reference),
            name=names[index],
            subject={**told, "as": role, PAIR: pair, AGAIN: engine.command_line},
            seed=seed_of(engine.seed, index),
            rules=(),
            clock=clock,
            store=store,
        )
    try:
        with ExitStack() as stack:
            perform = {
                role: stack.enter_context(sessions[role].performing(workload))
                for role, workload in workloads.items()
            }
            yield sessions, perform
    except (BenchrigorError, KeyboardInterrupt) as error:
        error.records = {role: session.result() for role, session in sessions.items()}  # type: ignore[union-attr]
        raise
    for session in sessions.values():
        if engine.decision is not None and engine.decision.reason is not None:
            session.end(engine.decision.reason)
        session.result()


def names_of(workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return the names of both sides for people; none if both are nameless, as lambdas are."""
    names = {role: str(getattr(workload, "name", "<")) for role, workload in workloads.items()}
    own = {role: name.rpartition("<locals>.")[2] for role, name in names.items()}
    if all("<" in name for name in own.values()):
        return ()
    return tuple(f"the {role}" if "<" in name else name for role, name in own.items())


def tell_sides(
    sessions: Mapping[str, Session], finished: PairRound, calls: Mapping[str, int]
) -> None:
    """Pass the readings of finished pairs to the sessions of both sides."""
    for role, session in sessions.items():
        planned, values = session.ask(), getattr(finished, role)
        if planned is not None and values.size:
            told = Round(
                plan=planned,
                elapsed_ns=finished.elapsed_ns,
                unit_readings={_TIME: values},
                facts={"inner_loop": calls[role]},
                delays=finished.delays,
            )
            session.tell(told)


def compare_in_turn(baseline: RunRecord, candidate: RunRecord, question: Question) -> Comparison:
    """Compare both sides of a comparison pair by pair, as it did."""
    own = baseline.options
    by_round = own.rounds == "restarted"
    engine = PairEngine(
        margin=question.margin,
        direction=question.direction,
        by_round=by_round,
        statistic=question.statistic or own.statistic,
        confidence=question.confidence,
        disturbed=own.disturbed,
        detector=own.detector,
    )
    # A process that was ended has none next to it.
    whole = ([round_ for round_ in run.rounds if not round_.cut] for run in (baseline, candidate))
    for pair in zip(*whole, strict=False):
        if by_round and any(map(was_stopped, pair)):
            engine.note(STOPPED_PAIR)
            continue
        one, two = ([series_of(finished)] if by_round else values_of(finished) for finished in pair)
        engine.add(one, two, pair[0].delays, paces_of([pair]) if by_round else ())
    engine.names = (baseline.name, candidate.name)
    return replace(engine.result(), elapsed_s=None)


def paces_of(pairs: Iterable[Sequence[Round]]) -> Paces:
    """Return the median times of the reference in both rounds of the pairs that have them.

    Rounds measured by turns are left out: they share the same pace.
    """
    times = ([*map(_reference_of, pair)] for pair in pairs if not any(map(_by_turns, pair)))
    return [
        (float(np.median(one)), float(np.median(two)))
        for one, two in times
        if one.size and two.size
    ]


def _by_turns(finished: Round) -> bool:
    return bool(finished.facts.get("by_turns"))


def _reference_of(finished: Round) -> Floats:
    references = finished.references
    none = np.empty(0)
    return none if references is None else references.seconds.get(INTERPRETER, none)


def values_of(finished: Round) -> Floats:
    """Return the times of a round: of its units of work, or of the whole."""
    units: Floats | None = finished.unit_readings.get(_TIME)
    if units is not None:
        return units
    if _TIME not in finished.readings:
        raise WorkloadFailed(f"it gave no readings of {_TIME!r}, expected some to compare")
    return np.array([finished.readings[_TIME]])


def series_of(finished: Round) -> Floats:
    """Return the times of an invocation, without those with delay if enough others remain."""
    values = values_of(finished)
    if values.size == 1:
        return values
    chosen, _ = choose_undisturbed(groups_of(finished.delays, values))
    kept: Floats = values if chosen is None else values[chosen.indices]
    return kept
