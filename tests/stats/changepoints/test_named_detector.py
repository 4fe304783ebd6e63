"""Detectors by name: each finds a plain change, in series of any length."""

import subprocess
import sys
import time

import numpy as np
import pytest

from benchrigor.stats import find_stable_phase


def warming_up(n: int) -> np.ndarray:
    noise = np.random.default_rng(n).normal(0.0, 0.1, n)
    return np.where(np.arange(n) < n // 10, 2.0, 1.0) + noise


@pytest.mark.slow
@pytest.mark.parametrize("name", ["edm", "pelt"])
@pytest.mark.parametrize("n", [400, 2048, 40_000])
def test_each_finds_a_warm_up_in_series_of_any_length(name: str, n: int) -> None:
    began = time.process_time()
    points = find_stable_phase(warming_up(n), detector=name).change_points
    assert time.process_time() - began < 20.0  # all of 40,000 would take minutes
    assert (points.n, points.level) == (n, None)
    assert min(abs(index - n // 10) for index in points.indices) <= n // 100
    assert all(isinstance(index, int) for index in points.indices)


@pytest.mark.slow
def test_ruptures_is_loaded_only_where_it_is_asked_for() -> None:
    code = (
        "import sys, benchrigor as br; br.Session(br.Options()); "
        "assert 'ruptures' not in sys.modules; br.Session(br.Options(detector='pelt')); "
        "assert 'ruptures' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
