"""Work amounts do not resonate with what disturbs at intervals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchrigor.session.work_schedule import (
    WorkSchedule,
)

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("period", [2, 3, 4, 5, 8])
def test_what_disturbs_at_intervals_does_not_resonate(period: int) -> None:
    squares = np.zeros(2)
    for seed in range(100):
        disturbed = 0.08 * ((np.arange(200) + seed) % period == 0)
        told = iter(1.0 + disturbed - 0.08 / period)
        schedule = begun(10**7, 10**12, seed=seed)
        work, seconds = drive(
            schedule, lambda work, told=told: work / SPEED * next(told), counted=50
        )
        counted = np.array(schedule.counted)
        x, y = work[counted] / SPEED, seconds[counted]
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        variance = 0.08**2 * (1.0 / period) * (1.0 - 1.0 / period)
        squares += (weights @ y - 1.0) ** 2, variance * ((weights * x) ** 2).sum()
    spread, expected = np.sqrt(squares)
    assert spread < 1.5 * expected  # midpoints in van der Corput's order: 3 times for period 4
