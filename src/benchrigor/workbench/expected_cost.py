"""What a search is going to cost: simulated with servers of which the peak is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchrigor.model.trial import Limit, LoadResult
from benchrigor.stats.peaks import NOISE_OF_S
from benchrigor.workbench.search import PeakSearch

_TIMES = (2.0, 10.0, 100.0)  # of the first load, at which the peaks are
_SPARE, _NOISE = 0.2, 0.12  # share of the capacity that is left at the peak; of a trial


def expected_costs(options: Mapping[str, Any]) -> tuple[list[int], list[float]]:
    """Return numbers of trials and seconds of searches with such options, for several peaks.

    The servers serve one request after the other (M/M/1); a trial of a minute varies by 12 %.
    """
    limit = {**options, "limits": [Limit(metric="mean", at_most=1.0)], "max_load": None}
    found = [_carried_out(limit, times) for times in _TIMES]
    return [trials for trials, _ in found], [seconds for _, seconds in found]


def _carried_out(options: Mapping[str, Any], times: float) -> tuple[int, float]:
    search, rng = PeakSearch(**options), np.random.default_rng(1)
    capacity = times * search.goal.seed_load / (1.0 - _SPARE)
    while (trial := search.ask()) is not None:
        left = max(1.0 - trial.load / capacity, 1e-3)
        noise = rng.normal(0.0, _NOISE * math.sqrt(NOISE_OF_S / trial.duration_s))
        search.tell(trial, LoadResult(mean_response_s=_SPARE / left * math.exp(noise)))
    peak = search.result()
    return len(peak.trials), peak.cost_s
