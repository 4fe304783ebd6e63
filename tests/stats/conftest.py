from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from benchrigor.model import SegmentProfile

Floats = npt.NDArray[np.float64]

WORK = np.array([1.0, 1.6, 2.9, 6.0])


def noise_of(name: str, rng: np.random.Generator, n: int) -> Floats:
    return {
        "normal": lambda: rng.normal(1.0, 0.01, n),
        "lognormal": lambda: rng.lognormal(0.0, 0.05, n),
        "exponential tail": lambda: 1.0 + rng.exponential(0.05, n),
        "t(2)": lambda: np.maximum(1.0 + 0.02 * rng.standard_t(2, n), 0.1),
    }[name]()


@pytest.fixture
def simulated() -> Callable[..., SegmentProfile]:
    """Run four classes of segments, of which a share was hit by Gaussian delays."""

    def run(
        seed: int,
        *,
        percent: float = 0.0,
        hit: float = 0.05,
        n: int = 2000,
        noise: str = "normal",
        feature_noise: float = 0.003,
    ) -> SegmentProfile:
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, WORK.size, n)
        duration_s = 0.02 * WORK[kind] * noise_of(noise, rng, n)
        lost_s = np.where(rng.random(n) < hit, np.maximum(rng.normal(1.0, 0.3, n), 0.05), 0.0)
        lost_s *= percent / (100.0 - percent) * duration_s.sum() / max(lost_s.sum(), 1e-9)
        return SegmentProfile(
            duration_s=duration_s + lost_s,
            computation={"work": 1e6 * WORK[kind] * rng.normal(1.0, feature_noise, n)},
            evidence={"lost_s": lost_s},
        )

    return run
