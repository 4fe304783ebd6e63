"""Rates: the mean over work and over time, and which way is better by the unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally

import benchrigor as br
from benchrigor.report import render

__all__ = ["rates"]

RATES = 63
SPREAD, READINGS = 0.3, 600
METRIC = br.Metric(name="r", unit="op/s")
UNITS: Mapping[str | None, tuple[str, ...]] = {
    "higher": (
        *("req/s", "B/s", "MB/s", "MiB/s", "Gbit/s", "op/s", "/s", "1/s", "Hz", "MHz", "rps"),
        *("items/sec", "tx/second", "pages/min"),
    ),
    "lower": ("s", "ms", "us", "µs", "ns", "min", "B", "kB", "MiB", "ns/op", "s/req"),
    None: ("", "%", "points", "score", "J"),
}


def units(seed: int, repetition: int) -> Interval | None:
    """Measure the rates of units of equal work; the truth is total work over total time."""
    rng = np.random.default_rng([seed, RATES, 0, repetition])
    session = br.Session(
        br.Options(target=1e-9, budget_readings=READINGS, budget_s=math.inf),
        (br.Metric(name="r", unit="op/s"),),
        seed=1,
    )
    while (plan := session.ask()) is not None:
        times = rng.lognormal(0.0, SPREAD, plan.readings)
        session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"r": 1.0 / times}))
    estimate = session.result().estimate()
    return None if estimate is None else of(estimate, float(np.exp(-(SPREAD**2) / 2.0)))


def rounds(seed: int, repetition: int) -> Interval | None:
    """Measure one rate a round of equal work; its time is known."""
    rng = np.random.default_rng([seed, RATES, 1, repetition])
    session = br.Session(
        br.Options(target=1e-9, max_rounds=40, budget_s=math.inf), (METRIC,), seed=1
    )
    while (plan := session.ask()) is not None:
        time_s = rng.lognormal(0.0, SPREAD)
        elapsed_ns = round(1e9 * time_s)
        session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, readings={"r": 1.0 / time_s}))
    estimate = session.result().estimate()
    return None if estimate is None else of(estimate, float(np.exp(-(SPREAD**2) / 2.0)))


def rates(setting: Setting) -> None:
    """Print the coverage of rates, and the direction that reports name by the unit."""
    runs = setting.runs(600, 100)
    print(f"{runs} sessions a row with default averaging; lognormal times, {SPREAD:g}.\n")
    heading(["readings", "coverage", "bar"])
    for name, run in {
        "of units of equal work": units,
        "one a round, with its time": rounds,
    }.items():
        found = tally(setting.repeated(partial(run, setting.seed), runs))
        row(name, found.cell(wilson_too=True), setting.judged(name, Bar(0.92), found))
    wrong = [unit for way, named in UNITS.items() for unit in named if not _is_right(unit, way)]
    number = sum(map(len, UNITS.values()))
    verdict = setting.verdict("direction by unit", not wrong)
    print(
        f"\n{number} units in reports and verdicts; wrong direction: {wrong or 'none'}: {verdict}"
    )


def _is_right(unit: str, way: str | None) -> bool:
    """Whether report and verdict of a metric in this unit know the way."""
    slow, fast = (_run(unit, level) for level in (1.0, 1.2))
    comparison = br.compare_runs(slow, fast)
    verdict = {"higher": "better", "lower": "worse", None: "different"}[way]
    report = render(slow)
    names_higher = "higher is better" in report
    return str(comparison.verdict) == verdict and names_higher is (way == "higher")


def _run(unit: str, level: float) -> br.RunRecord:
    rng = np.random.default_rng(RATES)
    session = br.Session(
        br.Options(target=1e-9, max_rounds=3), (br.Metric(name="x", unit=unit),), seed=1
    )
    while (plan := session.ask()) is not None:
        values = level * rng.normal(1.0, 0.01, 500)
        session.tell(br.Round(plan=plan, elapsed_ns=10**9, unit_readings={"x": values}))
    return session.result()
