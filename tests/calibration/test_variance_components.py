"""Both variances are found without bias."""

import numpy as np
import pytest

from benchrigor.stats.readings.analysis import estimate
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import INVOCATIONS
from benchrigor.stats.statistics.statistic import split_variance


def test_the_split_finds_both_variances() -> None:
    rng = np.random.default_rng(9)
    splits = []
    for _ in range(100):
        noise = rng.normal(0.0, 0.05, (10, 1001))
        readings = noise[:, 1:] + 0.5 * noise[:, :-1]
        invocations = tuple(rng.normal(1.0, 0.02, (10, 1)) + readings)
        asked = Readings(series=invocations, unit=INVOCATIONS, searched=False)
        splits.append(split_variance(estimate(asked).fits))
    # The relative standard error of a variance from 10 is sqrt(2/9), of its mean a tenth of it.
    assert np.mean([split.between for split in splits]) == pytest.approx(4e-4, rel=0.15)
    assert np.mean([split.within for split in splits]) == pytest.approx((0.05 * 1.5) ** 2, rel=0.1)
