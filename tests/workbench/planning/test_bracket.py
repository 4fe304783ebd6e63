"""The peak where no curve describes the server."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Code
from benchrigor.workbench.data import Trial
from benchrigor.workbench.planning.bracket import halve_bracket
from benchrigor.workbench.planning.steps import Ending, Goal

GOAL = Goal(
    width=0.1,
    accuracy=0.05,
    confidence=0.95,
    seed_load=50.0,
    min_load=1.0,
    max_load=None,
    setup_s=0.0,
)


def trial_of(load: float, ratio: float) -> Trial:
    asked = br.LoadTrial(id=0, load=load, duration_s=10.0)
    return Trial(asked=asked, result=br.LoadResult(mean_response_s=ratio), ratio=ratio)


@pytest.mark.parametrize("peak", [60.0, 437.0, 790.0])
def test_the_bracket_closes_around_any_step(peak: float):
    rng = np.random.default_rng(1)

    def ratio(load: float) -> float:
        return (0.9 if load < peak else 1.2) * math.exp(rng.normal(0.0, 0.02))

    trials = [trial_of(load, ratio(load)) for load in (50.0, 800.0)]
    for _ in range(40):
        step = halve_bracket(trials, GOAL, 10.0)
        if isinstance(step, Ending):
            break
        assert step.duration_s == 20.0
        trials.append(trial_of(step.load, ratio(step.load)))
    assert isinstance(step, Ending)
    assert step.load.low <= peak <= step.load.high <= step.load.low * 1.05**2
    assert [each.code for each in step.notices] == [Code.BRACKET]
    for end in (step.load.low, step.load.high):
        assert sum(each.asked.load == end for each in trials) >= 2


def test_an_end_that_was_bad_luck_is_given_up():
    """A single trial at 100 was saturated by a stall; two more were not."""
    trials = [
        trial_of(x, r) for x, r in ((50, 0.2), (100, 9.0), (100, 0.3), (100, 0.3), (400, 5.0))
    ]
    step = halve_bracket(trials, GOAL, 10.0)
    assert not isinstance(step, Ending)
    assert step.load == 400.0


def test_of_whole_loads_the_peak_is_a_whole_number():
    trials = [trial_of(x, 0.9 if x < 6 else 1.2) for x in (5, 5, 6, 6)]
    step = halve_bracket(trials, replace(GOAL, whole=True), 10.0)
    assert isinstance(step, Ending)
    assert (step.load.low, step.load.value, step.load.high) == (5.0, 5.0, 6.0)
