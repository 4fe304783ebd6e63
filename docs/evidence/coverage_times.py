"""How often the interval of skewed times holds their mean, from 10 to 2,000 readings.

Every interval counts in the first share, whether it is printed or too wide to be a number.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_processes import Draw, Floats
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally
from scipy.signal import lfilter
from scipy.stats import norm

from benchrigor.stats import estimate_level, fit_level

__all__ = ["times"]

TIMES = 71
SIZES = (10, 20, 30, 100, 500, 2_000)
QUICK_SIZES = (10, 30, 500)
ENOUGH = 100  # readings from which on bars judge autocorrelated ones
BAR = Bar(0.92, 0.98)
LEAST_TIME = 1e-4


def dependent(rng: np.random.Generator, n: int, phi: float) -> Floats:
    """Draw a stationary normal AR(1) series of variance 1."""
    noise = rng.normal(size=n) * math.sqrt(1.0 - phi * phi)
    noise[0] /= math.sqrt(1.0 - phi * phi)
    series: Floats = lfilter([1.0], [1.0, -phi], noise)
    return series


class Times(NamedTuple):
    """Times with their true mean, and how strongly neighbours depend on each other."""

    mean: float
    draw: Draw
    phi: float = 0.0


def of_tail(phi: float, tail: float) -> Draw:
    """Return Pareto times of at least 1, with this exponent, from a dependent series."""
    return lambda rng, n: norm.sf(dependent(rng, n, phi)) ** (-1.0 / tail)


PROCESSES = {
    "lognormal 0.5": Times(math.exp(0.125), lambda rng, n: rng.lognormal(0.0, 0.5, n)),
    "lognormal 1": Times(math.exp(0.5), lambda rng, n: rng.lognormal(0.0, 1.0, n)),
    "exponential": Times(1.0, lambda rng, n: rng.exponential(size=n)),
    "1 and exponential": Times(2.0, lambda rng, n: 1.0 + rng.exponential(size=n)),
    "Pareto 5": Times(1.25, of_tail(0.0, 5.0)),
    "Pareto 3": Times(1.5, of_tail(0.0, 3.0)),
    "AR(1) 0.5, lognormal 0.5": Times(
        math.exp(0.125), lambda rng, n: np.exp(0.5 * dependent(rng, n, 0.5)), 0.5
    ),
    "AR(1) 0.5, exponential": Times(
        1.0, lambda rng, n: -np.log(norm.sf(dependent(rng, n, 0.5))), 0.5
    ),
    "AR(1) 0.5, Pareto 3": Times(1.5, of_tail(0.5, 3.0), 0.5),
    "AR(1) 0.9, lognormal 0.5": Times(
        math.exp(0.125), lambda rng, n: np.exp(0.5 * dependent(rng, n, 0.9)), 0.9
    ),
}


def interval_of(seed: int, name: str, n: int, repetition: int) -> Interval:
    """Return the interval of one series."""
    process, place = PROCESSES[name], list(PROCESSES).index(name)
    rng = np.random.default_rng([seed, TIMES, place, n, repetition])
    series = LEAST_TIME * process.draw(rng, n)
    return of(estimate_level(fit_level(series), 0.95, positive=True), LEAST_TIME * process.mean)


def times(setting: Setting) -> None:
    """Print coverage by process and number of readings."""
    runs = setting.runs(4_000, 400)
    print(f"{runs} series a row, nominal 95%; in brackets the half-width in % of the truth.\n")
    heading(["times", "n", "all intervals", "bar", "no number", "of the numbers"])
    for name, process in PROCESSES.items():
        for n in QUICK_SIZES if setting.quick else SIZES:
            found = setting.repeated(partial(interval_of, setting.seed, name, n), runs)
            every = tally(found)
            printed = tally(each for each in found if each.half_width <= 1.0)
            bar = BAR if n >= ENOUGH or process.phi == 0.0 else None
            row(
                name,
                f"{n:,}",
                every.cell(wilson_too=True) if every.half_width < 1.0 else f"{every.share:.3f}",
                setting.judged(f"{name}, n = {n}", bar, every),
                f"{1.0 - printed.trials / runs:.3f}",
                printed.cell() if printed.trials else "-",
            )
