"""Series with known autocorrelation."""

import numpy as np
from scipy.signal import lfilter


def autoregressive(rng: np.random.Generator, n: int, phi: float = 0.9) -> np.ndarray:
    """Return a stationary autoregressive series of order 1, of mean 0 and variance 1."""
    series = lfilter([1.0], [1.0, -phi], rng.normal(size=n + 200))[200:]
    return series * np.sqrt(1.0 - phi**2)


def persistent(rng: np.random.Generator, n: int, share: float, stay: float) -> np.ndarray:
    """Return a Markov chain of outcomes: each repeats the last, or with 1 - stay is drawn anew."""
    fresh = rng.random(n) >= stay
    fresh[0] = True
    drawn = rng.random(n) < share
    return drawn[np.maximum.accumulate(np.where(fresh, np.arange(n), 0))]


def noise(n: int, *, seed: int = 1, phi: float = 0.0, cv: float = 0.1) -> np.ndarray:
    """Return readings around 1 with standard deviation ``cv``, of an AR(1) process."""
    return 1.0 + cv * autoregressive(np.random.default_rng(seed), n, phi)


def drifting(rng: np.random.Generator, n: int) -> np.ndarray:
    drift: np.ndarray = 1.0 + 0.1 * np.cumsum(rng.normal(size=n)) / np.sqrt(n)
    return drift
