"""What it costs not to know the overhead: against a fit that subtracts it and fits the speed alone.

The width of an interval falls with the root of time, so the ratio of the squares of two widths, on
the same rounds, is the ratio of the times that give the same width. With equal noise in all rounds
and amounts evenly spread from low to high it is 4 (1 + r + r^2) / (1 - r)^2, with r = low / high:
4 where they begin at 0, and more where they begin higher. The schedule begins at the work that
takes as long as the overhead, so that r follows from the share that the overhead has of a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, interval, row, tally
from wps_processes import (
    MEAN_S,
    NOISES,
    SPEED,
    Case,
    Floats,
    bisecting,
    estimate_of,
    noisy,
    session,
    student,
)

import benchrigor as br
from benchrigor.stats import fit_wps
from benchrigor.stats.wps.hc3 import coefficient_errors, regress

__all__ = ["cost"]

COST = 74
MOST, BAR = 5.0, Bar(0.92)
ROUNDS = 40
SHOWN = ("additive", "multiplicative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How amounts are chosen.

    Parameters
    ----------
    case
        Overhead, and range of work.
    uniform
        Largest amount of work, evenly spread from 0, none left out; None for the schedule.
    """

    case: Case
    uniform: float | None = None


def uniform(share: float) -> Design:
    """Return amounts from 0 on, in rounds of 1.2 s in the mean."""
    return Design(case=Case(share=share), uniform=2.0 * (1.0 - share) * MEAN_S * SPEED)


def ended(share: float) -> Design:
    """Return what the schedule does with a range that ends where the mean round is one of 1.2 s."""
    high = int((2.0 * (1.0 - share) - share) * MEAN_S * SPEED)
    return Design(case=Case(share=share, work=(0, high)))


def beyond(share: float, low_s: float) -> Design:
    """Return what the schedule does beyond a warm-up that is faster than the stable phase."""
    high_s = 2.0 * (1.0 - share) * MEAN_S - low_s
    return Design(case=Case(share=share, work=(int(low_s * SPEED), int(high_s * SPEED))))


DESIGNS = {
    "from 0, overhead 20 %": uniform(0.2),
    "from 0, overhead 30 %": uniform(0.3),
    "schedule, overhead -20 %": beyond(-0.2, 0.4),
    "schedule, overhead -30 %": beyond(-0.3, 0.5),
    "schedule, overhead 20 %": Design(case=Case(share=0.3)),
    "schedule, overhead 25 %, range ends": ended(0.25),
    "schedule, overhead 30 %, range ends": ended(0.3),
}
QUICK = ("from 0, overhead 20 %", "from 0, overhead 30 %")
ROWS = [(design, noise) for design in DESIGNS for noise in SHOWN]


class Paid(NamedTuple):
    """Both intervals of one set of rounds, and what the rounds were."""

    unknown: Interval | None
    known: Interval | None
    naive: float
    ratio: float
    """Smallest over largest amount."""
    left_out: float
    """Share of the time, in rounds that do not count."""


def known(work: Floats, duration_s: Floats, overhead_s: float) -> Interval | None:
    """Fit the speed alone, with the same standard errors."""
    unit = work.max()
    fit = regress((work / unit)[:, None], duration_s - overhead_s)
    error = coefficient_errors(fit, [[1.0]])[0]
    reach = student(error.degrees_of_freedom) * error.standard_error
    if error.value <= reach:
        return None
    return interval(unit / (error.value + reach), unit / (error.value - reach), SPEED)


def paid(seed: int, name: str, noise: str, repetition: int) -> Paid:
    """Run rounds, and fit them in both ways."""
    design = DESIGNS[name]
    rng = np.random.default_rng([seed, COST, ROWS.index((name, noise)), repetition])
    if design.uniform is None:
        ran = session(design.case, noise, rng, looks=(ROUNDS,))
        work, duration_s, seconds = ran.work, ran.duration_s, ran.seconds
        found = ran.analysis.estimate
    else:
        work = design.uniform * bisecting(ROUNDS)
        duration_s = noisy(design.case, noise, rng, work)
        seconds = float(duration_s.sum())
        try:
            found = fit_wps(work, duration_s).speed
        except br.NotEstimable:
            found = None
    return Paid(
        unknown=estimate_of(found),
        known=known(work, duration_s, design.case.overhead_s),
        naive=float(work.sum() / duration_s.sum()) / SPEED - 1.0,
        ratio=float(work.min() / work.max()),
        left_out=max(0.0, 1.0 - float(duration_s.sum()) / seconds),
    )


def cost(setting: Setting) -> None:
    """Print the ratios, and what theory makes of the amounts."""
    assert set(SHOWN) <= set(NOISES)
    runs = setting.runs(300, 60)
    print(f"{runs} repetitions of {ROUNDS} rounds a row. Time: square of the ratio of the mean")
    print("half-widths. Bar: 5 at most, at a coverage of 0.92.\n")
    columns = ["amounts", "noise", "naive is off by", "unknown", "known", "time", "bar"]
    heading([*columns, "theory", "low / high", "time in rounds left out"])
    for name, noise in ROWS:
        if setting.quick and name not in QUICK:
            continue
        found = setting.repeated(partial(paid, setting.seed, name, noise), runs)
        unknown, best = tally(each.unknown for each in found), tally(each.known for each in found)
        times = (unknown.half_width / best.half_width) ** 2
        met = times <= MOST and setting.reaches(BAR, unknown)
        low = 0.0 if DESIGNS[name].uniform else float(np.median([each.ratio for each in found]))
        row(
            name,
            noise,
            f"{np.mean([each.naive for each in found]):+.1%}",
            unknown.cell(wilson_too=True),
            best.cell(),
            f"{times:.1f} x",
            f"<= {MOST:.0f}: {setting.verdict(f'{name}, {noise}', met)}",
            f"{4.0 * (1.0 + low + low * low) / (1.0 - low) ** 2:.1f} x",
            f"{low:.2f}",
            f"{np.mean([each.left_out for each in found]):.0%}",
        )
    print("\nAt equal time, leaving out the work that takes less than the overhead costs, beside")
    print("amounts from 0 in rounds as long in the mean, with equal noise in all rounds:", end=" ")
    print(
        ", ".join(f"{cut_costs(share):.1f} x at an overhead of {share:.0%}" for share in (0.2, 0.3))
    )


def cut_costs(share: float) -> float:
    """Return the ratio of the variances: the squares of the spans that the amounts have."""
    return ((2.0 * (1.0 - share)) / (2.0 * (1.0 - share) - 2.0 * share)) ** 2
