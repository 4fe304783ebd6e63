"""Simulated rates and counts: do the intervals of what follows for a pipeline hold the truth?

A bound is left by chance about once in a thousand.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from scipy import signal
from scipy import stats as reference
from simulated.estimates import estimated

from benchrigor.model import Estimate, PipelineStage
from benchrigor.stats import (
    estimate_mean,
    filter_ratio,
    find_bottleneck,
    suggest_buffer,
    sum_rates,
    utilisation_of,
)

RUNS = 200
LEAST, MOST = (int(reference.binom.ppf(p, RUNS, 0.95)) for p in (1e-3, 0.9995))


def measured(rng: np.random.Generator, mean: float, n: int, sigma: float) -> Estimate:
    return estimate_mean(mean * rng.lognormal(-(sigma**2) / 2.0, sigma, n))


def passed(
    rng: np.random.Generator, kind: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], float]:
    """Draw items in and out, and return them with the true ratio."""
    if kind == "sparse":
        taken = rng.poisson(20.0, 300)
        return taken, rng.binomial(taken, 0.02), 50.0
    if kind == "multiplying":
        taken = rng.poisson(20.0, 100)
        return taken, 3 * taken - rng.binomial(taken, 0.2), 1.0 / 2.8
    slow = signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=500)) * math.sqrt(1.0 - 0.81)
    taken = rng.poisson(30.0 * np.exp(0.5 * slow))
    return taken, rng.binomial(taken, 0.3), 1.0 / 0.3


def sum_of_parts(rng: np.random.Generator) -> tuple[Estimate, float]:
    return sum_rates([measured(rng, mean, 40, 0.1) for mean in (10.0, 30.0, 5.0)]), 45.0


def use_of_servers(rng: np.random.Generator) -> tuple[Estimate, float]:
    arrival, service = measured(rng, 10.0, 8, 0.1), measured(rng, 5.0, 8, 0.1)
    return utilisation_of(arrival, service, servers=4), 0.5


def ratio(kind: str, rng: np.random.Generator) -> tuple[Estimate, float]:
    taken, given, truth = passed(rng, kind)
    return filter_ratio(taken, given), truth


def capacity(stages: int, rng: np.random.Generator) -> tuple[Estimate, float]:
    pipeline = [
        PipelineStage(name=str(index), rate=estimate_mean(rng.normal(10.0, 1.0, 40)))
        for index in range(stages)
    ]
    return find_bottleneck(pipeline).capacity, 10.0


@pytest.mark.parametrize(
    ("estimate", "most"),
    [
        (sum_of_parts, MOST),
        (use_of_servers, MOST),
        *((partial(ratio, kind), RUNS) for kind in ("sparse", "multiplying", "bursts")),
        *((partial(capacity, stages), RUNS) for stages in (1, 2, 4)),
    ],
)
def test_intervals_cover(
    estimate: Callable[[np.random.Generator], tuple[Estimate, float]], most: int
) -> None:
    hits = 0
    for run in range(RUNS):
        found, truth = estimate(np.random.default_rng([78, run]))
        hits += found.low <= truth <= found.high
    assert LEAST <= hits <= most


def test_a_stage_that_is_the_bottleneck_for_certain_is_hardly_ever_another_one() -> None:
    wrong = 0
    for run in range(RUNS):
        rng = np.random.default_rng([82, run])
        pipeline = [
            PipelineStage(name=name, rate=estimate_mean(rng.normal(mean, 1.0, 40)))
            for name, mean in (("slow", 10.0), ("fast", 10.3))
        ]
        found = find_bottleneck(pipeline)
        wrong += found.certain and found.stage == "fast"
    assert wrong <= reference.binom.ppf(0.999, RUNS, 0.05)


def test_the_size_for_the_worst_of_both_intervals_is_enough_as_often_as_they_hold() -> None:
    def rate(value: float) -> Estimate:
        return estimated(value, value - 3.92, value + 3.92)

    rng = np.random.default_rng(80)
    wanted = suggest_buffer(80.0, 100.0).capacity
    assert wanted is not None
    enough = 0
    for _ in range(RUNS):
        arrival, service = 80.0 + rng.normal(0.0, 2.0), 100.0 + rng.normal(0.0, 2.0)
        size = suggest_buffer(rate(arrival), rate(service))
        enough += size.capacity is None or size.capacity >= wanted
    assert enough >= 0.95 * RUNS
