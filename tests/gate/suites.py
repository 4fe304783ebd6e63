"""Suites of known truth for gates: what a process of each side would give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchrigor.gate import Block, Gate, Pass, Ratios
from benchrigor.model import Metric, Turn
from benchrigor.session.engine import Engine

TIME = Metric(name="time", unit="s")


class SimulatedSuite:
    """Benchmarks whose processes differ by lognormal noise.

    ``sds`` are the standard deviations of logarithms by benchmark, ``changes`` what the new code is
    slower by, ``of_copy`` what the copy of the old code differs by, which should be nothing, and
    ``costs`` the seconds of a benchmark in one process, which takes ``start_s`` to start.
    """

    def __init__(
        self,
        sds: Mapping[str, float],
        *,
        changes: Mapping[str, float] | None = None,
        of_copy: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        start_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.sds, self.changes, self.of_copy = sds, changes or {}, of_copy or {}
        self.costs, self.start_s = costs or {}, start_s
        self.rng = np.random.default_rng(seed)
        self.clock_s = 0.0

    def run(self, role: str, names: Sequence[str]) -> Pass:
        """Run one process of a side."""
        names = names or [*self.sds]
        factors = {"new": self.changes, "copy": self.of_copy}.get(role, {})
        durations = {name: self.costs.get(name, 0.1) for name in names}
        values = {
            name: (1.0 + factors.get(name, 0.0)) * math.exp(self.rng.normal(0.0, self.sds[name]))
            for name in names
        }
        elapsed_s = self.start_s + sum(durations.values())
        self.clock_s += elapsed_s
        return Pass(
            elapsed_s=elapsed_s,
            values=values,
            metrics=dict.fromkeys(values, TIME),
            durations=durations,
        )

    def carry_out(self, turn: Turn) -> Block:
        """Run the processes of a block."""
        since = self.clock_s
        passes = {role: self.run(role, turn.names) for role in turn.order}
        elapsed_ns = round((self.clock_s - since) * 1e9)
        return Block(plan=turn.plan, passes=passes, elapsed_ns=elapsed_ns)


def gate_of(suite: SimulatedSuite, **options: object) -> Gate:
    """Return the gate of a simulated suite."""
    engine = Engine(Ratios(**options))  # type: ignore[arg-type]
    engine.goal.labels = {"old": "main", "new": "HEAD"}
    while (turn := engine.ask()) is not None:
        engine.tell(suite.carry_out(turn))
    found: Gate = engine.result()
    return found
