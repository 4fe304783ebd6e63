"""Simulated programs whose interference is known.

A program has classes of segments; every segment does the work of its class, as features count it,
and lasts as long as its class does, both with noise. Interference strikes some segments, each for
a normal time (standard deviation 30 % of its mean, never below 0). Features do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from benchrigor.model import SegmentProfile
from benchrigor.stats import probability_high

__all__ = [
    "INSIDE",
    "OUTSIDE",
    "Floats",
    "Program",
    "Ran",
    "accuracy",
    "at_high_rate",
    "exponential",
    "steady",
]

Floats = npt.NDArray[np.float64]
SPREAD = 0.3
"""Standard deviation of delays over their mean."""


def steady(rng: np.random.Generator, n: int) -> Floats:
    """Return factors of 1 % normal noise."""
    return 1.0 + 0.01 * rng.standard_normal(n)


def heavy(rng: np.random.Generator, n: int) -> Floats:
    """Return factors of 2 % noise with Student's t of two degrees of freedom, 0.5 at least."""
    return np.maximum(1.0 + 0.02 * rng.standard_t(2.0, n), 0.5)


def lognormal(rng: np.random.Generator, n: int) -> Floats:
    """Return factors of 5 % lognormal noise."""
    return rng.lognormal(0.0, 0.05, n)


def gamma(rng: np.random.Generator, n: int) -> Floats:
    """Return factors of 10 % gamma noise."""
    return rng.gamma(100.0, 0.01, n)


def exponential(rng: np.random.Generator, n: int) -> Floats:
    """Return factors with an exponential tail of 5 %, 1 in the mean."""
    return 0.95 + 0.05 * rng.standard_exponential(n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run.

    Parameters
    ----------
    profile
        What was recorded.
    clean_s
        How long its segments would have lasted undisturbed, shape (n,).
    """

    profile: SegmentProfile
    clean_s: Floats

    @property
    def wall_s(self) -> float:
        """Its wall time."""
        return float(self.profile.duration_s.sum())

    @property
    def percent(self) -> float:
        """The truth: delays in per cent of the wall time."""
        return 100.0 * (1.0 - float(self.clean_s.sum()) / self.wall_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Classes of segments.

    Parameters
    ----------
    duration_s
        Of a segment of each class, undisturbed.
    computation, nominal
        By feature, its value in each class.
    shares
        How often each class occurs; None: all as often.
    feature_noise
        Relative standard deviation of the computation features.
    time_noise
        Draws factors on durations.
    even
        Features spread evenly, in logarithms, from the first class to the last, and durations
        with them: there are no classes.
    contended
        Delays cost processor time, and that is what the computation features are.
    """

    duration_s: tuple[float, ...]
    computation: Mapping[str, tuple[float, ...]]
    nominal: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    shares: tuple[float, ...] | None = None
    feature_noise: float = 0.003
    time_noise: Callable[[np.random.Generator, int], Floats] = steady
    even: bool = False
    contended: bool = False

    def classes(self, rng: np.random.Generator, n: int) -> npt.NDArray[np.intp]:
        """Return the class of each segment, which is the same in every run of a program."""
        return rng.choice(len(self.duration_s), n, p=self.shares)

    def run(
        self,
        rng: np.random.Generator,
        classes: npt.NDArray[np.intp],
        *,
        level: float,
        hit: float,
        slower: float = 1.0,
    ) -> Ran:
        """Run it.

        Parameters
        ----------
        rng
            Draws noise and delays.
        classes
            Class of each segment.
        level
            Share of the wall time that delays take, in expectation.
        hit
            Share of segments that are struck.
        slower
            Factor on all durations, struck or not: continuous interference.
        """
        n = classes.size
        duration_s = np.take(self.duration_s, classes)
        features = {name: np.take(each, classes) for name, each in self.computation.items()}
        if self.even:
            factor = (self.duration_s[-1] / self.duration_s[0]) ** rng.random(n)
            duration_s = self.duration_s[0] * factor
            features = {name: each[0] * factor for name, each in self.computation.items()}
        clean_s = duration_s * self.time_noise(rng, n) * slower
        struck = rng.choice(n, max(1, round(hit * n)), replace=False)
        mean_s = level / (1.0 - level) * float(clean_s.sum()) / struck.size
        wall_s = clean_s.copy()
        wall_s[struck] += np.maximum(rng.normal(mean_s, SPREAD * mean_s, struck.size), 0.0)
        if self.contended:
            features = dict.fromkeys(features, wall_s)
        profile = SegmentProfile(
            duration_s=wall_s,
            computation={
                name: each * (1.0 + self.feature_noise * rng.standard_normal(n))
                for name, each in features.items()
            },
            nominal={name: np.take(each, classes) for name, each in self.nominal.items()},
        )
        return Ran(profile=profile, clean_s=clean_s)


def _of(*sizes: float, unit_s: float = 0.012, even: bool = False) -> Program:
    """Return classes that last as long as they compute."""
    return Program(
        duration_s=tuple(unit_s * each for each in sizes),
        computation={"instructions": tuple(1e6 * each for each in sizes)},
        even=even,
    )


def at_high_rate(program: Program, rate: float) -> Program:
    """Return the program with segments so short that there are so many a second, and so noisy."""
    scale = 1.0 / (rate * math.fsum(program.duration_s) / len(program.duration_s))
    duration_s = tuple(scale * each for each in program.duration_s)
    return replace(program, duration_s=duration_s, time_noise=heavy)


# Near ones are 17 % apart: with less the conditions would not hold, with much more all is easy.
_ONE = _of(1.0, 1.17, 1.6, 2.6)
_NOMINAL = Program(
    duration_s=(0.010, 0.018, 0.040, 0.011),
    computation={"instructions": (1e6, 1e6, 1e6, 1e6)},
    nominal={"label": ("solve", "solve", "write", "exchange"), "bytes": (0, 4096, 65536, 0)},
)

INSIDE = {
    "one feature": _ONE,
    "two features": Program(
        duration_s=(0.010, 0.017, 0.012, 0.023),
        computation={"instructions": (1e6, 1e6, 1.2e6, 1.2e6), "flops": (2e5, 4e5, 2e5, 4e5)},
    ),
    "nominal splits": _NOMINAL,
    "three decades": _of(*np.geomspace(1.0, 1000.0, 8).tolist(), unit_s=0.0002),
    "unequal classes": replace(_ONE, shares=(0.02, 0.9, 0.07, 0.01)),
}
"""Programs of which the estimate should be right."""

OUTSIDE = {
    "30 % hit": _ONE,
    "45 % hit": _ONE,
    "60 % hit": _ONE,
    "5 % apart, times 43 %": Program(
        duration_s=(0.012, 0.01716, 0.024, 0.03432),
        computation={"instructions": (1e6, 1.05e6, 2e6, 2.1e6)},
    ),
    "40 segments": _ONE,
    "evenly spread": _of(1.0, 20.0, unit_s=0.004, even=True),
    "3,000 a second": at_high_rate(_ONE, 3000.0),
    "80 % hit": _ONE,
    "5 % lognormal noise": replace(_ONE, time_noise=lognormal),
    "10 % gamma noise": replace(_ONE, time_noise=gamma),
    "contention that costs CPU time": replace(
        _ONE,
        computation={"processor_s": _ONE.duration_s},
        nominal={"label": ("solve", "write", "exchange", "read")},
        contended=True,
    ),
}
"""Programs, and runs of them, of which it may be wrong, and should say so."""


def accuracy(truth_percent: float, percent: float) -> float:
    """Return 1 - |difference of the probabilities that the run is highly interfered with|."""
    return 1.0 - abs(probability_high(truth_percent) - probability_high(percent))
