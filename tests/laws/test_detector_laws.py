"""Laws of `protocols.Detector`: the same for a*x + b (a > 0); deterministic; points in range."""

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
import ruptures as rpt
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.model import ChangePoints
from benchrigor.protocols import Detector
from benchrigor.stats import ChangeDetector, detect_changes, find_stable_phase
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector


def named(name: str, values: npt.ArrayLike) -> ChangePoints:
    return find_stable_phase(values, detector=name).change_points


# Those that compare sums of readings obey the first law within rounding only: it is tried with
# noise, where no two ways to cut a series are equally good.
DETECTORS: list[Detector] = [
    detect_changes,
    ChangeDetector(),
    RupturesDetector(rpt.KernelCPD(kernel="rbf")),
    *(partial(named, name) for name in ("edm", "pelt")),
]

levels = st.lists(
    st.tuples(st.integers(15, 60), st.sampled_from([0.0, 3.0, 8.0])), min_size=1, max_size=4
)


def series_of(parts: list[tuple[int, float]], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(level, 1.0, n) for n, level in parts])


@pytest.mark.parametrize("detect", DETECTORS)
@settings(max_examples=20)
@given(parts=levels, seed=st.integers(0, 99), scale=st.floats(1e-6, 1e6), shift=st.floats(-9, 9))
def test_unit_and_origin_do_not_matter(
    detect: Detector, parts: list[tuple[int, float]], seed: int, scale: float, shift: float
) -> None:
    series = series_of(parts, seed)
    assert detect(scale * (series + shift)).indices == detect(series).indices


@pytest.mark.parametrize("detect", DETECTORS)
@settings(max_examples=20)
@given(parts=levels, seed=st.integers(0, 99))
def test_points_are_ascending_in_range_and_the_same_again(
    detect: Detector, parts: list[tuple[int, float]], seed: int
) -> None:
    series = series_of(parts, seed)
    found = detect(series)
    assert found == detect(series.tolist())
    assert found.n == series.size
    assert list(found.indices) == sorted(set(found.indices))
    assert all(0 < index < series.size for index in found.indices)
