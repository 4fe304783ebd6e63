"""Laws of LoadGenerator, over every implementation."""

from __future__ import annotations

import asyncio
import math

import pytest

from benchrigor import LoadTrial
from benchrigor.protocols import LoadGenerator
from benchrigor.testing import SimulatedServer
from benchrigor.workbench.loadgen import OpenLoop

SERVICE_S = 0.005


async def request() -> None:
    await asyncio.sleep(SERVICE_S)


GENERATORS = {
    "simulated": lambda: SimulatedServer(1.0 / SERVICE_S),
    "at random": lambda: OpenLoop(request),
    "evenly": lambda: OpenLoop(request, arrivals="constant"),
}


@pytest.fixture(params=GENERATORS.values(), ids=GENERATORS.keys())
def generator(request: pytest.FixtureRequest) -> LoadGenerator:
    made: LoadGenerator = request.param()
    return made


def test_it_is_a_load_generator(generator: LoadGenerator) -> None:
    assert isinstance(generator, LoadGenerator)


@pytest.mark.slow
def test_the_mean_rate_is_that_of_the_trial(generator: LoadGenerator) -> None:
    result = generator.offer(LoadTrial(id=3, load=150.0, duration_s=1.0))
    assert result.scheduled is not None
    assert abs(result.scheduled - 150.0) <= 4.0 * math.sqrt(150.0)


@pytest.mark.slow
def test_no_response_is_faster_than_its_service(generator: LoadGenerator) -> None:
    result = generator.offer(LoadTrial(id=3, load=60.0, duration_s=1.0))
    assert result.mean_response_s is not None
    assert result.mean_response_s >= SERVICE_S
    assert result.failed == 0
