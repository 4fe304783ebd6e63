"""Maps: which sample is next, what may be told, and when a map ends."""

import math

import numpy as np
import pytest

from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.workbench import Factor, SurfaceMap

DISKS = Factor("disks", levels=[1, 2, 3, 4])
DAEMONS = Factor("daemons", levels=[1, 2, 4, 8, 16, 32, 64, 100], scale="log2")
FACTORS = [DISKS, DAEMONS]


def peak_at(point):
    """A server whose daemons help until its disks are busy."""
    daemons, disks = point["daemons"], point["disks"]
    return 200.0 * disks**0.8 * daemons / (daemons + 3.0 * disks)


def carried_out(search, *, noise=0.025, answer=peak_at, **rest):
    rng, asked = np.random.default_rng(7), []
    while (sample := search.ask()) is not None:
        asked.append(sample)
        value = answer(sample.point) * math.exp(noise * rng.normal())
        estimate = (value, value * (1 - 1.96 * noise), value * (1 + 1.96 * noise))
        search.tell(sample, estimate, **rest)
    return asked


def narrow(value):
    return (value, 0.97 * value, 1.03 * value)


def test_an_adaptive_map_predicts_what_it_has_not_measured():
    """The same told the same is asked; it goes on where it was left; others do not count."""
    search, again = SurfaceMap(FACTORS, samples=12), SurfaceMap(FACTORS, samples=12)
    asked = carried_out(search)
    assert carried_out(again) == asked
    assert len({tuple(sample.point.values()) for sample in asked}) == len(asked) == 12
    surface = search.result()
    errors = [
        abs(surface.predict(point).value / peak_at(point) - 1.0) for point in search.space.grid()
    ]
    assert np.mean(errors) < 0.05
    half, further = SurfaceMap(FACTORS, samples=12), SurfaceMap(FACTORS, samples=3)
    half.recall(surface.samples[:8])
    assert half.ask().point == asked[8].point
    further.recall(surface.samples, own=False)
    pending = [further.ask() for _ in range(3)]
    assert len({tuple(sample.point.values()) for sample in pending}) == 3
    assert further.ask() is None
    for sample in pending:
        further.tell(sample, narrow(peak_at(sample.point)))
    assert len(further.result().samples) == 15


@pytest.mark.parametrize("model", ["quadratic", "gaussian-process"])
def test_a_map_has_the_model_that_is_asked_for(model):
    search = SurfaceMap([DISKS], design="full", model=model)
    carried_out(search, answer=lambda point: 100.0 * math.exp(-0.3 * (point["disks"] - 2.5) ** 2))
    surface = search.result()
    assert (surface.model, surface.predict({"disks": 2}).method) == (model, model)


def test_an_adaptive_map_stops_when_its_predictions_are_as_narrow_as_wanted():
    search = SurfaceMap(FACTORS, target=0.15)
    asked = carried_out(search, noise=0.01)
    assert len(asked) < 32
    widths = [search.result().predict(point).relative_half_width for point in search.space.grid()]
    assert max(widths) < 0.17


def test_a_map_ends_with_its_budget():
    assert len(carried_out(SurfaceMap(FACTORS, budget_s=75.0), noise=0.15, cost_s=10.0)) == 7


def test_of_several_responses_the_first_steers_and_all_are_predicted():
    search = SurfaceMap(FACTORS, samples=12)
    while (sample := search.ask()) is not None:
        for told in (sample, search.ask()):  # also while one is pending
            if told is not None:
                peak = peak_at(told.point)
                search.tell(told, {"peak": narrow(peak), "latency": narrow(1.0 / peak)})
    surface, point = search.result(), {"disks": 3, "daemons": 8}
    assert len(surface.samples) == 12
    product = surface.predict(point, "peak").value * surface.predict(point, "latency").value
    assert product == pytest.approx(1.0, rel=0.1)


def test_a_sample_without_one_response_enters_for_the_others():
    search = SurfaceMap(FACTORS, samples=12)
    for number in range(12):
        sample = search.ask()
        both = {"peak": narrow(peak_at(sample.point)), "latency": narrow(3.0)}
        if number == 4:
            del both["latency"]
        elif number == 5:
            del both["peak"]
            lacking = sample
        elif number > 5:
            assert sample.point != lacking.point  # what steers has failed there
        search.tell(sample, both)
    surface = search.result()
    assert [each.estimates.keys() for each in surface.samples[4:6]] == [{"peak"}, {"latency"}]
    assert len(surface.ranking("peak")) == len(surface.ranking("latency")) == 11


def test_the_first_response_named_steers_though_the_first_sample_lacks_it():
    search = SurfaceMap(FACTORS, samples=2, responses=["peak", "latency"])
    search.tell(search.ask(), {"latency": narrow(3.0)})
    sample = search.ask()
    assert sample.seed_load is None
    search.tell(sample, {"peak": narrow(7.0)})
    sentences = [each.sentence for each in search.result().notices]
    assert [sentence.split(": ")[0] for sentence in sentences] == ["peak", "latency"]


def test_a_quadratic_that_fits_does_not_have_its_corners_asked_again():
    """It is the surer between them the more it is told of them alone."""
    search = SurfaceMap(FACTORS, samples=14, target=1e-3)

    def answer(point):
        return 100.0 * point["disks"] * math.exp(-(DAEMONS.coded(point["daemons"]) ** 2))

    asked = carried_out(search, answer=answer)
    assert search.result().model == "quadratic"
    assert len({tuple(sample.point.values()) for sample in asked}) == 14


def test_what_failed_or_lies_beyond_a_limit_is_kept_and_not_asked_again():
    search = SurfaceMap(FACTORS, samples=8)
    for number in range(8):
        sample = search.ask()
        if number == 2:
            search.tell(sample, None, reason="killed")
            failed = sample
        elif number == 3:
            search.tell(sample, None, at_least=900.0)
        else:
            assert sample.point != (failed.point if number > 3 else None)
            search.tell(sample, narrow(peak_at(sample.point)))
    told = search.result().samples
    assert [each.reason for each in told].count("killed") == 1
    assert [each.at_least for each in told].count(900.0) == 1


def test_a_sample_that_was_not_asked_for_is_refused():
    search = SurfaceMap(FACTORS)
    with pytest.raises(PlanMismatch):
        search.tell(SurfaceMap(FACTORS, seed=2).ask(), narrow(1.0))
    sample = search.ask()
    with pytest.raises(InvalidInput):
        search.tell(sample, narrow(1.0), at_least=2.0)
    search.tell(sample, {"peak": narrow(1.0)})
    with pytest.raises(PlanMismatch):
        search.tell(sample, {"peak": narrow(1.0)})
    with pytest.raises(InvalidInput):
        search.tell(search.ask(), {"latency": narrow(1.0)})  # a response of no other sample


def test_each_response_may_have_its_own_direction():
    factors = [Factor("disks", levels=[1, 2, 3, 4, 5])]
    search = SurfaceMap(
        factors, design="full", responses=["rate", "delay"], direction={"delay": "lower"}
    )
    while (sample := search.ask()) is not None:
        disks = float(sample.point["disks"])
        search.tell(sample, dict.fromkeys(("rate", "delay"), narrow(disks)))
    surface = search.result()
    assert (surface.best("rate").point, surface.best("delay").point) == ({"disks": 5}, {"disks": 1})
    assert surface.ranking("delay")[0].name == "disks 1"
