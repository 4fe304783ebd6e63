"""measure_many: time several functions in turn, so that all of them see the same minutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import is_number, refuse
from benchrigor.model.options import SHORTEST_PIECE_S
from benchrigor.model.series import short
from benchrigor.session.controller import check_seed, seed_of
from benchrigor.session.measuring import measure, prepare
from benchrigor.session.turns.rotation import rotate
from benchrigor.session.turns.run_records import RunRecords

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
    if not isinstance(functions, Mapping) or not functions:
        raise InvalidInput(f"functions is {short(functions)}, expected functions by name")
    defaults = {p.name: p.default for p in signature(measure).parameters.values()}
    wrong = options.keys() - (defaults.keys() - {"name", "func"})
    refuse(f"{name!r} is no option of measure_many" for name in sorted(wrong))
    pieces = pieces_for(options.get("budget_s", defaults["budget_s"]))
    options = {**defaults, "pieces": pieces, **options}
    seed, runs, problems = check_seed(options.pop("seed", None)), {}, list[str]()
    for index, (name, func) in enumerate(functions.items()):
        own = {"func": func, "name": name, "seed": seed_of(seed, index)}
        try:
            runs[name] = prepare({**options, **own})
        except InvalidInput as error:
            problems += [f"{name}: {problem}" for problem in error.problems]
    refuse(problems)
    return rotate(runs, seed=seed, over_s=options["over_s"])


def pieces_for(budget_s: object) -> int:
    """Return the default number of pieces of a budget: six, or down to four of a good length."""
    if not is_number(budget_s) or not SHORTEST_PIECE_S <= budget_s < math.inf:
        return 1  # it is wrong, or too short for two
    good, most = (int(budget_s / length_s + 1e-9) for length_s in (_GOOD_S, SHORTEST_PIECE_S))
    return min(_PIECES, max(_FEWEST, good), most)
