import pytest

from benchrigor.testing import FakeSampler


@pytest.fixture
def sampler() -> FakeSampler:
    return FakeSampler({"load 1 min": 0.5, "cpu busy": 7.0, "memory available share": 50.0})
