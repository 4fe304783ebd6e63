"""Where sessions of slow readings stop, whether they hold the truth, and what they say of targets.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/slow_readings.py [--quick] [--seed N] [--only a,b]

Every draw is default_rng([seed, row, repetition]); the level of every process is 1, and every
reading takes the time of its row. The target is 2 % and the budget ten seconds, but in `truth` they
are 5 % and without limit.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, row, tally
from front_door import print_sections

import benchrigor as br
from benchrigor.model import Floats
from benchrigor.session import Engine

__all__ = ["defaults", "reach", "stops", "truth"]

SECTIONS = {
    "truth": ("Readings of 1 s without limit of time", "slow_readings"),
    "defaults": ("Seconds of default runs", "slow_readings"),
    "stops": ("Sessions of readings of 20 ms", "slow_readings"),
    "reach": ("Targets that cannot be reached", "slow_readings"),
}
TARGET, BUDGET_S = 0.02, 10.0
BAR = Bar(0.92)
LIMITED = br.Options(target=TARGET, budget_s=BUDGET_S)
# Rounds of five readings instead of one: nearly the same looks in a fifth of the time.
UNLIMITED = br.Options(target=0.05, budget_s=math.inf, readings_per_round=5)
MOST = 20_000  # readings of a session without limit: one that is not satisfied by then is a miss
TRUTHS = (
    ("independent", 0.05),
    ("AR(1) 0.5", 0.05),
    ("AR(1) 0.9", 0.02),
    ("two modes", 0.05),
    ("modes 1 1.2, stays 40 10", 0.005),
    ("modes 1 1.1 1.3, stays 30 20 10", 0.005),
    ("batches of 10", 0.02),
    ("batches of 40", 0.02),
    ("tails of t(3)", 0.05),
    ("tails of a lognormal", 0.1),
)
READINGS_MS = (5, 7, 10, 13, 15, 20, 30, 50, 100, 200, 300)
DEFAULTS = (*((name, cv) for name in ("independent", "AR(1) 0.5") for cv in (0.004, 0.015, 0.04)),)
STOPS = (
    *((name, cv) for name in ("independent", "AR(1) 0.5", "AR(1) 0.9") for cv in (0.004, 0.015)),
    *((name, cv) for name in ("two modes", "modes that switch") for cv in (0.004, 0.015)),
    *((f"warm-up {size:g}, {length:g} readings", 0.015) for size, length in ((0.02, 30.0),)),
    *((f"warm-up {size:g}, {length:g} readings", 0.015) for size, length in ((0.02, 100.0),)),
    ("warm-up 0.1, 100 readings", 0.015),
)
REACH = (
    *(("independent", cv, 0.002) for cv in (0.4, 0.55, 0.65, 0.8)),
    *(("AR(1) 0.9", cv, 0.002) for cv in (0.1, 0.15, 0.2)),
    ("modes that switch", 0.2, 0.002),
    *(("independent", cv, 0.02) for cv in (0.05, 0.1, 0.2)),
    *(("independent", cv, 0.1) for cv in (0.01, 0.02, 0.05)),
    ("independent", 0.01, 0.5),
)


class Ended(NamedTuple):
    """How a session ended."""

    n: int
    satisfied: bool
    error: float
    half_width: float
    said_at: float  # seconds, NaN if it never called the target out of reach
    reachable: float  # half-width that it predicted then


def drawn(name: str, cv: float, rng: np.random.Generator, n: int) -> Floats:
    """Return readings of a process."""
    noise = rng.normal(size=n)
    if name.startswith("AR(1)"):
        phi = float(name.split()[1])
        for index in range(1, n):
            noise[index] = phi * noise[index - 1] + math.sqrt(1.0 - phi**2) * noise[index]
    elif name.startswith("modes 1 "):
        return levels_with_stays(name, rng, n) + cv * noise
    elif name.startswith("batches"):
        together = int(name.rsplit(maxsplit=1)[-1])
        noise = 0.5 * noise + np.repeat(rng.normal(size=n // together + 1), together)[:n]
    elif name.startswith("tails"):
        tails = rng.standard_t(3.0, n) if "t(3)" in name else rng.lognormal(-0.5, 1.0, n) - 1.0
        noise = np.asarray(tails)
    elif "modes" in name:
        chance = 0.5 if name.startswith("two") else 0.05
        side = 2.0 * ((np.cumsum(rng.random(n) < chance) + rng.integers(2)) % 2) - 1.0
        noise = side + 0.1 * noise
    series: Floats = 1.0 + cv * noise
    if name.startswith("warm-up"):
        size, length = (float(word) for word in name.replace(",", "").split()[1:3])
        series += size * np.exp(-np.arange(n) / length)
    return series


def levels_with_stays(name: str, rng: np.random.Generator, n: int) -> Floats:
    """Return the levels of modes that follow each other at random, with a mean of 1.

    Stays are geometric, with the mean lengths that the name gives.
    """
    words = name.removeprefix("modes ").split(", stays ")
    levels, stays = (np.array(part.split(), dtype=float) for part in words)
    count = 2 * math.ceil(n / stays.min())
    at_start = rng.choice(levels.size, p=stays / stays.sum())
    # The next mode is any of the others, with equal chance, so each comes as often as the others.
    modes = (at_start + np.cumsum(rng.integers(1, levels.size, size=count))) % levels.size
    series = np.repeat(levels[modes], rng.geometric(1.0 / stays[modes]))[:n]
    relative: Floats = series / (levels @ stays / stays.sum())
    return relative


def session(
    seed: int,
    index: int,
    case: tuple[str, float, float],
    repetition: int,
    options: br.Options = LIMITED,
) -> Ended:
    """Run one session, a second at least."""
    name, cv, reading_s = case
    n = MOST if math.isinf(options.budget_s) else math.ceil(1.2 * options.budget_s / reading_s)
    series = drawn(name, cv, np.random.default_rng([seed, index, repetition]), n)
    engine = Engine(options, seed=repetition)
    engine.min_seconds = 1.0
    taken, said_at, reachable = 0, math.nan, math.nan
    while taken < n and (plan := engine.ask()) is not None:
        values = series[taken : taken + plan.readings]
        taken += values.size
        elapsed_ns = round(values.size * reading_s * 1e9)
        engine.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"reading": values}))
        progress = engine.progress
        if progress and progress.decision is None and progress.reachable and math.isnan(said_at):
            said_at, reachable = progress.elapsed_s, progress.reachable
    known, decision = engine.result().estimate(), engine.decision
    return Ended(
        taken,
        decision is not None and decision.satisfied,
        math.inf if known is None else abs(known.value - 1.0),
        math.nan if known is None else known.half_width,
        said_at,
        reachable,
    )


def truth(setting: Setting) -> None:
    """Print how often sessions hold the mean of their process when nothing hurries them."""
    runs = setting.runs(200, 20)
    print(f"{runs} sessions a row, target 5 %. Early: over before 750 readings.\n")
    heading(["process", "cv", "early", "median n", "held", "bar"])
    for index, (name, cv) in enumerate(TRUTHS):
        run = partial(session, setting.seed, 200 + index, (name, cv, 1.0), options=UNLIMITED)
        ended = setting.repeated(run, runs)
        held = tally(
            Interval(each.error <= each.half_width, each.half_width) if each.satisfied else None
            for each in ended
        )
        row(
            name,
            cv,
            f"{np.mean([each.n < 750 for each in ended]):.2f}",
            f"{np.median([each.n for each in ended]):.0f}",
            held.cell(wilson_too=True),
            setting.judged(name, BAR, held),
        )


def defaults(setting: Setting) -> None:
    """Print how long default runs of functions of 5 to 300 ms take."""
    runs = setting.runs(40, 5)
    print(f"Medians of {runs} sessions.\n")
    heading(["process", "cv", *(f"{each} ms" for each in READINGS_MS)])
    for index, (name, cv) in enumerate(DEFAULTS):
        medians = []
        for reading_s in (each / 1e3 for each in READINGS_MS):
            run = partial(session, setting.seed, 300 + index, (name, cv, reading_s))
            ended = setting.repeated(run, runs)
            medians.append(f"{np.median([each.n for each in ended]) * reading_s:.1f}")
        row(name, cv, *medians)


def stops(setting: Setting) -> None:
    """Print where sessions stop, and how many of those that stop early hold the level."""
    runs = setting.runs(400, 40)
    print(f"{runs} sessions a row. Early: satisfied before 500 readings.\n")
    heading(["process", "cv", "early", "median n", "coverage", "off by more than 2 %"])
    for index, (name, cv) in enumerate(STOPS):
        run = partial(session, setting.seed, index, (name, cv, 0.02))
        early = [each for each in setting.repeated(run, runs) if each.satisfied and each.n < 500]
        cells = ["-"] * 3
        if early:
            held = np.mean([each.error <= each.half_width for each in early])
            off = np.mean([each.error > TARGET for each in early])
            cells = [f"{np.median([each.n for each in early]):.0f}", f"{held:.3f}", f"{off:.3f}"]
        row(name, cv, f"{len(early) / runs:.2f}", *cells)


def reach(setting: Setting) -> None:
    """Print how often sessions call the target out of reach, and how often wrongly."""
    runs = setting.runs(200, 20)
    print(f"{runs} sessions a row. Bar: wrong in at most 5 %.\n")
    columns = ["process", "cv", "reading", "satisfied", "said", "by 3 s", "wrongly", "predicted"]
    heading([*columns, "bar"])
    for index, case in enumerate(REACH):
        run = partial(session, setting.seed, 100 + index, case)
        ended = setting.repeated(run, runs)
        said = [each for each in ended if not math.isnan(each.said_at)]
        wrongly = sum(each.satisfied for each in said) / runs
        ratios = [each.reachable / each.half_width for each in said if each.reachable < math.inf]
        row(
            case[0],
            case[1],
            f"{1e3 * case[2]:g} ms",
            f"{np.mean([each.satisfied for each in ended]):.2f}",
            f"{len(said) / runs:.2f}",
            f"{np.mean([each.said_at <= 3.0 for each in ended]):.2f}",
            f"{wrongly:.3f}",
            f"{np.median(ratios):.2f}" if ratios else "-",
            setting.verdict(f"{case}", wrongly <= 0.05),
        )


if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20261128))
