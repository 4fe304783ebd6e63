"""Two applications in processes: rates of their stages while they run, and of the same run alone.

They are those of Beard & Chamberlain (2015), section V-B; see ``examples``. After each run its
stages are run by themselves, in this process, with all their input ready and their output thrown
away: that is the truth, for so many processes as the stage had. They are run so once more with
pauses: sleeping before each item for as long as they waited for one in the pipeline, in the mean.
What a stage does per second of wall time is compared with the same, and what it does per second of
its own processor time with that. With more processes than processors the first must be lower in the
pipeline than alone; how long a stage waited for a processor, as a share of its busy time, stands
beside it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row

from benchrigor.model import Estimate
from benchrigor.queues import MonitorReport

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import matrix_multiply
import rabin_karp
from streaming import Alone, longest, pauses

__all__ = ["applications"]

APPLICATIONS = 96
RUNS = 10
SIZE, TEXT = 2048, b"foobar" * 1_000_000
NEAR = (0.1, 0.2)


class Seen(NamedTuple):
    """What one run showed of a stage, and what the same did alone."""

    wall: Estimate | None
    own: Estimate | None
    alone: Alone
    paused: Alone
    used: float | None
    delayed: float | None


Truth = Callable[[Mapping[str, float]], dict[str, Alone]]
"""Runs the stages alone, with pauses before items."""


def multiplied(rng: np.random.Generator, kernels: int) -> tuple[MonitorReport, Truth]:
    """Multiply matrices; return what runs the stages alone as well."""
    a, b = rng.random((2, SIZE, SIZE), dtype=np.float32)
    _, report = matrix_multiply.multiply(a, b, kernels=kernels)
    return report, partial(matrix_multiply.truth, a, b, kernels=kernels)


def searched(rng: np.random.Generator, kernels: int) -> tuple[MonitorReport, Truth]:
    """Search a text for one of its six letters in a row; return what runs the stages alone."""
    start = int(rng.integers(6))
    pattern, of_each = TEXT[start : start + 6], {"hashing": kernels, "verifying": kernels}
    places, report = rabin_karp.search(TEXT, pattern=pattern, **of_each)
    if places.size != TEXT.count(pattern):
        raise RuntimeError(f"{places.size} places of {pattern!r} were found")
    return report, partial(
        rabin_karp.truth, TEXT, pattern=pattern, hashing=kernels, verifying=kernels
    )


Program = Callable[[np.random.Generator, int], tuple[MonitorReport, Truth]]
PROGRAMS: dict[str, tuple[Program, int]] = {
    "matrix multiply, 1 kernel": (multiplied, 1),
    "matrix multiply, 2 kernels": (multiplied, 2),
    "Rabin-Karp, 1 and 1": (searched, 1),
    "Rabin-Karp, 2 and 2": (searched, 2),
}


def seen(report: MonitorReport, truth: Truth) -> Iterator[tuple[str, Seen]]:
    """Yield what a run showed of each stage that can be run alone as well."""
    alone, paused = truth({}), truth(pauses(report))
    for stage in report.stages:
        if stage.name in alone:
            rate, used = longest(stage), stage.utilisation
            delayed = None if rate is None else rate.delay_share
            yield (
                stage.name,
                Seen(
                    wall=None if rate is None else rate.estimate,
                    own=None if rate is None else rate.cpu_rate,
                    alone=alone[stage.name],
                    paused=paused[stage.name],
                    used=None if used is None else used.value,
                    delayed=delayed,
                ),
            )


def compared(found: list[Estimate | None], truths: list[float]) -> list[str]:
    """Return the cells that say how near estimates came to the truth of the same run."""
    pairs = [(each, truth) for each, truth in zip(found, truths, strict=True) if each]
    if not pairs:
        return ["none"] * (3 + len(NEAR))
    errors = np.array([each.value / truth - 1.0 for each, truth in pairs])
    held = sum(each.low <= truth <= each.high for each, truth in pairs)
    among = sum(min(truths) <= each.value <= max(truths) for each, _ in pairs)
    near = [f"{np.sum(np.abs(errors) <= most)}" for most in NEAR]
    return [f"{100.0 * np.median(errors):+.0f} %", *near, f"{held}", f"{among}"]


def median(shares: list[float | None]) -> str:
    """Return the cell of shares, some of which may not be known."""
    known = [each for each in shares if each is not None]
    return f"{100.0 * np.median(known):.0f} %" if known else "unknown"


def show(found: dict[tuple[str, str], list[Seen]], what: str, truth: str, of: str) -> None:
    """Print the table of one kind of rate, against one kind of truth."""
    near = [f"within {most:.0%}" for most in NEAR]
    columns = ["program", "stage", "truth", "median error", *near, "interval holds it", "in range"]
    heading([*columns, "used", "delayed"])
    for name, stage in sorted(found, key=lambda each: list(PROGRAMS).index(each[0])):
        every = found[name, stage]
        truths: list[float] = [getattr(getattr(each, truth), of) for each in every]
        estimates: list[Estimate | None] = [getattr(each, what) for each in every]
        row(
            name,
            stage,
            f"{min(truths):,.0f} to {max(truths):,.0f}",
            *compared(estimates, truths),
            median([each.used for each in every]),
            median([each.delayed for each in every]),
        )


def applications(setting: Setting) -> None:
    """Print how near the rates of watched stages come to those of the same stages alone."""
    runs = setting.runs(RUNS, 3)
    found: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    rng = np.random.default_rng([setting.seed, APPLICATIONS])
    for _ in range(runs):
        for name in rng.permutation(list(PROGRAMS)).tolist():
            program, kernels = PROGRAMS[name]
            for stage, each in seen(*program(rng, kernels)):
                found[name, stage].append(each)
    print(f"{runs} runs of each, in random order, sampled each 50 ms. The error is that against")
    print("the same stage run alone right after; how many of the runs were near to that, how many")
    print("intervals hold it, and how many rates lie in the range of all that the stage did alone.")
    print("used: share of its capacity that arrived. delayed: share of its busy time in which it")
    print("waited for a processor. Medians. No bars.")
    print("\nItems per second of wall time:\n")
    show(found, "wall", "alone", "rate")
    print("\nItems per second of the stage's own processor time:\n")
    show(found, "own", "alone", "cpu_rate")
    print("\nThe same, against stages that pause before each item as they did in the pipeline:\n")
    show(found, "own", "paused", "cpu_rate")
