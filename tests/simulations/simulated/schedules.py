"""Work schedules driven by durations of known lines."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchrigor.stats.work_schedule import WorkSchedule

SPEED = 1e8


Lasting = Callable[[float], float]


def begun(low: float, high: float | None, **more: Any) -> WorkSchedule:
    return WorkSchedule(low, high, **{"shortest_s": 0.1, **more})


def drive(
    schedule: WorkSchedule,
    lasting: Lasting,
    *,
    rounds: int = 40,
    counted: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Run so many rounds, or until so many count; return amounts and durations."""
    rng = np.random.default_rng(seed)
    pairs: list[tuple[float, float]] = []
    while sum(schedule.counted) < counted if counted else len(pairs) < rounds:
        work = schedule.next()
        seconds = lasting(work) * (1.0 + noise * rng.normal())
        schedule.tell(work, seconds)
        pairs.append((work, seconds))
    work, seconds = np.array(pairs).T
    return work, seconds
