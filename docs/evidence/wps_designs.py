"""Sessions by work and duration that stop at a target, and other orders of the amounts."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, row, tally
from wps_processes import CASES, NOISES, Case, estimate_of, plain, session

import benchrigor as br
from benchrigor.stats import fit_wps, merge_subsessions

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


def stopped(
    seed: int,
    noise: str,
    stop: tuple[str, float],
    repetition: int,
    *,
    method: str = "long-run-variance",
) -> Stopped:
    """Run one session to its target."""
    case, target = stop
    key = [seed, SEQUENTIAL, ROWS.index(noise) + len(ROWS) * STOPS.index(stop), repetition]
    ran = session(CASES[case], noise, np.random.default_rng(key), target=target, method=method)
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


def ordered(seed: int, noise: str, repetition: int) -> list[Interval | None]:
    """Run a session in each order; find the interval of its rounds in three ways."""
    key = [seed, DESIGNS, ROWS.index(noise), repetition]
    case = CASES[RANGE_CASE]
    found = [
        session(case, noise, np.random.default_rng(key), looks=(ROUNDS,), **how)
        for how in ({}, {"order": "random"}, {"amounts": ramp(case)})
    ]
    return [
        *(estimate_of(each.early.get(ROUNDS)) for each in found),
        *(by_subsessions(each.work, each.duration_s) for each in found),
        *(merged(each.work, each.duration_s) for each in found),
    ]


def ramp(case: Case) -> np.ndarray:
    """Return evenly rising amounts."""
    low, high = case.work
    assert high is not None
    return low + (np.arange(ROUNDS) + 0.5) / ROUNDS * (high - low)


def by_subsessions(work: np.ndarray, duration_s: np.ndarray) -> Interval | None:
    """Return the line of all rounds, its interval from subsessions; None where none is found."""
    try:
        return estimate_of(fit_wps(work, duration_s, method="subsessions").speed)
    except br.NotEstimable:
        return None


def merged(work: np.ndarray, duration_s: np.ndarray) -> Interval | None:
    """Merge neighbours and fit a line to the merged rounds, as was published."""
    slope, overhead = np.polyfit(work, duration_s, 1)
    size = merge_subsessions(duration_s - overhead - slope * work).size
    if size is None or work.size // size < 5:
        return None
    count = work.size // size
    means = (each[: count * size].reshape(count, size).mean(axis=1) for each in (work, duration_s))
    return plain(*means)


def designs(setting: Setting) -> None:
    """Print what the order of the amounts does to the interval; no bars."""
    runs = setting.runs(200, 40)
    print(f"{runs} sessions of {ROUNDS} rounds an order, {RANGE_CASE}, the same noise in each.\n")
    print("Then intervals by subsessions, and neighbours merged before the line is fitted.\n")
    orders = ("bisecting", "random", "ramp")
    ways = ("", "subsessions, ", "merged, ")
    heading(["noise", *(f"{way}{order}" for way in ways for order in orders)])
    for noise in QUICK if setting.quick else ROWS:
        found = setting.repeated(partial(ordered, setting.seed, noise), runs)
        row(noise, *(tally(each).cell() for each in zip(*found, strict=True)))
    print(f'\nSessions by method="subsessions" that stop at 5 %, {STOPS[0][0]}:\n')
    heading(["noise", "stopped", "of", "mean rounds"])
    for noise in QUICK if setting.quick else ROWS:
        run = partial(stopped, setting.seed, noise, STOPS[0], method="subsessions")
        ended = [each for each in setting.repeated(run, runs) if each.satisfied]
        rounds = np.mean([each.rounds for each in ended])
        row(noise, tally(each.interval for each in ended).cell(), len(ended), f"{rounds:.0f}")
