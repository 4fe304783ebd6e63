"""Simulated runs: accuracy inside the conditions, and whether a Notice stands outside of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from coverage_tables import Setting, heading, row
from interference_programs import INSIDE, OUTSIDE, Program, Ran, accuracy, at_high_rate
from machine import wilson

from benchrigor.interference import quantise
from benchrigor.model import Code, Interference, Severity
from benchrigor.stats import estimate_interference, profile_interference

__all__ = ["continuous", "high_rate", "inside", "outside"]

INSIDE_RUNS, HIGH_RATE_RUNS, OUTSIDE_RUNS, CONTINUOUS_RUNS = 81, 82, 83, 84
RUNS, MANY_RUNS, QUICK_MANY = 200, 5000, 400
HIGHEST = 0.6
MOST_HIT = 0.2
MEDIAN, P5, P5_HIGH_RATE = 0.99, 0.97, 0.93
MOST_CONTINUOUS, MOST_OFF, SLOWER = 1.0, 1.0, 1.1
BADLY_OFF = 0.9
NOTICED, MOST_FALSE = 0.95, 0.05
BINS = 256
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class Row(NamedTuple):
    """How a program is run."""

    program: str
    feature_noise: float
    n: int
    rate: int | None = None
    """Segments a second, with heavy-tailed times; None: as the program has them, with 1 % noise."""


class Run(NamedTuple):
    """One run of a row."""

    row: Row
    level: float
    hit: float


class Outcome(NamedTuple):
    """What is kept of one run."""

    accuracy: float
    off: float
    """Percentage points too many."""
    above_median: float
    """Accuracy of the excess over the median."""
    quantised: float
    """Accuracy with features in 256 bins."""
    warned: tuple[Code, ...]


NOISES, SIZES, RATES = (0.003, 0.01), (500, 2000, 10_000), (300, 700)
ROWS = [Row(name, noise, n) for name in INSIDE for noise in NOISES for n in SIZES]
HIGH_RATES = [Row(name, 0.003, 2000, rate) for name in INSIDE for rate in RATES]
QUICK_PROGRAMS = ("one feature", "nominal splits")
HITS = {"30 % hit": 0.3, "45 % hit": 0.45, "60 % hit": 0.6, "80 % hit": 0.8}


def estimate(ran: Ran, bins: int | None = None) -> Interference:
    """Estimate a run's interference, perhaps from features in bins."""
    features = ran.profile.computation
    if bins is not None:
        features = {name: quantise(values, bins) for name, values in features.items()}
    return estimate_interference(ran.profile.duration_s, features, nominal=ran.profile.nominal)


def outcome(ran: Ran) -> Outcome:
    """Compare what is estimated with the truth."""
    found, truth = estimate(ran), ran.percent
    return Outcome(
        accuracy=accuracy(truth, found.percent),
        off=found.percent - truth,
        above_median=accuracy(truth, found.above_median_percent),
        quantised=accuracy(truth, estimate(ran, BINS).percent),
        warned=tuple(
            each.code
            for each in found.notices
            if each.severity is not Severity.NOTE or each.code is Code.PROCESSOR_TIME
        ),
    )


def mixed(key: Sequence[int], rows: Sequence[Row], runs: int) -> list[Run]:
    """Return runs, of all rows as often, that cover the plane of levels and hit shares evenly."""
    rng = np.random.default_rng(key)
    levels = HIGHEST * np.arange(runs) / max(1, runs - 1)
    hits = MOST_HIT * ((rng.random() + GOLDEN * np.arange(runs)) % 1.0)
    turns = rng.permutation(np.arange(runs) % len(rows))
    return [
        Run(rows[turn], level, hit)
        for turn, level, hit in zip(turns.tolist(), levels.tolist(), hits.tolist(), strict=True)
    ]


def run_inside(key: Sequence[int], runs: Sequence[Run], run: int) -> Outcome:
    """Do one of the runs."""
    rng = np.random.default_rng([*key, run])
    each, level, hit = runs[run]
    program: Program = replace(INSIDE[each.program], feature_noise=each.feature_noise)
    if each.rate is not None:
        program = at_high_rate(program, each.rate)
    return outcome(program.run(rng, program.classes(rng, each.n), level=level, hit=hit))


def run_outside(seed: int, name: str, runs: int, run: int) -> Outcome:
    """Do one run outside the conditions: the levels rise from 5 to 60 %."""
    rng = np.random.default_rng([seed, OUTSIDE_RUNS, list(OUTSIDE).index(name), run])
    program, n = OUTSIDE[name], 40 if name == "40 segments" else 2000
    level = 0.05 + (HIGHEST - 0.05) * run / max(1, runs - 1)
    hit = HITS.get(name) or rng.uniform(0.0, MOST_HIT)
    return outcome(program.run(rng, program.classes(rng, n), level=level, hit=hit))


def cell(accuracies: npt.ArrayLike) -> str:
    """Format median, 5th percentile and least."""
    values = np.asarray(accuracies, dtype=np.float64)
    return " / ".join(f"{each:.3f}" for each in np.quantile(values, [0.5, 0.05, 0.0]))


def noticed(found: Sequence[Outcome]) -> int:
    """Return how many runs carry a warning."""
    return sum(bool(each.warned) for each in found)


def codes(found: Sequence[Outcome]) -> str:
    """Return which warnings there were, the most frequent first."""
    counts = Counter(code for each in found for code in each.warned)
    return ", ".join(f"{code} {count}" for code, count in counts.most_common())


def show(names: Sequence[object], found: Sequence[Outcome]) -> None:
    """Print a row."""
    off = [each.off for each in found]
    row(
        *names,
        cell([each.accuracy for each in found]),
        f"{np.median(off):+.2f} ({np.min(off):+.2f} to {np.max(off):+.2f})",
        cell([each.quantised for each in found]),
        cell([each.above_median for each in found]),
        f"{noticed(found)} {codes(found)}",
    )


class Pooled(NamedTuple):
    """Runs in which everything varies: as few as the bars speak of, and enough to judge."""

    few: list[Outcome]
    many: list[Outcome]


def pooled_and_by_row(setting: Setting, section: int, rows: Sequence[Row]) -> Pooled:
    """Print, and return, runs in which everything varies; then, to look at, each row by itself."""
    runs = setting.runs(RUNS, RUNS)
    print(f"{runs} runs a row, 0 to 60 % interference, up to 20 % of the segments hit, classes at")
    print("least 17 % apart. In the first row everything varies; the others tell where the weak")
    print("corners are. Accuracy: median / 5th percentile / least.")
    print("Over median: the same segments' excess over the median instead of the threshold.\n")
    what = ["program", "feature noise", "segments", "a second"]
    heading([*what, "accuracy", "points off", f"{BINS} bins", "over median", "Notices"])
    kinds = [rows, *([each] for each in (() if setting.quick else rows))]
    few: list[Outcome] = []
    for number, kind in enumerate(kinds):
        key = (setting.seed, section, number)
        found = drawn_and_run(setting, key, kind, runs)
        few = few or found
        each = kind[0]
        names = (each.program, f"{each.feature_noise:.1%}", f"{each.n:,}", each.rate or "")
        show(names if number else ("all", "", "", ""), found)
    key = (setting.seed, section, 1 + len(rows))
    many = drawn_and_run(setting, key, rows, setting.runs(MANY_RUNS, QUICK_MANY))
    print(f"\nThe bars are stated for {runs} runs. Where the true percentile is about the bar, as")
    print("it is here, so few reach it or not by chance of the seed. So the verdicts stand on")
    print(f"{len(many):,} other runs of the same kind: met where the figure is at most")
    print(f"{setting.z:.2f} standard errors below its bar.\n")
    return Pooled(few, many)


def drawn_and_run(
    setting: Setting, key: Sequence[int], rows: Sequence[Row], runs: int
) -> list[Outcome]:
    """Do runs of some rows."""
    return setting.repeated(partial(run_inside, key, mixed(key, rows, runs)), runs)


def standard_error(accuracies: npt.ArrayLike, share: float) -> float:
    """Return that of a quantile, from the order statistics one binomial deviation off."""
    values = np.asarray(accuracies, dtype=np.float64)
    one = math.sqrt(share * (1.0 - share) / values.size)
    low, high = np.quantile(values, [max(share - one, 0.0), min(share + one, 1.0)])
    return float(high - low) / 2.0


def judge_quantile(
    setting: Setting, what: str, share: float, least: float, samples: Sequence[Sequence[float]]
) -> None:
    """Print a quantile of few accuracies, and judge that of many."""
    few, many = (float(np.quantile(each, share)) for each in samples)
    error = standard_error(samples[1], share)
    met = many + setting.z * error >= least
    print(
        f"* {what}, at least {least}: {few:.4f} of {len(samples[0])} runs; {many:.4f} "
        f"(standard error {error:.4f}) of {len(samples[1]):,}: {setting.verdict(what, met)}"
    )


def inside(setting: Setting) -> None:
    """Print accuracies where the conditions hold."""
    pooled = pooled_and_by_row(setting, INSIDE_RUNS, ROWS)
    exact = [[each.accuracy for each in found] for found in pooled]
    binned = [[each.quantised for each in found] for found in pooled]
    for what, samples in (("accuracy", exact), (f"accuracy, {BINS} bins", binned)):
        judge_quantile(setting, f"{what}, median", 0.5, MEDIAN, samples)
        judge_quantile(setting, f"{what}, 5th percentile", 0.05, P5, samples)
    few, many = (noticed(found) / len(found) for found in pooled)
    print(
        f"* runs with a Notice, at most {MOST_FALSE}: {few:.3f}; {many:.3f} of "
        f"{len(pooled.many):,}: {setting.verdict('runs with a Notice', many <= MOST_FALSE)}"
    )


def high_rate(setting: Setting) -> None:
    """Print accuracies of short segments, times with heavy tails (2 % Student t, 2 degrees)."""
    pooled = pooled_and_by_row(setting, HIGH_RATE_RUNS, HIGH_RATES)
    samples = [[each.accuracy for each in found] for found in pooled]
    judge_quantile(setting, "high rate, 5th percentile", 0.05, P5_HIGH_RATE, samples)


def run_slower(seed: int, name: str, runs: int, run: int) -> tuple[float, float, float]:
    """Return estimates with nothing injected, continuous interference, and how far that is off."""
    rng = np.random.default_rng([seed, CONTINUOUS_RUNS, list(INSIDE).index(name), run])
    program = INSIDE[name]
    classes = program.classes(rng, 2000)
    fast = program.run(rng, classes, level=0.0, hit=0.0)
    slow = program.run(rng, classes, level=0.0, hit=0.0, slower=SLOWER)
    level = HIGHEST * run / max(1, runs - 1)
    struck = program.run(rng, classes, level=level, hit=rng.uniform(0.0, MOST_HIT), slower=SLOWER)
    found = profile_interference(struck.profile, reference=fast.profile)
    truth = 100.0 * (1.0 - 1.0 / SLOWER) * float(struck.clean_s.sum()) / struck.wall_s
    off = math.nan if found.continuous_percent is None else found.continuous_percent - truth
    return estimate(slow).percent, accuracy(struck.percent, found.percent), off


def continuous(setting: Setting) -> None:
    """Print what is made of all segments being 10 % slower."""
    runs = setting.runs(RUNS, RUNS // 4)
    print(
        f"{runs} runs a row, 2,000 segments, all 10 % slower; without delays, and with 0 to 60 %."
    )
    print("Continuous: per cent against an undisturbed run of the same program, minus the truth.\n")
    columns = ["program", "estimate without delays, most", f"below {MOST_CONTINUOUS:g} %"]
    columns += ["accuracy with delays", "continuous, median and largest error"]
    heading([*columns, f"at most {MOST_OFF:g} point"])
    for name in QUICK_PROGRAMS if setting.quick else INSIDE:
        found = setting.repeated(partial(run_slower, setting.seed, name, runs), runs)
        percents, close, offs = (np.array(each) for each in zip(*found, strict=True))
        verdict = setting.verdict(f"{name}, continuous", bool(percents.max() < MOST_CONTINUOUS))
        largest = offs[np.argmax(np.abs(offs))]
        row(
            name,
            f"{percents.max():.3f}",
            verdict,
            cell(close),
            f"{np.median(offs):+.2f}, {largest:+.2f}",
            setting.verdict(f"{name}, continuous error", bool(abs(largest) <= MOST_OFF)),
        )


def outside(setting: Setting) -> None:
    """Print how often a Notice stands beside an estimate that may be wrong."""
    runs = setting.runs(RUNS, RUNS // 4)
    print(f"{runs} runs a row, 5 to 60 % interference; 2,000 segments unless said, up to 20 % hit")
    print(f"unless said. Off: runs whose accuracy is below {BADLY_OFF}. The note on processor time")
    print("counts as a Notice. The bar is met when the Wilson interval of the share reaches it.\n")
    bar = f"with a Notice, at least {NOTICED}"
    heading(["program", "accuracy", "points off", "runs with a Notice", "off", bar, "codes"])
    for name in OUTSIDE:
        found = setting.repeated(partial(run_outside, setting.seed, name, runs), runs)
        off = [each for each in found if each.accuracy < BADLY_OFF]
        told = "none off"
        if off:
            met = wilson(noticed(off), len(off), setting.z)[1] >= NOTICED
            told = f"{noticed(off)}: {setting.verdict(f'{name}, Notices where off', met)}"
        row(
            name,
            cell([each.accuracy for each in found]),
            f"{np.median([each.off for each in found]):+.1f}",
            f"{noticed(found) / len(found):.3f}",
            len(off),
            told,
            codes(found),
        )
