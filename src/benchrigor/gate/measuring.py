"""A gate: the suite in both sides, block after block, until the budget is spent."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, NotComparable
from benchrigor.gate.ratios import ROLES, Block, Ratios
from benchrigor.gate.result import Gate
from benchrigor.gate.sides import NEW, OLD, Side, Sources
from benchrigor.gate.suite import Pass, PytestSuite, Suite, suite_of
from benchrigor.model import Progress, Turn
from benchrigor.session.engine import Engine
from benchrigor.session.loop import Hooks, drive, ended_by_errors
from benchrigor.session.schedules import LEAST_BLOCKS
from benchrigor.units import show_duration

SHARE_S = 0.05  # of each call of pytest, in each process
_LONGEST_SHARE_S = 0.5
_PROCESSES = 40  # of each side that a budget should hold, if its calls take their shares
_SLOWER = 10.0  # times that a later run may take as long as the first
_LEAST_LIMIT_S = 60.0


def measure_gate(
    sources: Sources,
    *,
    results: str | None = None,
    margin: float = 0.02,
    budget_s: float = 300.0,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[Progress, Ratios], object] | None = None,
) -> Gate:
    """Run a suite in both sides until the ratios are known or the budget is spent.

    Parameters
    ----------
    sources
        The command, and where old and new code are.
    results
        The file or folder that the command writes its results to, in each side; None for its
        output, and for pytest.
    margin
        Relative change that does not matter.
    budget_s
        Time for all of it, in seconds; builds do not count.
    confidence
        Nominal coverage of each interval.
    seed
        Draws the order of the sides in each block.
    progress
        Called after each block.

    Returns
    -------
    Gate
        Also after Ctrl-C: with the result so far. Another signal that ends the program does so,
        and the ``record`` of its error is that result.

    Raises
    ------
    InvalidInput
        When the budget holds fewer than six blocks, or something given is wrong.
    WorkloadFailed
        When a build fails, or the command; the ``record`` of its error is the Gate of the blocks
        before.
    NotComparable
        When a side imports code of the other.

    Examples
    --------
    >>> from benchrigor.gate import Sources, measure_gate
    >>> sources = Sources(words=("pytest", "benchmarks/"), revisions=("main", "HEAD"))
    >>> gate = measure_gate(sources, budget_s=300)  # doctest: +SKIP
    """
    with suite_of(sources.words, results) as suite, sources.sides() as sides:
        ratios = Ratios(
            margin=margin,
            budget_s=budget_s,
            confidence=confidence,
            seed=seed,
            can_choose=suite.can_choose,
        )
        ratios.labels = {role: sides[role].label for role in (OLD, NEW)}
        engine = Engine(ratios)
        hooks = Hooks(progress=progress and (lambda state: progress(state, ratios)))
        try:
            with ended_by_errors(engine, engine.result):
                for _ in drive(engine, _Runner(suite, sides, engine), WallClock(), hooks):
                    pass
        except KeyboardInterrupt as error:
            if getattr(error, "number", signal.SIGINT) != signal.SIGINT:
                raise
    found: Gate = engine.result()
    return found


class _Runner:
    """Carries out blocks: one process of each side in it."""

    def __init__(
        self, suite: Suite | PytestSuite, sides: Mapping[str, Side], engine: Engine[Ratios]
    ) -> None:
        self._suite, self._sides, self._engine = suite, sides, engine
        self._share_s = SHARE_S
        self._first_s: float | None = None

    def __call__(self, turn: Turn) -> Callable[[int], Block]:
        """Run the command in each side of a turn."""
        budget_s = self._engine.goal.options.budget_s
        limit_s = budget_s
        if self._first_s is not None:
            limit_s = min(max(_SLOWER * self._first_s, _LEAST_LIMIT_S), budget_s)
        passes: dict[str, Pass] = {}
        for role in turn.order:
            side = self._sides[role]
            try:
                passes[role] = self._suite.run(
                    side, turn.names or None, share_s=self._share_s, limit_s=limit_s
                )
            except NotComparable:  # it names the side
                raise
            except InvalidInput as error:
                raise InvalidInput(f"the {role} side, {side.label}: {error}") from error

        def finish(elapsed_ns: int) -> Block:
            if self._first_s is None:
                self._plan(passes, budget_s)
            return Block(plan=turn.plan, passes=passes, elapsed_ns=elapsed_ns)

        return finish

    def _plan(self, passes: Mapping[str, Pass], budget_s: float) -> None:
        """Refuse a budget that is too short, and choose the share of each call from the first."""
        self._first_s = max(one.elapsed_s for one in passes.values())
        block_s = sum(one.elapsed_s for one in passes.values())
        needed_s = LEAST_BLOCKS * block_s
        if needed_s > budget_s:
            raise InvalidInput(
                f"the first block took {show_duration(block_s)}, and {LEAST_BLOCKS} of them take "
                f"about {show_duration(needed_s)}: the budget is {show_duration(budget_s)}, "
                "expected as much at least (--budget), or fewer benchmarks"
            )
        calls = max(len(one.values) for one in passes.values())
        room_s = (budget_s - needed_s) / _PROCESSES / len(ROLES) / max(calls, 1)
        self._share_s = min(max(room_s, SHARE_S), _LONGEST_SHARE_S)
