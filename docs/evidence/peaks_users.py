"""Searches for the number of users that a closed loop bears, of which the truth is known."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from coverage_tables import Bar, Setting, Tally, heading

import benchrigor as br
from benchrigor.workbench import PeakSearch

__all__ = ["users"]

SETUP_S = 20.0
_MOST = 64  # times the peak: the response of more users is taken for a line
_LOOPS = ("one station", "two or three")


def _responses_s(demands_s: np.ndarray, pause_s: float, most: int) -> np.ndarray:
    """Return mean responses to 0, 1, ... users, by exact mean value analysis.

    Reiser and Lavenberg, Journal of the ACM 27 (1980).
    """
    queues, found = np.zeros_like(demands_s), [0.0]
    for users in range(1, most + 1):
        each_s = demands_s * (1.0 + queues)
        found.append(float(each_s.sum()))
        queues = each_s * users / (found[-1] + pause_s)
    return np.array(found)


def _one(seed: int, kind: int, run: int) -> tuple[float, bool, int]:
    """Search with a loop drawn anew; return relative error (nan for no number), held, trials."""
    rng = np.random.default_rng([seed, 77, kind, run])
    others = 0 if kind == 0 else int(rng.integers(1, 3))
    demands_s = rng.uniform(0.001, 0.02) * np.append(1.0, rng.uniform(0.1, 1.0, others))
    pause_s = demands_s[0] * math.exp(rng.uniform(0.0, math.log(100.0)))
    peak = int(math.exp(rng.uniform(math.log(5.0), math.log(500.0))))
    responses_s = _responses_s(demands_s, pause_s, _MOST * peak)
    noise = rng.uniform(0.03, 0.15)  # of a trial of a minute
    limit_s = float(responses_s[peak] + responses_s[peak + 1]) / 2.0
    searching = PeakSearch(threshold_s=limit_s, setup_s=SETUP_S, whole=True, seed_load=4)
    while (trial := searching.ask()) is not None:
        farther = max(trial.load / (_MOST * peak), 1.0)
        mean_s = responses_s[min(int(trial.load), _MOST * peak)] * farther
        mean_s *= math.exp(rng.normal(0.0, noise * math.sqrt(60.0 / trial.duration_s)))
        searching.tell(trial, br.LoadResult(mean_response_s=float(mean_s)))
    found = searching.result()
    if found.load is None:
        return math.nan, False, len(found.trials)
    held = found.load.low <= peak <= found.load.high
    return found.load.value / peak - 1.0, held, len(found.trials)


def users(setting: Setting) -> None:
    """Print errors and how often the interval holds the greatest number that keeps the limit."""
    heading(["closed loop", "found", "trials", "median error", "greatest", "holds"])
    for kind, loop in enumerate(_LOOPS):
        found = setting.repeated(partial(_one, setting.seed, kind), setting.runs(150, 20))
        errors, held, trials = (np.array(each) for each in zip(*found, strict=True))
        tally = Tally(int(held.sum()), 0, held.size, 0.0)
        cells = [
            loop,
            f"{np.isfinite(errors).sum()} of {held.size}",
            f"{trials.mean():.1f}",
            f"{np.nanmedian(np.abs(errors)):.3f}",
            f"{np.nanmax(np.abs(errors)):.3f}",
            f"{held.mean():.3f}: {setting.judged(loop, Bar(0.92, 1.0), tally)}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
