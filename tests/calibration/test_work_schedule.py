"""Work amounts do not resonate with what disturbs at intervals."""

import numpy as np
import pytest
from simulated.schedules import SPEED, begun, drive


@pytest.mark.parametrize("period", [2, 3, 4, 5, 8])
def test_what_disturbs_at_intervals_does_not_resonate(period: int) -> None:
    squares = np.zeros(2)
    for seed in range(40):
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
