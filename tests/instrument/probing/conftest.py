import pytest

from benchrigor.instrument import Probe, ProbeRegistry
from benchrigor.instrument.probes import CLOCKS
from benchrigor.testing import FakeClock


@pytest.fixture
def hand(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a clock of probes that tests turn by hand."""
    name = f"clock {id(clock)}"  # classes of probes are kept by the name of their clock
    monkeypatch.setitem(CLOCKS, name, type(CLOCKS["wall"])(clock.now_ns))
    return name


@pytest.fixture(params=[False, True], ids=["one cell", "a cell for each thread"])
def registry(request: pytest.FixtureRequest) -> ProbeRegistry:
    return ProbeRegistry(per_thread=request.param)


@pytest.fixture
def probe(registry: ProbeRegistry, hand: str) -> Probe:
    return registry.probe("kernel", clock=hand)
