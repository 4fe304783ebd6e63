"""What a search is going to cost: simulated with servers of which the peak is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchrigor.model.trial import Limit
from benchrigor.testing import SimulatedServer
from benchrigor.workbench.peak_run import PeakRun
from benchrigor.workbench.search import PeakSearch

_TIMES = (2.0, 10.0, 100.0)  # of the first load, at which the peaks are
_SPARE, _NOISE = 0.2, 0.12  # share of the capacity that is left at the peak; of a trial


def expected_costs(options: Mapping[str, Any]) -> tuple[list[int], list[float]]:
    """Return numbers of trials and seconds of searches with such options, for several peaks.

    The servers serve one request after the other; the mean of a trial of a minute varies by 12 %.
    """
    found = []
    for times in _TIMES:
        peak = times * PeakSearch(**options).goal.seed_load
        server = SimulatedServer(peak / (1.0 - _SPARE), noise=_NOISE)
        limit = Limit(metric="mean", at_most=1.0 / (server.capacity - peak))
        search = PeakSearch(**{**options, "limits": [limit], "max_load": None})
        found.append(PeakRun(search, name="a simulated server").carry_out(server))
    return [len(each.trials) for each in found], [each.cost_s for each in found]
