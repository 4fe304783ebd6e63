"""Sessions that take turns, piece by piece, in an order drawn for every turn.

Runs that were measured in turn: a dict whose text is a ranked table.

measure_many: time several functions in turn, so that all of them see the same minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from typing import Any

import numpy as np

from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.model import Progress, RunRecord
from benchrigor.model.checks import attempt, is_number, refuse, wrong_values
from benchrigor.model.one_line import Reported
from benchrigor.model.options import SHORTEST_PIECE_S
from benchrigor.model.run_line import show_number
from benchrigor.model.text import many
from benchrigor.protocols import Workload
from benchrigor.session.engine import check_seed, seed_of
from benchrigor.session.measuring import measure, prepare
from benchrigor.session.session import Session


class RunRecords(Reported, dict[str, RunRecord]):
    """Records by name; ``print(records)`` ranks them, the best first.

    Runs that do not differ beyond chance share a place, as in `benchrigor compare`. Runs without
    an estimate have no place, and stand in the order given.
    """

    _page = "benchrigor.report.run_table:ranking_page"

    def _line(self) -> str:
        analyses = {name: run.analysis() for name, run in self.items()}
        shown = (
            f"{name} {'no number' if analysis is None else show_number(analysis, 'mean')}"
            for name, analysis in analyses.items()
        )
        return f"{many(len(self), 'run')}: {', '.join(shown)}" if self else "no runs"


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
        name: session.pieces(workload, over_s=over_s, by_round=by_round)
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


_PIECES = 6  # by default, and fewer if they would be shorter than this
_FEWEST = 4
_GOOD_S = 0.2


def measure_many(functions: Mapping[str, Callable[..., object]], **options: Any) -> RunRecords:
    """Time functions in turn, in pieces that are spread over the whole time.

    The pace of a machine may change from minute to minute. The levels of a function's pieces show
    by how much, and give its interval by Student's t. All functions share the fast minutes: a
    turn has a piece of every function, in a random order.

    Parameters
    ----------
    functions
        Functions by the name of their record.
    **options
        Options of `measure` without ``name``; they apply to all functions. ``budget_s`` is the
        time for one function. ``pieces`` is 6 by default, down to 4 if pieces would be shorter
        than 0.2 s. ``over_s`` spreads the turns over that time in seconds. For ``progress``,
        `Progress.name` is the function under way.

    Returns
    -------
    dict of RunRecord
        By name, in the order given; ``print(records)`` shows them ranked.

    Raises
    ------
    InvalidInput
        When an argument is out of range, before any measurement.
    WorkloadFailed, ClockFailed, StoreFailed
        When a function fails. The other functions continue to their end, then the first error is
        raised; its ``records`` hold the results by name, including rounds before the failure.
    KeyboardInterrupt
        On Ctrl-C, with the attribute ``records``.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock = FakeClock()
    >>> nap = lambda us: lambda: clock.advance(us * 1000)
    >>> records = measure_many({"short": nap(200), "long": nap(300)}, budget_s=2, clock=clock)
    >>> {name: round(record.estimate().value, 6) for name, record in records.items()}
    {'short': 0.0002, 'long': 0.0003}
    """
    are_named = isinstance(functions, Mapping) and bool(functions)
    problems = wrong_values([("functions", functions, are_named, "functions by name")])
    defaults = {p.name: p.default for p in signature(measure).parameters.values()}
    wrong = options.keys() - (defaults.keys() - {"name", "func"})
    problems += [f"{name!r} is no option of measure_many" for name in sorted(wrong)]
    pieces = pieces_for(options.get("budget_s", defaults["budget_s"]))
    options = {**defaults, "pieces": pieces, **options}
    seed, runs = attempt(problems, check_seed, options.pop("seed", None)) or 0, {}
    for index, (name, func) in enumerate((functions if are_named else {"": id}).items()):
        own = {"func": func, "name": name, "seed": seed_of(seed, index)}
        try:
            runs[name] = prepare({**options, **own})
        except InvalidInput as error:
            problems += [f"{name}: {problem}" if name else problem for problem in error.problems]
    refuse(problems)
    return rotate(runs, seed=seed, over_s=options["over_s"])


def pieces_for(budget_s: object) -> int:
    """Return the default number of pieces of a budget: six, or down to four of a good length."""
    if not is_number(budget_s) or not SHORTEST_PIECE_S <= budget_s < math.inf:
        return 1  # it is wrong, or too short for two
    good, most = (int(budget_s / length_s + 1e-9) for length_s in (_GOOD_S, SHORTEST_PIECE_S))
    return min(_PIECES, max(_FEWEST, good), most)
