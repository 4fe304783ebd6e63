import pytest

from benchrigor.instrument import ProbeRegistry
from benchrigor.instrument.data.probe_reading import ProbeReading
from benchrigor.instrument.probing import probe_registry
from benchrigor.instrument.probing.own_cost import calibrate, warn_of_own_cost
from benchrigor.model import Code


def reading(name: str, count: int, **figures: object) -> ProbeReading:
    absent = dict.fromkeys(("min_s", "max_s", "mean_s", "variance_s2", "p50_s", "p99_s"))
    known = {"total_s": 1.0, "self_s": 1.0, "samples": 0, "samples_lost": 0, "rejected": 0}
    given = {**absent, **known, "own_cost_s": 1e-6, **figures}
    return ProbeReading(name=name, clock="wall", count=count, **given)


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_each_form_has_a_cost(clock: str, registry: ProbeRegistry) -> None:
    costs_s = calibrate(registry.probe("nothing", clock=clock))
    assert set(costs_s) == {"token", "held", "again", "decorated"}
    assert all(1e-8 < each < 1e-4 for each in costs_s.values())


def test_a_reading_has_the_cost_of_the_dearest_form_in_use(
    registry: ProbeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs_s = {"token": 1e-7, "held": 2e-7, "again": 4e-7, "decorated": 3e-7}
    monkeypatch.setattr(probe_registry, "_own_costs_s", lambda *_clock: costs_s)
    probe = registry.probe("kernel")
    assert probe.read().own_cost_s < 4e-7
    with probe.again():
        pass
    assert probe.read().own_cost_s == 4e-7


def test_probes_that_take_more_than_a_hundredth_of_the_time_are_told_of() -> None:
    readings = [reading("often", 9_000), reading("seldom", 1_001)]
    assert warn_of_own_cost(readings, 1.01) == ()
    (notice,) = warn_of_own_cost(readings, 1.0)
    assert (notice.code, notice.severity) == (Code.PROBE_COST, "warning")
    assert notice.evidence["dearest"] == "often"
    assert notice.evidence["cost_s"] == pytest.approx(0.010001)
