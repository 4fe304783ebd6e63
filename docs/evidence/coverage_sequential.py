"""How often sessions that stop at 5 % hold the truth, and what they spend, beside others.

Each repetition draws the whole budget once; a session, and every rival, is given it from the
start. A cool-down does not exist here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import coverage_rivals as rivals
import numpy as np
from coverage_processes import ROWS, ZOO, Group, Process
from coverage_tables import Bar, Interval, Setting, Tally, heading, interval, of, row, tally
from machine import wilson

import benchrigor as br
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE

__all__ = ["sequential", "statistics"]

SEQUENTIAL, BY_QUANTILE = 21, 22
TARGET, BUDGET = 0.05, 40_000
QUICK = ("iid normal", "AR(1) 0.9", "lognormal 1", "iid, exp", "AR(1) 0.9, exp")
RIVALS = 200
"""Repetitions of the rivals at most."""

EVERY = Bar(0.92)
SPECIAL = {
    "M/M/1 at 0.8": Bar(0.85),
    "M/M/1 from empty": Bar(0.82),
    "thermal cycle": Bar(0.90, may_refuse=True),
}
FLAGGED = ("M/M/1 at 0.8", "M/M/1 from empty")
WARNED = 0.95
"""Rows whose results have to carry a warning, and what share of them."""
LISTED = (Group.STATIONARY, Group.WARM)
"""Groups on which sessions that merge are measured too."""
CHEAPER = "AR(1) 0.9"
"""The row that should take at most a quarter of what merging takes."""

STATISTICS = {"median": 0.5, "p10": 0.1}
BY_STATISTIC = ("iid normal", "AR(1) 0.9", "lognormal 1", "bimodal iid", "bimodal switching")


class Ended(NamedTuple):
    """How one session, or one rival, ended."""

    interval: Interval | None
    n: int
    converged: bool


def looks() -> list[int]:
    """Return the sample sizes at which sessions look, for rivals that look at growing sizes."""
    sizes = [500]
    while sizes[-1] < BUDGET:
        sizes.append(min(BUDGET, math.ceil(sizes[-1] * 1.5)))
    return sizes


def session(series: rivals.Floats, truth: float, seed: int, options: br.Options) -> Ended:
    """Drive a session through the readings it asks for."""
    running = br.Session(options, seed=seed)
    at = 0
    while (plan := running.ask()) is not None:
        values = series[at : at + plan.readings]
        at += values.size
        # Not "time": noise around a duration is negative once in a very long while.
        running.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"reading": values}))
    record = running.result()
    estimate, decision = record.estimate(), running.decision
    return Ended(
        None if estimate is None else of(estimate, truth),
        at,
        decision is not None and decision.reason == "satisfied",
    )


def options(**changes: str) -> br.Options:
    """Return the options of every session here."""
    return br.Options(
        target=TARGET,
        budget_readings=BUDGET,
        budget_s=math.inf,
        **changes,  # type: ignore[arg-type]
    )


def drawn(seed: int, section: int, name: str, repetition: int) -> tuple[Process, rivals.Floats]:
    """Return a process and the readings of one repetition."""
    rng = np.random.default_rng([seed, section, ROWS[name], repetition])
    return ZOO[name], ZOO[name].draw(rng, BUDGET, ends=False)


def by_session(seed: int, name: str, method: str, repetition: int) -> Ended:
    """Run one session on a mean."""
    process, series = drawn(seed, SEQUENTIAL, name, repetition)
    return session(series, process.mean, repetition, options(method=method))


def by_rivals(seed: int, name: str, repetition: int) -> tuple[Ended, Ended]:
    """Return how merging and the z rule end."""
    process, series = drawn(seed, SEQUENTIAL, name, repetition)
    ends, n, narrow = rivals.merging_stop(series, looks(), TARGET)
    merged = Ended(None if ends is None else interval(*ends, process.mean), n, narrow)
    z_ends, z_n = rivals.z_stop(series, TARGET)
    return merged, Ended(interval(*z_ends, process.mean), z_n, z_n < BUDGET)


class Standing(NamedTuple):
    """One row's sums."""

    counted: Tally
    unfinished: str
    mean_n: float

    @property
    def cells(self) -> tuple[str, str]:
        """Share not converged, and mean readings."""
        return self.unfinished, f"{self.mean_n:.0f}"


def standing(found: Sequence[Ended]) -> Standing:
    """Sum up how repetitions ended."""
    unfinished = sum(not each.converged for each in found)
    return Standing(
        tally(each.interval for each in found),
        f"{unfinished / len(found):.1%}" if unfinished else "-",
        sum(each.n for each in found) / len(found),
    )


def sequential(setting: Setting) -> None:
    """Print one table per group of processes, then the sessions that merge readings."""
    runs = setting.runs(600, 60)
    print(
        f"{runs} sessions a row, rivals {min(runs, RIVALS)}; target {TARGET:.0%}, budget {BUDGET:,}"
        " readings. Per method: coverage (half-width in % of the truth), sessions not converged, "
        "mean readings. Flagged: results with a warning."
    )
    for group in Group:
        names = [name for name in ZOO if ZOO[name].group is group]
        names = [name for name in names if not setting.quick or name in QUICK]
        if names:
            print(f"\n{group}:\n")
            _table(setting, names, runs)
    if not setting.quick:
        print('\nSessions with method="subsessions":\n')
        _subsessions(setting, min(runs, RIVALS))


def _table(setting: Setting, names: list[str], runs: int) -> None:
    columns = ["process", "coverage", "not converged", "readings", "flagged", "bar"]
    heading([*columns, "merging", "", "readings", "z rule", "", "readings"])
    for name in names:
        found = setting.repeated(partial(by_session, setting.seed, name, LONG_RUN_VARIANCE), runs)
        others = setting.repeated(partial(by_rivals, setting.seed, name), min(runs, RIVALS))
        ours, merged, z_rule = map(standing, (found, *zip(*others, strict=True)))
        row(
            name,
            ours.counted.cell(wilson_too=True),
            *ours.cells,
            flagged(ours.counted),
            _verdicts(setting, name, ours, merged),
            *(cell for each in (merged, z_rule) for cell in (each.counted.cell(), *each.cells)),
        )


def flagged(counted: Tally) -> str:
    """Return the share of results that carry a warning."""
    printed = counted.trials - counted.refused
    return f"{counted.warned / printed:.2f}" if printed else "-"


def _verdicts(setting: Setting, name: str, ours: Standing, merged: Standing) -> str:
    counted = ours.counted
    verdicts = setting.judged(f"{name}, sequential", SPECIAL.get(name, EVERY), counted)
    if name in FLAGGED:
        told = wilson(counted.warned, counted.trials - counted.refused, setting.z)[1] >= WARNED
        verdicts += f"; flagged >= {WARNED}: {setting.verdict(f'{name}, flagged', told)}"
    if name == CHEAPER:
        cheap = ours.mean_n <= merged.mean_n / 4.0
        verdicts += f"; 1/4 of merging: {setting.verdict(f'{name}, readings', cheap)}"
    return verdicts


def _subsessions(setting: Setting, runs: int) -> None:
    heading(["process", "coverage", "not converged", "readings"])
    for name in (name for name in ZOO if ZOO[name].group in LISTED):
        found = setting.repeated(partial(by_session, setting.seed, name, "subsessions"), runs)
        ended = standing(found)
        row(name, ended.counted.cell(wilson_too=True), *ended.cells)


def by_statistic(seed: int, name: str, statistic: str, repetition: int) -> Ended:
    """Run one session on a quantile."""
    process, series = drawn(seed, BY_QUANTILE, name, repetition)
    truth = _quantile(process)(STATISTICS[statistic])
    return session(series, truth, repetition, options(statistic=statistic))


def _quantile(process: Process) -> Callable[[float], float]:
    if process.quantile is None:
        raise LookupError("the quantiles of this process are not known")
    return process.quantile


def statistics(setting: Setting) -> None:
    """Print how sessions on a median and a p10 cover."""
    runs = setting.runs(600, 60)
    print(f"{runs} sessions a row; target {TARGET:.0%}, budget {BUDGET:,} readings.\n")
    heading(["process", "statistic", "coverage", "not converged", "readings", "flagged", "bar"])
    for name in BY_STATISTIC:
        for statistic in STATISTICS:
            if setting.quick and name not in ("iid normal", "AR(1) 0.9"):
                continue
            found = setting.repeated(partial(by_statistic, setting.seed, name, statistic), runs)
            ended = standing(found)
            row(
                name,
                statistic,
                ended.counted.cell(wilson_too=True),
                *ended.cells,
                flagged(ended.counted),
                setting.judged(f"{name}, sequential {statistic}", EVERY, ended.counted),
            )
