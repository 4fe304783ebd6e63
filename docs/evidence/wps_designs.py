"""Sessions by work and duration that stop at a target, and other orders of the amounts."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, row, tally
from wps_processes import CASES, NOISES, Case, estimate_of, session

import benchrigor as br
from benchrigor.stats import fit_wps

__all__ = ["designs", "sequential"]

SEQUENTIAL, DESIGNS = 72, 73
STOPS = (("overhead 5 %", 0.05), ("overhead 20 %", 0.05), ("overhead 5 %", 0.02))
FULL_RUNS = {0.05: 600, 0.02: 200}
QUICK = ("AR(1) 0.7 additive",)
ROWS = list(NOISES)
RANGE_CASE = "overhead 5 %, given range"
ROUNDS = 40


class Stopped(NamedTuple):
    """How one session ended."""

    interval: Interval | None
    satisfied: bool
    rounds: int
    seconds: float


def stopped(seed: int, noise: str, stop: tuple[str, float], repetition: int) -> Stopped:
    """Run one session to its target."""
    case, target = stop
    key = [seed, SEQUENTIAL, ROWS.index(noise) + len(ROWS) * STOPS.index(stop), repetition]
    ran = session(CASES[case], noise, np.random.default_rng(key), target=target)
    return Stopped(estimate_of(ran.analysis.estimate), ran.satisfied, ran.rounds, ran.seconds)


def sequential(setting: Setting) -> None:
    """Print the coverage of sessions that stopped."""
    print("Coverage of the sessions that stopped at the target, within 400 rounds.\n")
    heading(["workload", "noise", "target", "stopped", "bar", "of", "mean rounds", "mean time"])
    for case, target in STOPS[: 1 if setting.quick else None]:
        runs = setting.runs(FULL_RUNS[target], 30)
        for noise in QUICK if setting.quick else ROWS:
            run = partial(stopped, setting.seed, noise, (case, target))
            found = setting.repeated(run, runs)
            ended = [each for each in found if each.satisfied]
            name = f"{case}, {noise}, stopped at {target:.0%}"
            if not ended:
                row(case, noise, f"{target:.0%}", "none", setting.verdict(name, met=False))
                continue
            counted = tally(each.interval for each in ended)
            row(
                case,
                noise,
                f"{target:.0%}",
                counted.cell(wilson_too=True),
                setting.judged(name, Bar(0.92), counted),
                f"{len(ended)} of {len(found)}",
                f"{np.mean([each.rounds for each in ended]):.0f}",
                f"{np.mean([each.seconds for each in ended]):.0f} s",
            )


class Ordered(NamedTuple):
    """The same noise met in several orders of the amounts."""

    bisecting: Interval | None
    shuffled: Interval | None
    ramp: Interval | None
    merged: Interval | None


def ordered(seed: int, noise: str, repetition: int) -> Ordered:
    """Run a session in each order; merge the rounds of the ramp."""
    key = [seed, DESIGNS, ROWS.index(noise), repetition]
    case = CASES[RANGE_CASE]
    found = [
        session(case, noise, np.random.default_rng(key), looks=(ROUNDS,), **how)
        for how in ({}, {"order": "random"}, {"amounts": ramp(case)})
    ]
    bisecting, shuffled, rising = (estimate_of(each.early.get(ROUNDS)) for each in found)
    sums = merged(found[-1].work, found[-1].duration_s)
    return Ordered(bisecting, shuffled, rising, sums)


def ramp(case: Case) -> np.ndarray:
    """Return evenly rising amounts."""
    low, high = case.work
    assert high is not None
    return low + (np.arange(ROUNDS) + 0.5) / ROUNDS * (high - low)


def merged(work: np.ndarray, duration_s: np.ndarray) -> Interval | None:
    """Fit sums of neighbours; None where that is refused."""
    try:
        return estimate_of(fit_wps(work, duration_s, method="subsessions").speed)
    except (br.NotEstimable, br.InvalidInput):
        return None


def designs(setting: Setting) -> None:
    """Print what the order of the amounts does to the interval; no bars."""
    runs = setting.runs(200, 40)
    print(f"{runs} sessions of {ROUNDS} rounds an order, {RANGE_CASE}, the same noise in each.\n")
    heading(["noise", "bisecting", "random", "rising ramp", "ramp, neighbours merged"])
    for noise in QUICK if setting.quick else ROWS:
        found = setting.repeated(partial(ordered, setting.seed, noise), runs)
        row(noise, *(tally(each).cell() for each in zip(*found, strict=True)))
