"""How often sessions of several rounds hold the truth: restarted, continuous, one reading each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from coverage_invocations import PROGRAMS, Program
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally

import benchrigor as br

__all__ = ["rounds"]

ROUNDS = 43
TARGET, READINGS, MOST = 0.02, 200, 400
START_S, READING_S = 0.03, 1e-4  # where a start has a price: that of an interpreter
QUICK = ("restarted: level and warm-up", "one reading: iid normal")

Rng = np.random.Generator
Draw = Callable[[Rng, int], float]

SINGLE: dict[str, tuple[float, Draw]] = {
    "one reading: iid normal": (1.0, lambda rng, _: rng.normal(1.0, 0.05)),
    "one reading: lognormal 0.2": (np.exp(0.02), lambda rng, _: rng.lognormal(0.0, 0.2)),
    "one reading: three slow first ones": (
        1.0,
        lambda rng, index: rng.normal(1.0, 0.05) + 0.3 * (index < 3),
    ),
}
CONTINUOUS = {
    "continuous, 50 readings each: AR(1) 0.9": Program(phi=0.9),
    "continuous, 50 readings each: AR(1) 0.5 and warm-up": Program(phi=0.5, warm_up=1.0),
}
"""A warm-up at the start of the first round only."""
BEYOND = {"lottery", "lottery and warm-up", "one reading: three slow first ones"}
"""Rows without a bar: what was never drawn cannot be counted, and what is slow counts."""

Found = tuple[Interval | None, int]


def restarted(seed: int, name: str, repetition: int) -> Found:
    """Run a session whose rounds are starts of a program."""
    program = PROGRAMS[name]
    rng = np.random.default_rng([seed, ROUNDS, list(PROGRAMS).index(name), repetition])
    options = br.Options(
        target=TARGET,
        rounds="restarted",
        readings_per_round=READINGS,
        max_rounds=MOST,
        budget_s=float("inf"),
    )
    session = br.Session(options, seed=1)
    while (plan := session.ask()) is not None:
        (values,) = program.draw(rng, 1, READINGS)
        session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"reading": values}))
    return _found(session, program.mean)


def priced(seed: int, name: str, repetition: int) -> Found:
    """Run a session of starts that have a price, which chooses how many readings each takes."""
    program = PROGRAMS[name]
    rng = np.random.default_rng([seed, ROUNDS, 60 + list(PROGRAMS).index(name), repetition])
    session = br.Session(br.Options(target=TARGET, rounds="restarted"), seed=1)
    while (plan := session.ask()) is not None:
        (drawn,) = program.draw(rng, 1, plan.readings)
        values = drawn * READING_S
        elapsed_ns = round(1e9 * (START_S + float(values.sum())))
        session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    return _found(session, program.mean * READING_S)


def continuous(seed: int, name: str, repetition: int) -> Found:
    """Run a session whose rounds of 50 readings continue one series."""
    program = CONTINUOUS[name]
    rng = np.random.default_rng([seed, ROUNDS, 20 + list(CONTINUOUS).index(name), repetition])
    (series,) = program.draw(rng, 1, 40_000)
    options = br.Options(
        target=TARGET, readings_per_round=50, budget_readings=40_000, budget_s=float("inf")
    )
    session, at = br.Session(options, seed=1), 0
    while (plan := session.ask()) is not None:
        values = series[at : at + 50]
        at += 50
        session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"reading": values}))
    return _found(session, program.mean)


def single(seed: int, name: str, repetition: int) -> Found:
    """Run a session that gets one reading of each round."""
    truth, draw = SINGLE[name]
    rng = np.random.default_rng([seed, ROUNDS, 40 + list(SINGLE).index(name), repetition])
    options = br.Options(target=TARGET, max_rounds=MOST, budget_s=float("inf"))
    session = br.Session(options, seed=1)
    while (plan := session.ask()) is not None:
        value = draw(rng, plan.index)
        session.tell(br.Round(plan=plan, elapsed_ns=1, readings={"reading": value}))
    return _found(session, truth)


def _found(session: br.Session, truth: float) -> Found:
    record = session.result()
    estimate = record.estimate()
    return (None if estimate is None else of(estimate, truth)), len(record.rounds)


def rounds(setting: Setting) -> None:
    """Print coverage by kind of rounds."""
    runs = setting.runs(600, 60)
    print(
        f"{runs} sessions a row, target {TARGET:.0%}, at most {MOST} rounds ({READINGS} readings "
        "each where restarted; where a start has a price of 300 readings, as many as the session "
        "chooses within ten seconds); in brackets the half-width in % of the truth.\n"
    )
    heading(["rounds", "coverage", "bar", "mean rounds"])
    kinds = {
        **{f"restarted: {name}": partial(restarted, setting.seed, name) for name in PROGRAMS},
        **{f"priced: {name}": partial(priced, setting.seed, name) for name in PROGRAMS},
        **{name: partial(continuous, setting.seed, name) for name in CONTINUOUS},
        **{name: partial(single, setting.seed, name) for name in SINGLE},
    }
    for name, run in kinds.items():
        if setting.quick and name not in QUICK:
            continue
        found = setting.repeated(run, runs)
        ours = tally(each for each, _ in found)
        bar = None if name.split(": ")[-1] in BEYOND or name in BEYOND else Bar(0.92)
        mean = np.mean([count for _, count in found])
        row(name, ours.cell(wilson_too=True), setting.judged(name, bar, ours), f"{mean:.0f}")
