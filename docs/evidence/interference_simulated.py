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

from benchrigor.model import Code, Interference, Severity
from benchrigor.stats import estimate_interference, profile_interference, quantise

__all__ = ["continuous", "high_rate", "inside", "outside"]

INSIDE_RUNS, HIGH_RATE_RUNS, OUTSIDE_RUNS, CONTINUOUS_RUNS = 81, 82, 83, 84
RUNS = 200
HIGHEST = 0.6
MOST_HIT = 0.2
MEDIAN, P5, P5_HIGH_RATE = 0.99, 0.97, 0.93
MOST_CONTINUOUS, SLOWER = 1.0, 1.1
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
HITS = {"30 % hit": 0.3, "45 % hit": 0.45, "60 % hit": 0.6}


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
        warned=tuple(each.code for each in found.notices if each.severity is not Severity.NOTE),
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


def p5(accuracies: npt.ArrayLike) -> float:
    """Return the 5th percentile."""
    return float(np.quantile(np.asarray(accuracies, dtype=np.float64), 0.05))


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


def pooled_and_by_row(setting: Setting, section: int, rows: Sequence[Row]) -> list[Outcome]:
    """Print, and return, runs in which everything varies; then, to look at, each row by itself."""
    runs = setting.runs(RUNS, RUNS)
    print(f"{runs} runs a row, 0 to 60 % interference, up to 20 % of the segments hit, classes at")
    print("least 17 % apart. The bars stand on the first row, in which everything varies; the")
    print("others tell where the weak corners are. Accuracy: median / 5th percentile / least.")
    print("Over median: the same segments' excess over the median instead of the threshold.\n")
    what = ["program", "feature noise", "segments", "a second"]
    heading([*what, "accuracy", "points off", f"{BINS} bins", "over median", "Notices"])
    kinds = [rows, *([each] for each in (() if setting.quick else rows))]
    first: list[Outcome] = []
    for number, kind in enumerate(kinds):
        key = (setting.seed, section, number)
        drawn = mixed(key, kind, runs)
        found = setting.repeated(partial(run_inside, key, drawn), runs)
        first = first or found
        each = kind[0]
        names = (each.program, f"{each.feature_noise:.1%}", f"{each.n:,}", each.rate or "")
        show(names if number else ("all", "", "", ""), found)
    print()
    return first


def judge(setting: Setting, what: str, value: float, *, met: bool, bar: str) -> None:
    """Print a figure, its bar, and whether it is met."""
    print(f"* {what}: {value:.3f}, {bar}: {setting.verdict(what, met)}")


def judge_accuracy(setting: Setting, what: str, accuracies: Sequence[float], least: float) -> None:
    """Judge median and 5th percentile, plainly."""
    median, low = float(np.median(accuracies)), p5(accuracies)
    judge(setting, f"{what}, median", median, met=median >= MEDIAN, bar=f"at least {MEDIAN}")
    judge(setting, f"{what}, 5th percentile", low, met=low >= least, bar=f"at least {least}")


def inside(setting: Setting) -> None:
    """Print accuracies where the conditions hold."""
    found = pooled_and_by_row(setting, INSIDE_RUNS, ROWS)
    judge_accuracy(setting, "accuracy", [each.accuracy for each in found], P5)
    judge_accuracy(setting, f"accuracy, {BINS} bins", [each.quantised for each in found], P5)
    false = noticed(found) / len(found)
    bar = f"at most {MOST_FALSE}"
    judge(setting, "runs with a Notice", false, met=false <= MOST_FALSE, bar=bar)


def high_rate(setting: Setting) -> None:
    """Print accuracies of short segments, times with heavy tails (2 % Student t, 2 degrees)."""
    found = pooled_and_by_row(setting, HIGH_RATE_RUNS, HIGH_RATES)
    low = p5([each.accuracy for each in found])
    bar = f"at least {P5_HIGH_RATE}"
    judge(setting, "high rate, 5th percentile", low, met=low >= P5_HIGH_RATE, bar=bar)


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
    heading([*columns, "accuracy with delays", "continuous, median and largest error"])
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
        )


def outside(setting: Setting) -> None:
    """Print how often a Notice stands beside an estimate that may be wrong."""
    runs = setting.runs(RUNS, RUNS // 4)
    print(f"{runs} runs a row, 5 to 60 % interference; 2,000 segments unless said, up to 20 % hit")
    print(f"unless said. Off: runs whose accuracy is below {BADLY_OFF}.\n")
    bar = f"with a Notice, at least {NOTICED}"
    heading(["program", "accuracy", "points off", "runs with a Notice", "off", bar, "codes"])
    for name in OUTSIDE:
        found = setting.repeated(partial(run_outside, setting.seed, name, runs), runs)
        off = [each for each in found if each.accuracy < BADLY_OFF]
        met = noticed(off) >= NOTICED * len(off)
        row(
            name,
            cell([each.accuracy for each in found]),
            f"{np.median([each.off for each in found]):+.1f}",
            f"{noticed(found) / len(found):.3f}",
            len(off),
            f"{noticed(off)}: {setting.verdict(f'{name}, Notices where off', met)}",
            codes(found),
        )
