"""How often rounds joined end to end are recognised, and other series taken for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulated.series import autoregressive

from benchrigor.model import Floats
from benchrigor.stats.phases.repeated_warm_up import find_repeated_warm_ups

pytestmark = pytest.mark.slow

RUNS = 60


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def length(rng: np.random.Generator) -> int:
    return round(between(rng, 250, 5_000))


def noise(rng: np.random.Generator, n: int) -> Floats:
    return between(rng, 0.01, 0.1) * autoregressive(rng, n, rng.choice([0.0, 0.5, 0.9]))


def joined(rng: np.random.Generator) -> Floats:
    """Return 5 to 50 rounds of 50 to 1,000 readings, of one length or uneven by up to 5 %."""
    size, uneven = between(rng, 50, 1_000), rng.choice([0.0, 0.02, 0.05])
    factor, tau, step = between(rng, 1.3, 5.0), between(rng, 2.0, 50.0), rng.random() < 0.3
    rounds = []
    for _ in range(round(between(rng, 5, 50))):
        index = np.arange(round(size * (1.0 + rng.uniform(-uneven, uneven))))
        cold = index < min(max(3.0, tau), size // 4) if step else np.exp(-index / tau)
        rounds.append(1.0 + (factor - 1.0) * cold)
    series = np.concatenate(rounds)
    return series * (1.0 + noise(rng, series.size))


def cycle(rng: np.random.Generator, shape: Callable[[Floats], Floats]) -> Floats:
    n = length(rng)
    turns = np.arange(n) / between(rng, 20, max(30, n / 5)) + rng.random()
    return 1.0 + between(rng, 0.02, 0.5) * shape(turns % 1.0) + noise(rng, n)


def switching(rng: np.random.Generator) -> Floats:
    n, high = length(rng), rng.random() < 0.5
    stays = [between(rng, 5, 500), between(rng, 5, 500)]
    levels: list[Floats] = []
    while sum(each.size for each in levels) < n:
        levels.append(np.full(1 + rng.geometric(1.0 / stays[high]), float(high)))
        high = not high
    return 1.0 + (between(rng, 1.1, 4.0) - 1.0) * np.concatenate(levels)[:n] + noise(rng, n)


def spikes(rng: np.random.Generator) -> Floats:
    """Return readings of which one or two in a row are slow, again and again."""
    n = length(rng)
    every = round(between(rng, 20, max(30, n / 5)))
    first = every - 1 if rng.random() < 0.5 else rng.integers(every)
    slow = (np.arange(n) - first) % every < rng.integers(1, 3)
    return (1.0 + noise(rng, n)) * np.where(slow, between(rng, 1.2, 20.0), 1.0)


def single(rng: np.random.Generator) -> Floats:
    n = length(rng)
    cold = np.exp(-np.arange(n) / between(rng, 2, n / 3))
    return 1.0 + (between(rng, 1.3, 5.0) - 1.0) * cold + noise(rng, n)


def trend(rng: np.random.Generator) -> Floats:
    n = length(rng)
    return 1.0 + rng.uniform(-0.6, 0.6) * np.linspace(0.0, 1.0, n) + noise(rng, n)


OTHERS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "independent": lambda rng: rng.normal(1.0, 0.05, length(rng)),
    "autoregressive": lambda rng: (
        1.0 + 0.05 * autoregressive(rng, length(rng), rng.choice([0.3, 0.6, 0.9, 0.95]))
    ),
    "lognormal": lambda rng: rng.lognormal(0.0, between(rng, 0.1, 1.5), length(rng)),
    "Pareto": lambda rng: 1.0 + rng.pareto(between(rng, 1.0, 3.0), length(rng)),
    "coarse clock": lambda rng: rng.normal(1.0, 0.01, length(rng)).round(2),
    "sine": lambda rng: cycle(rng, lambda turn: np.sin(2.0 * np.pi * turn)),
    "triangle": lambda rng: cycle(rng, lambda turn: np.abs(2.0 * turn - 1.0)),
    "square": lambda rng: cycle(rng, lambda turn: (turn < 0.5).astype(float)),
    "two levels": switching,
    "garbage collection": spikes,
    "one warm-up": single,
    "trend": trend,
    "random walk": lambda rng: 100.0 + np.cumsum(rng.normal(size=length(rng))),
}


def test_joined_rounds_are_recognised() -> None:
    found = [find_repeated_warm_ups(joined(np.random.default_rng([16, s]))) for s in range(RUNS)]
    # Measured 99.6 % of 1,000; at 98 %, fewer than 55 of 60 have a chance of 0.1 %.
    assert sum(each is not None for each in found) >= 55


@pytest.mark.parametrize("name", OTHERS)
def test_other_series_are_not_taken_for_joined_rounds(name: str) -> None:
    series = (OTHERS[name](np.random.default_rng([17, seed])) for seed in range(RUNS))
    # Measured 0.5 % of sines, triangles and squares, 0.3 % of spikes, else 0 of 400;
    # at 1 %, more than 3 of 60 have a chance of 0.3 %.
    assert sum(find_repeated_warm_ups(each) is not None for each in series) <= 3
