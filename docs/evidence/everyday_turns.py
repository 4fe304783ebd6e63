"""Fresh interpreters one after the other, and by turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from coverage_tables import Setting

from benchrigor.model import Estimate, RoundPlan
from benchrigor.protocols import Recorder, Workload
from benchrigor.session.pairs.measuring_processes import measure_processes
from benchrigor.workloads import InterpreterWorkload

__all__ = ["turns"]

MOST_HALF_WIDTH = 0.03  # of four functions, in the median, on a machine that does nothing else
FUNCTIONS = ("call_little", "dump_json", "sort_numbers", "compress_much")  # 0.2 µs to 20 ms


class Lonely:
    """An interpreter that takes no turns."""

    fresh_process = True

    def __init__(self, target: str, *, path: list[str]) -> None:
        self._workload = InterpreterWorkload(target, path=path)
        self.take_turns = self._workload.take_turns  # of the reference, with readings

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Run it alone."""
        self._workload.run(plan, recorder)


def turns(setting: Setting) -> None:
    """Print half-widths of a function against itself, and a ratio that caches could move."""
    repetitions = setting.runs(5, 1)
    print("| function | one after the other | by turns | intervals by turns that hold 1 |")
    print("| --- | --- | --- | --- |")
    widths = []
    for name in FUNCTIONS:
        rows: dict[Callable[..., Workload], list[Estimate]] = {Lonely: [], InterpreterWorkload: []}
        for seed in range(repetitions):
            for make, found in rows.items():
                found.append(compared(make, name, name, setting.seed + seed))
        alone, both = ([each.relative_half_width for each in found] for found in rows.values())
        held = sum(each.low <= 1.0 <= each.high for each in rows[InterpreterWorkload])
        widths += both
        print(f"| {name} | {shown(alone)} | {shown(both)} | {held} of {repetitions} |", flush=True)
    median = float(np.median(widths))
    met = setting.verdict("half-widths by turns", median <= MOST_HALF_WIDTH)
    print(
        f"\nmedian half-width by turns: {100 * median:.2f} % of {100 * MOST_HALF_WIDTH:g} %: {met}"
    )
    print("\nreadings that fill the caches (1 MB) against those that do not, by each way:")
    for make in (Lonely, InterpreterWorkload):
        found = [
            compared(make, "walk_memory", "walk_nowhere", setting.seed + seed)
            for seed in range(repetitions)
        ]
        print(f"{make.__name__}: {', '.join(f'{each.value:.3f}' for each in found)}")


def compared(make: Callable[..., Workload], one: str, two: str, seed: int) -> Estimate:
    """Return the ratio of two functions in ten seconds."""
    path = [str(Path(__file__).parent)]
    sides = (make(f"everyday_work:{name}", path=path) for name in (one, two))
    ratio = measure_processes(*sides, seed=seed, budget_s=10.0).ratio
    if ratio is None:
        raise RuntimeError(f"no ratio of {one} and {two}")
    return ratio


def shown(widths: list[float]) -> str:
    """Show half-widths in percent, from the least to the greatest."""
    return " ".join(f"{100 * each:.2f}" for each in sorted(widths))
