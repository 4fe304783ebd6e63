"""Levels that change from minute to minute, or from one process to the next."""

import numpy as np
import pytest
from scipy.stats import binom

from benchrigor.model import Options
from benchrigor.session import Session
from benchrigor.stats.readings.analysis import estimate
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import INVOCATIONS
from benchrigor.stats.statistic import split_variance
from benchrigor.testing import FakeClock

CALL_S = 0.01


class Machine:
    """Calls of a mean of 10 ms over all minutes; a level for each minute, that drifts inside it.

    The first 0.2 s are a warm-up, and the first call after a pause takes three times as long.
    """

    def __init__(self, clock, seed, spread):
        self.clock, self.rng, self.spread = clock, np.random.default_rng(seed), spread
        self.minute, self.level, self.drift = -1, 0.0, 0.0

    def run(self, plan, recorder):
        values, began_ns = [], self.clock.now_ns()
        while len(values) < plan.readings:
            now_ns = self.clock.now_ns()
            cold, minute = 1.0, now_ns // (20 * 10**9)
            if minute != self.minute:
                self.minute, self.drift, cold = minute, 0.0, 3.0
                self.level = float(self.rng.lognormal(-(self.spread**2) / 2.0, self.spread))
            step_s = CALL_S * self.level
            memory = np.exp(-step_s / 1.0)
            self.drift = memory * self.drift + np.sqrt(1.0 - memory**2) * self.rng.normal()
            warm = 1.0 + 2.0 * np.exp(-now_ns / 0.05e9)
            value = step_s * np.exp(self.spread / 3.0 * self.drift) * cold * warm
            values.append(float(value * self.rng.gamma(400.0, 1.0 / 400.0)))
            self.clock.advance(round(values[-1] * 1e9))
            if self.clock.now_ns() - began_ns >= plan.seconds * 1e9:
                break
        recorder.unit_readings("time", values)


@pytest.mark.parametrize(
    ("pieces", "target"), [(4, 1e-9), (6, 0.1)], ids=["to the end", "stopping"]
)
def test_the_interval_of_pieces_holds_the_mean_over_minutes(pieces, target):
    held, runs = 0, 0
    for spread in (0.05, 0.1, 0.15):
        for run in range(15):
            clock = FakeClock()
            options = Options(pieces=pieces, budget_s=pieces * 1.0, target=target)
            seed = [20281124, pieces, round(100 * spread), run]
            record = Session(options, clock=clock, seed=1).run(
                Machine(clock, seed, spread), over_s=20.0 * (pieces - 1) + 1.0
            )
            found = record.estimate()
            runs += 1
            held += found.low <= CALL_S <= found.high
    assert held >= binom.ppf(0.01, runs, 0.93)


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
