"""Processes that resemble benchmarks, with truths that are known exactly.

`ZOO` holds them by name. Each draws one continuing, stationary series around a known mean; a
warm-up is added at its start, a cool-down at its end. Unless said otherwise the coefficient of
variation is 10 %. Every series starts in its stationary law, filters after 2000 readings.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special
from scipy.signal import lfilter

__all__ = ["ROWS", "ZOO", "Draw", "Group", "Process", "ar1", "exponential_warm_up", "filtered"]

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Rng, int], Floats]

_BURN_IN = 2_000


class Group(enum.StrEnum):
    """What kind of process a row is about."""

    STATIONARY = "stationary"
    PERIODIC = "periodic"
    WARM = "with warm-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process with a known truth.

    Parameters
    ----------
    mean
        Of the stationary series.
    noise
        Draws n readings of the stationary series, or of one that nears it (a queue from empty).
    warm_up, cool_down
        Added to the reading with that index from the start, or from the end, over the mean.
    quantile
        Quantiles of the stationary law, where they are needed.
    """

    group: Group
    mean: float
    noise: Draw
    warm_up: Callable[[Floats], Floats] | None = None
    cool_down: Callable[[Floats], Floats] | None = None
    quantile: Callable[[float], float] | None = None

    def draw(self, rng: Rng, n: int, *, ends: bool = True) -> Floats:
        """Return n readings; with ``ends`` the cool-down is among them."""
        series = self.noise(rng, n)
        index = np.arange(n, dtype=np.float64)
        if self.warm_up is not None:
            series = series + self.mean * self.warm_up(index)
        if self.cool_down is not None and ends:
            series = series + self.mean * self.cool_down(index[::-1])
        return series


def _normal(rng: Rng, n: int) -> Floats:
    return rng.normal(size=n)


def filtered(a: list[float], b: list[float], innovations: Draw = _normal) -> Draw:
    """Return ARMA noise of variance 1: ``a`` autoregressive, ``b`` moving average coefficients.

    Innovations have mean 0 and variance 1.
    """
    response = lfilter([1.0, *b], [1.0, *(-np.array(a))], [1.0, *np.zeros(_BURN_IN)])
    gain = 1.0 / math.sqrt(float(response @ response))

    def draw(rng: Rng, n: int) -> Floats:
        shocks = innovations(rng, n + _BURN_IN)
        series: Floats = lfilter([1.0, *b], [1.0, *(-np.array(a))], shocks)
        return gain * series[_BURN_IN:]

    return draw


def ar1(rng: Rng, n: int, phi: float) -> Floats:
    """Draw a stationary normal AR(1) series of variance 1."""
    shocks = rng.normal(size=n)
    shocks[1:] *= math.sqrt(1.0 - phi * phi)
    series: Floats = lfilter([1.0], [1.0, -phi], shocks)
    return series


def around(noise: Draw, cv: float = 0.1, mean: float = 1.0) -> Draw:
    """Return readings around a mean from noise of variance 1."""
    return lambda rng, n: mean + cv * mean * noise(rng, n)


def two_state(enter: float, leave: float) -> Draw:
    """Return a stationary chain of 0 and 1; chances to enter and to leave state 1."""

    def draw(rng: Rng, n: int) -> Floats:
        first = bool(rng.random() < enter / (enter + leave))
        # Alternating geometric sojourns, enough for any case.
        half = n // 2 + 1
        stays = np.empty(2 * half, dtype=np.int64)
        stays[0::2] = rng.geometric(leave if first else enter, half)
        stays[1::2] = rng.geometric(enter if first else leave, half)
        used = int(np.searchsorted(np.cumsum(stays), n)) + 1
        states = np.resize([float(first), float(not first)], used).repeat(stays[:used])
        series: Floats = states[:n]
        return series

    return draw


def modes(states: Draw, gap: float, cv: float) -> Draw:
    """Return readings around 1, or around 1 + gap where the state is 1."""
    return lambda rng, n: 1.0 + gap * states(rng, n) + cv * rng.normal(size=n)


def independent_states(share: float) -> Draw:
    """Return states that are 1 with a chance of ``share``."""
    return lambda rng, n: (rng.random(n) < share).astype(np.float64)


def queue(load: float, base: float, *, empty: bool = False) -> Draw:
    """Return base plus times in an M/M/1 system of successive customers (Lindley 1952).

    The mean service takes 1; the first customer finds the stationary queue, or an empty system.
    """

    def draw(rng: Rng, n: int) -> Floats:
        wait = 0.0
        if not empty and rng.random() < load:
            wait = rng.exponential(1.0 / (1.0 - load))
        services = rng.exponential(1.0, n)
        walk = np.concatenate(
            ([0.0], np.cumsum(services[:-1] - rng.exponential(1.0 / load, n - 1)))
        )
        waits = walk - np.minimum(np.minimum.accumulate(walk), -wait)
        times: Floats = base + waits + services
        return times

    return draw


def strict_spikes(rng: Rng, n: int) -> Floats:
    """Return readings of 1, five times as long at every fiftieth."""
    spikes: Floats = np.where((np.arange(n) + rng.integers(50)) % 50 == 0, 4.0, 0.0)
    return 1.0 + spikes + 0.05 * rng.normal(size=n)


def jittered_spikes(rng: Rng, n: int) -> Floats:
    """Return readings of 1, five times as long after gaps of 40 to 60."""
    # The gap around the first reading is met in proportion to its length.
    lengths = np.arange(40, 61)
    gap = int(rng.choice(lengths, p=lengths / lengths.sum()))
    gaps = np.concatenate(([int(rng.integers(gap))], rng.integers(40, 61, n // 40 + 1)))
    at = np.cumsum(gaps)
    spikes = np.zeros(n)
    spikes[at[at < n]] = 4.0
    return 1.0 + spikes + 0.05 * rng.normal(size=n)


def thermal(rng: Rng, n: int) -> Floats:
    """Return a slow cycle of 8 % with a period of 800 readings, from a random phase."""
    phase = rng.uniform(0.0, 2.0 * math.pi)
    cycle: Floats = 0.08 * np.sin(2.0 * math.pi * np.arange(n) / 800.0 + phase)
    return 1.0 + cycle + 0.03 * rng.normal(size=n)


def exponential_warm_up(amplitude: float, constant: float) -> Callable[[Floats], Floats]:
    """Return what fades exponentially."""
    return lambda index: amplitude * np.exp(-index / constant)


def step(amplitude: float, length: int) -> Callable[[Floats], Floats]:
    """Return what ends at once."""
    return lambda index: np.where(index < length, amplitude, 0.0)


def _ar(phi: float) -> Draw:
    return filtered([phi], [])


def _of_normal(q: float) -> float:
    return 1.0 + 0.1 * float(special.ndtri(q))


def _of_modes(q: float) -> float:
    def excess(x: float) -> float:
        below = 0.7 * special.ndtr((x - 1.0) / 0.03) + 0.3 * special.ndtr((x - 1.4) / 0.03)
        return float(below) - q

    return float(optimize.brentq(excess, 0.5, 2.0, xtol=1e-14))


_IID, _AR5, _AR9 = around(_normal), around(_ar(0.5)), around(_ar(0.9))
_LOG, _LOG_MEAN = (lambda rng, n: rng.lognormal(0.0, 0.5, n)), math.exp(0.125)
_MARKOV = modes(two_state(0.03, 0.07), 0.4, 0.03)
_EXP, _STEP, _DOWN = exponential_warm_up(0.5, 40.0), step(0.25, 100), step(-0.2, 80)


def _stationary(
    mean: float, noise: Draw, quantile: Callable[[float], float] | None = None
) -> Process:
    return Process(group=Group.STATIONARY, mean=mean, noise=noise, quantile=quantile)


def _warm(
    mean: float,
    noise: Draw,
    warm_up: Callable[[Floats], Floats] | None,
    cool_down: Callable[[Floats], Floats] | None = None,
) -> Process:
    return Process(group=Group.WARM, mean=mean, noise=noise, warm_up=warm_up, cool_down=cool_down)


ZOO: dict[str, Process] = {
    "iid normal": _stationary(1.0, _IID, _of_normal),
    "lognormal 0.5": _stationary(_LOG_MEAN, _LOG),
    "lognormal 1": _stationary(
        math.exp(0.5),
        lambda rng, n: rng.lognormal(0.0, 1.0, n),
        lambda q: math.exp(special.ndtri(q)),
    ),
    "Pareto 2.5": _stationary(5.0 / 3.0, lambda rng, n: 1.0 + rng.pareto(2.5, n)),
    "AR(1) 0.5": _stationary(1.0, _AR5, _of_normal),
    "AR(1) 0.9": _stationary(1.0, _AR9, _of_normal),
    "AR(1) 0.99": _stationary(1.0, around(_ar(0.99)), _of_normal),
    "moving average of 8": _stationary(1.0, around(filtered([], [1.0] * 7))),
    "negative moving average": _stationary(1.0, around(filtered([], [-0.6]))),
    "lognormal of AR(1) 0.9": _stationary(
        math.exp(0.75**2 / 2.0),
        lambda rng, n: np.exp(0.75 * _ar(0.9)(rng, n)),
        lambda q: math.exp(0.75 * special.ndtri(q)),
    ),
    "bimodal iid": _stationary(1.12, modes(independent_states(0.3), 0.4, 0.03), _of_modes),
    "bimodal switching": _stationary(1.12, _MARKOV, _of_modes),
    "M/M/1 at 0.8": _stationary(20.0, queue(0.8, 15.0)),
    "spikes, strict": Process(group=Group.PERIODIC, mean=1.08, noise=strict_spikes),
    "spikes, jittered": Process(group=Group.PERIODIC, mean=1.08, noise=jittered_spikes),
    "thermal cycle": Process(group=Group.PERIODIC, mean=1.0, noise=thermal),
    "iid, exp": _warm(1.0, _IID, _EXP),
    "iid, step and cool-down": _warm(1.0, _IID, _STEP, _DOWN),
    "lognormal 0.5, step": _warm(_LOG_MEAN, _LOG, _STEP),
    "AR(1) 0.5, exp": _warm(1.0, _AR5, _EXP),
    "AR(1) 0.9, exp": _warm(1.0, _AR9, _EXP),
    "AR(1) 0.9, step and cool-down": _warm(1.0, _AR9, _STEP, _DOWN),
    "bimodal switching, step": _warm(1.12, _MARKOV, _STEP),
    "M/M/1 from empty": _warm(20.0, queue(0.8, 15.0, empty=True), None),
}

ROWS: dict[str, int] = {name: row for row, name in enumerate(ZOO)}
"""The number of each process, for its seeds."""
