"""The published policies, step by step, as their pages have them."""

from __future__ import annotations

import pytest

import benchrigor as br
from benchrigor.testing import SimulatedServer
from benchrigor.workbench import PeakSearch


def loads(policy: str, ratios: list[float], **options: float) -> list[float]:
    """Loads that a policy asks for, told responses over the limit with hardly any noise."""
    search = PeakSearch(threshold_s=1.0, policy=policy, width=0.05, **options)
    tried: list[float] = []
    for ratio in ratios:
        for nth in range(10 if policy == "strawman" else 2):
            trial = search.ask()
            tried.append(trial.load)
            search.tell(trial, br.LoadResult(mean_response_s=ratio * (1.0 + 1e-4 * nth)))
    trial = search.ask()
    return [*dict.fromkeys(tried), *([] if trial is None else [trial.load])]


def test_binsearch_doubles_then_halves():
    asked = loads("binsearch", [0.2, 0.3, 0.5, 4.0, 2.0, 0.8])
    assert asked == [50.0, 100.0, 200.0, 400.0, 300.0, 250.0, 275.0]


def test_linear_takes_fixed_steps_then_halves():
    assert loads("linear", [0.2, 0.3, 3.0, 0.7]) == [50.0, 70.0, 90.0, 80.0, 85.0]


def test_model_goes_where_the_line_through_two_loads_meets_the_limit():
    """1/R = A - B load through (50, 1/.2) and (100, 1/.4): A = 7.5, B = .05, and 1 at 130."""
    assert loads("model", [0.2, 0.4])[-1] == pytest.approx(130.0, rel=1e-3)


def test_model_doubles_where_the_line_leads_too_far():
    """Through (50, 1/.2) and (100, 1/.25): A = 6, B = .02, and 1 at 250, over twice 100."""
    assert loads("model", [0.2, 0.25])[-1] == 200.0


def test_quadratic_goes_where_the_parabola_through_three_loads_meets_the_limit():
    """R = .1 + load^2 / 1e5 is 1 at 300."""
    ratios = [0.1 + load**2 / 1e5 for load in (50.0, 100.0, 200.0)]
    asked = loads("quadratic", ratios)
    assert asked[:3] == [50.0, 100.0, 200.0]
    assert asked[3] == pytest.approx(300.0, rel=1e-3)


def test_strawman_ends_at_the_first_saturated_load():
    asked = loads("strawman", [0.2, 0.3, 1.5])
    assert asked == [50.0, 70.0, 90.0]


def test_a_load_is_left_only_when_its_interval_lies_outside_of_the_region():
    search = PeakSearch(threshold_s=1.0, policy="binsearch", width=0.1, accuracy=0.1)
    tried = []
    for ratio in (0.8, 1.2, 1.0, 1.01, 0.99, 1.0):  # two trials far apart reject nothing
        trial = search.ask()
        tried.append((trial.load, trial.duration_s))
        search.tell(trial, br.LoadResult(mean_response_s=ratio))
    assert set(tried) == {(50.0, 180.0)}


def test_a_load_is_not_left_for_responses_that_are_far_from_normal():
    """One of twelve is three times the others: Student's t would put their mean at .4 to .77."""
    search = PeakSearch(threshold_s=1.0, policy="binsearch", width=0.1, accuracy=0.1)
    for nth in range(12):
        trial = search.ask()
        assert trial.load == 50.0
        search.tell(trial, br.LoadResult(mean_response_s=1.5 if nth == 1 else 0.5))
    trial = search.ask()
    assert trial.load == 50.0


def test_a_bracket_that_collapsed_is_opened_again():
    search = PeakSearch(threshold_s=1.0, policy="binsearch", width=0.01)
    asked = []
    for _ in range(60):
        trial = search.ask()
        asked.append(trial.load)
        saturated = trial.load >= 100.0 if len(asked) < 30 else trial.load >= 93.0
        noise = 1.0 + 1e-5 * len(asked)
        search.tell(trial, br.LoadResult(mean_response_s=(3.0 if saturated else 0.3) * noise))
    assert min(asked[30:]) < 93.0 < max(asked[30:])


@pytest.mark.parametrize("policy", ["binsearch", "quadratic"])
def test_the_peak_lies_between_the_nearest_loads_tried(policy: str):
    """Single trials at the load that is found are on either side of the limit, by luck."""
    for seed in range(20):
        server = SimulatedServer(120.0 + 40.0 * seed, noise=0.1, seed=seed)
        search = PeakSearch(threshold_s=0.04, policy=policy, accuracy=0.1)
        while (trial := search.ask()) is not None:
            search.tell(trial, server.offer(trial))
        load = search.result().load
        assert load.low < load.high
        assert load.low <= server.peak(0.04) <= load.high
