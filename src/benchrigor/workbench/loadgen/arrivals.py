"""The times of requests, drawn before the first one is sent."""

from __future__ import annotations

import numpy as np

from benchrigor.model.series import Floats


def arrival_times(
    rate: float, duration_s: float, *, arrivals: str = "poisson", rng: np.random.Generator
) -> Floats:
    """Return the times of requests within ``duration_s``, in seconds, ascending, shape (n,).

    "poisson": as from many independent users; given their number, which has Poisson's distribution,
    such times are uniform and independent. "constant": evenly.

    Examples
    --------
    >>> arrival_times(2.0, 2.0, arrivals="constant", rng=np.random.default_rng(1))
    array([0. , 0.5, 1. , 1.5])
    """
    if arrivals == "constant":
        return np.arange(max(round(rate * duration_s), 1)) / rate
    n = max(int(rng.poisson(rate * duration_s)), 1)
    return np.sort(rng.uniform(0.0, duration_s, n))
