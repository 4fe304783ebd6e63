"""How often sessions hold a share of outcomes, and a share of counts."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally

import benchrigor as br
from benchrigor.units import Quantity

__all__ = ["shares"]

OUTCOMES, COUNTS = 61, 62
TRUTHS, CORRELATIONS, BUDGETS = (0.5, 0.9, 0.99, 0.999), (0.0, 0.5), (500, 20_000, 400_000)
TRIALS, ROUNDS = 1_000, (5, 20)


def outcomes(
    rng: np.random.Generator, n: int, share: float, correlation: float, state: bool
) -> npt.NDArray[np.bool_]:
    """Return a Markov chain of outcomes: each repeats the last one, or is drawn anew."""
    anew = rng.random(n) >= correlation
    drawn = np.append(state, rng.random(n) < share)
    last = np.maximum.accumulate(np.where(anew, np.arange(1, n + 1), 0))
    return drawn[last]


def session(
    seed: int, number: int, case: tuple[float, float, int], repetition: int
) -> tuple[Interval | None, int]:
    """Run a session until its half-width is a tenth of the rarer share, or the budget is spent."""
    share, correlation, budget = case
    rng = np.random.default_rng([seed, OUTCOMES, number, repetition])
    state = bool(rng.random() < share)
    options = br.Options(target=0.1, budget_readings=budget, budget_s=math.inf)
    measured = br.Session(options, (br.Metric(name="ok"),), seed=1)
    while (plan := measured.ask()) is not None:
        values = outcomes(rng, plan.readings, share, correlation, state)
        state = bool(values[-1])
        elapsed_ns = 1_000 * plan.readings
        measured.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"ok": values}))
    estimate = measured.result().estimate()
    if estimate is None:
        return None, 0
    return of(estimate, share), estimate.n if estimate.high > estimate.low else -1


def counts(
    seed: int, number: int, case: tuple[float, float, int], repetition: int
) -> tuple[Interval | None, int]:
    """Run a session whose rounds count successes of trials; shares of rounds may differ."""
    share, spread, rounds = case
    rng = np.random.default_rng([seed, COUNTS, number, repetition])
    options = br.Options(target=1e-9, max_rounds=rounds, budget_s=math.inf)
    metric = br.Metric(name="ok", kind=Quantity.SHARE)
    measured = br.Session(options, (metric,), seed=1)
    while (plan := measured.ask()) is not None:
        p = share
        if spread > 0.0:  # a beta distribution whose trials correlate by ``spread``
            size = 1.0 / spread - 1.0
            p = rng.beta(share * size, (1.0 - share) * size)
        trials = int(rng.integers(TRIALS // 2, 2 * TRIALS))
        ok = rng.binomial(trials, p) / trials
        weights = {"ok": float(trials)}
        finished = br.Round(plan=plan, elapsed_ns=1_000, readings={"ok": ok}, weights=weights)
        measured.tell(finished)
    estimate = measured.result().estimate()
    if estimate is None:
        return None, 0
    return of(estimate, share), estimate.n if estimate.high > estimate.low else -1


def shares(setting: Setting) -> None:
    """Print the coverage of shares."""
    runs = setting.runs(200, 40)
    print(
        f"{runs} sessions a row that stop at a half-width of a tenth of min(p, 1 - p), or at "
        "their budget of readings.\n"
    )
    heading(["share", "autocorrelation", "budget", "coverage", "bar", "mean n", "zero width"])
    for number, case in enumerate(product(TRUTHS, CORRELATIONS, BUDGETS)):
        if setting.quick and case[2] > BUDGETS[1]:
            continue
        found = setting.repeated(partial(session, setting.seed, number, case), runs)
        _print(setting, (f"{case[0]:g}", f"{case[1]:g}", f"{case[2]:,}"), found)
    print(f"\nRounds of {TRIALS // 2} to {2 * TRIALS} trials each, counted as successes/trials.\n")
    heading(
        ["share", "correlation in a round", "rounds", "coverage", "bar", "rounds", "zero width"]
    )
    for number, case in enumerate(product(TRUTHS, (0.0, 0.002), ROUNDS)):
        found = setting.repeated(partial(counts, setting.seed, number, case), runs)
        _print(setting, (f"{case[0]:g}", f"{case[1]:g}", str(case[2])), found)


def _print(
    setting: Setting, cells: tuple[str, str, str], found: list[tuple[Interval | None, int]]
) -> None:
    ours, name = tally(each for each, _ in found), f"share {', '.join(cells)}"
    sizes = [n for _, n in found if n > 0]
    zero = sum(n < 0 for _, n in found)
    judged = setting.judged(name, Bar(0.92), ours)
    never = setting.verdict(f"{name}: width", zero == 0)
    row(*cells, ours.cell(), judged, f"{np.mean(sizes or [0]):,.0f}", f"{zero}: {never}")
