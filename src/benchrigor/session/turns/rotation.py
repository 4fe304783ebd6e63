"""Sessions that take turns, piece by piece, in an order drawn for every turn."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from benchrigor.errors import BenchrigorError
from benchrigor.model import Progress
from benchrigor.protocols import Workload
from benchrigor.session.session import Session
from benchrigor.session.turns.run_records import RunRecords

Runs = Mapping[str, tuple[Session, Workload]]
Turns = Generator[Progress, None, None]


def rotate(
    runs: Runs, *, seed: int = 0, over_s: float | None = None, by_round: bool = False
) -> RunRecords:
    """Run sessions in turn, piece by piece, until all have ended; return their records by name.

    With ``by_round`` a turn is a round.

    A session that fails is over, and the others go on. The first error is raised at the end, and an
    interrupt at once. Both carry ``records`` of all sessions that have finished a round.
    """
    under_way = {
        name: session.rounds(workload) if by_round else session.pieces(workload, over_s=over_s)
        for name, (session, workload) in runs.items()
    }
    errors: dict[str, BenchrigorError] = {}
    rng = np.random.default_rng(seed)
    order = list(runs)
    try:
        while under_way:
            order = next_order([name for name in order if name in under_way], rng)
            for name in order:
                _take_turn(name, under_way, errors)
    except KeyboardInterrupt as interrupt:
        for session in under_way.values():
            with suppress(KeyboardInterrupt):
                session.throw(KeyboardInterrupt())
        interrupt.records = records_of(runs)  # type: ignore[attr-defined]
        raise
    if errors:
        first, *others = errors.items()
        error = first[1]
        for name, other in others:
            error.add_note(f"also failed: {name}: {other}")
        error.records = records_of(runs)
        raise error
    return RunRecords({name: session.result() for name, (session, _) in runs.items()})


def _take_turn(name: str, under_way: dict[str, Turns], errors: dict[str, BenchrigorError]) -> None:
    """Measure the next piece of a session, and take it out if it has ended."""
    try:
        if next(under_way[name], None) is None:
            del under_way[name]
    except BenchrigorError as error:
        del under_way[name]
        errors[name] = error


def next_order(before: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Draw the order of a turn; half a turn or more lies between two pieces of a session.

    Two pieces in a row would be one longer piece. A place is open to sessions that were up to half
    a turn after it in the turn before.
    """
    left, order = list(before), list[str]()
    for place in range(len(left)):
        latest = (len(before) - 1) // 2 + place
        free = [name for name in left if before.index(name) <= latest]
        order.append(free[int(rng.integers(len(free)))])
        left.remove(order[-1])
    return order


def records_of(runs: Runs) -> RunRecords:
    """Return the records of all sessions that have finished a round."""
    records = {name: session.result() for name, (session, _) in runs.items()}
    return RunRecords({name: record for name, record in records.items() if record.rounds})
