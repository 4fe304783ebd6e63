"""What intervals of a speed hold if neighbouring rounds are merged before the line is fitted."""

from __future__ import annotations

from functools import partial

import numpy as np
from coverage_tables import Interval, Setting, heading, row, tally
from wps_processes import CASES, NOISES, estimate_of

import benchrigor as br
from benchrigor.session.schedule.work_schedule import bisecting
from benchrigor.stats import fit_wps

__all__ = ["merging"]

MERGING = 76
ROUNDS = (40, 100)
CASE = CASES["overhead 5 %, given range"]
METHODS = ("long-run-variance", "subsessions", "merged-subsessions")
ORDERS = ("bisecting", "ramp")


def fitted(seed: int, noise: str, rounds: int, repetition: int) -> list[Interval | None]:
    """Fit the rounds of one session in each order by each method; None where one refuses."""
    rng = np.random.default_rng([seed, MERGING, [*NOISES].index(noise), rounds, repetition])
    draws, intervals = NOISES[noise][0](rng, rounds), []
    places = {"bisecting": bisecting(rounds, rng), "ramp": np.linspace(0.0, 1.0, rounds)}
    low, high = np.array(CASE.work, dtype=float)
    for order in ORDERS:
        work = low + places[order] * (high - low)
        taken = [
            CASE.duration(noise, index, amount, draw)
            for index, (amount, draw) in enumerate(zip(work, draws, strict=True))
        ]
        for method in METHODS:
            try:
                speed = estimate_of(fit_wps(work, taken, method=method, checks=False).speed)
            except br.NotEstimable:
                speed = None
            intervals.append(speed)
    return intervals


def merging(setting: Setting) -> None:
    """Print coverage and width by method and order; no bars."""
    runs = setting.runs(400, 40)
    print(f"{runs} times the same noise in each order and method, overhead 5 %, given range;")
    print("in brackets the half-width in % of the truth.\n")
    heading(["noise", "rounds", *(f"{method}, {order}" for order in ORDERS for method in METHODS)])
    for noise in NOISES:
        for rounds in ROUNDS:
            sessions = setting.repeated(partial(fitted, setting.seed, noise, rounds), runs)
            columns = zip(*sessions, strict=True)
            row(noise, rounds, *(tally(intervals).cell() for intervals in columns))
