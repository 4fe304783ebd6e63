"""The expected cost of a search, from simulated servers with known peaks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from benchrigor.model.text import show_duration
from benchrigor.workbench.data import MEAN, Limit, PeakRate
from benchrigor.workbench.fakes import SimulatedServer
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.settings import ADAPTIVE

_MOST_TRIALS = 100  # of the default policy, as its decisions take ever longer
_TIMES = (2.0, 10.0, 100.0)  # peaks over the first load
_SPARE, _NOISE = 0.2, 0.12  # share of spare capacity at the peak; noise of a trial


def wrong_budget(options: Mapping[str, Any]) -> list[str]:
    """Return the problem of a budget that is shorter than a trial of the search."""
    budget_s = options["budget_s"]
    if budget_s is None or PeakSearch(**options).ask() is not None:
        return []
    return [f"budget is {show_duration(budget_s)}, and a trial takes longer: expected more"]


def expected_costs(options: Mapping[str, Any]) -> list[PeakRate]:
    """Return the results of searches with these options, for several peaks.

    The servers serve one request after the other; the mean of a trial of a minute varies by 12 %.
    A search of the default policy stops unfinished after a hundred trials.
    """
    most = _MOST_TRIALS if options.get("policy", ADAPTIVE) == ADAPTIVE else math.inf
    found = []
    for times in _TIMES:
        peak = times * PeakSearch(**options).goal.seed_load
        server = SimulatedServer(peak / (1.0 - _SPARE), noise=_NOISE)
        mean = Limit(metric=MEAN, at_most=1.0 / (server.capacity - peak))
        limits = [mean, *(_met_with(mean, given) for given in options["limits"])]
        by_metric = {limit.metric: limit for limit in limits}
        search = PeakSearch(**{**options, "limits": [*by_metric.values()], "max_load": None})
        while len(search.result().trials) < most and (trial := search.ask()) is not None:
            search.tell(trial, server.offer(trial))
        found.append(search.result())
    return found


def _met_with(mean: Limit, limit: Limit) -> Limit:
    """Return a limit of the same metric that such servers keep up to the same load as ``mean``."""
    if limit.metric == MEAN:
        return mean
    q = 1.0 - limit.at_most if limit.conditions else limit.quantile  # responses are exponential
    if q is None:
        return limit
    at_most = -math.log(1.0 - q) * mean.at_most
    return Limit(metric=f"p{100.0 * q:.10g}", at_most=at_most)
