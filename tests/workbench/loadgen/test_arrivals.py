"""When requests are to be sent."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from benchrigor.workbench.loadgen.arrivals import arrival_times


def test_times_at_random_have_exponential_distances_and_poissons_number():
    rng = np.random.default_rng(1)
    counts = [arrival_times(50.0, 2.0, rng=rng).size for _ in range(400)]
    # The mean of 400 numbers with mean and variance 100, and their variance, within 4 errors.
    assert abs(np.mean(counts) - 100.0) < 4.0 * 10.0 / 20.0
    assert abs(np.var(counts) / 100.0 - 1.0) < 4.0 * np.sqrt(2.0 / 400.0)
    times = arrival_times(200.0, 50.0, rng=rng)
    assert kstest(np.diff(times), "expon", args=(0.0, 1.0 / 200.0)).pvalue > 1e-3
    assert (np.diff(times) >= 0.0).all()
    assert times[-1] < 50.0


def test_times_that_are_constant_are_evenly_spaced():
    times = arrival_times(4.0, 2.0, arrivals="constant", rng=np.random.default_rng(1))
    assert times.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]


def test_there_is_one_request_at_least():
    for arrivals in ("poisson", "constant"):
        assert arrival_times(1e-6, 1.0, arrivals=arrivals, rng=np.random.default_rng(1)).size == 1
