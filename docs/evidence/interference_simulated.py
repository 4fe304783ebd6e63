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
from coverage_tables import Bar, Setting, Tally, heading, row
from interference_programs import INSIDE, OUTSIDE, Program, Ran, accuracy, at_high_rate

from benchrigor.model import Code, Interference, Severity
from benchrigor.stats import estimate_interference, profile_interference, quantise

__all__ = ["continuous", "high_rate", "inside", "outside"]

INSIDE_RUNS, HIGH_RATE_RUNS, OUTSIDE_RUNS, CONTINUOUS_RUNS = 81, 82, 83, 84
RUNS = 200
HIGHEST = 0.6
MOST_HIT = 0.2
MEDIAN, P5, P5_HIGH_RATE = 0.99, 0.97, 0.93
MOST = Bar(0.95)
"""Share of runs that reach a 5th percentile."""
MOST_CONTINUOUS, SLOWER = 1.0, 1.1
BADLY_OFF = 0.97
NOTICED, MOST_FALSE = Bar(0.95), 0.05
BINS = 256


class Row(NamedTuple):
    """What is run 200 times."""

    program: str
    feature_noise: float
    n: int


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


ROWS = [Row(name, noise, 2000) for name in INSIDE for noise in (0.003, 0.01)]
ROWS += [Row("one feature", 0.003, n) for n in (500, 10_000)]
ROWS += [Row("nominal splits", 0.01, n) for n in (500, 10_000)]
RATES = (300, 700)
QUICK_PROGRAMS = ("one feature", "nominal splits")
QUICK = [
    Row("one feature", 0.003, 2000),
    Row("two features", 0.01, 2000),
    Row("nominal splits", 0.01, 500),
    Row("three decades", 0.003, 2000),
]
HIGH_RATES = [Row(name, 0.003, 2000) for name in ("one feature", "nominal splits")]
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


def run_inside(key: Sequence[int], program: Program, n: int, runs: int, run: int) -> Outcome:
    """Do one run of a row: the levels rise evenly from 0 to 60 %."""
    rng = np.random.default_rng([*key, run])
    level = HIGHEST * run / max(1, runs - 1)
    hit = rng.uniform(0.0, MOST_HIT)
    return outcome(program.run(rng, program.classes(rng, n), level=level, hit=hit))


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


COLUMNS = ["program", "feature noise", "segments", "accuracy", "points off", "over median"]


def described(each: Row, found: Sequence[Outcome]) -> list[str]:
    """Return the first cells of a row."""
    off = [outcome.off for outcome in found]
    return [
        each.program,
        f"{each.feature_noise:.1%}",
        f"{each.n:,}",
        cell([outcome.accuracy for outcome in found]),
        f"{np.median(off):+.2f} ({np.min(off):+.2f} to {np.max(off):+.2f})",
        cell([outcome.above_median for outcome in found]),
    ]


def inside(setting: Setting) -> None:
    """Print accuracies where the conditions hold."""
    runs = setting.runs(RUNS, RUNS)
    print(f"{runs} runs a row, 0 to 60 % interference, up to 20 % of the segments hit, classes at")
    print("least 17 % apart, times with 1 % noise. Accuracy: median / 5th percentile / least.")
    print("Over median: the same segments' excess over the median instead of the threshold.\n")
    bars = f"median {MEDIAN}, p5 {P5}"
    heading([*COLUMNS, bars, "256 bins", bars, "false Notices", f"at most {MOST_FALSE:.0%}"])
    everything: list[Outcome] = []
    for each in QUICK if setting.quick else ROWS:
        program = replace(INSIDE[each.program], feature_noise=each.feature_noise)
        key = (setting.seed, INSIDE_RUNS, ROWS.index(each))
        found = setting.repeated(partial(run_inside, key, program, each.n, runs), runs)
        everything += found
        _print_inside(setting, described(each, found), found)
    _print_inside(setting, ["all of them", "", "", *described(each, everything)[3:]], everything)


def _print_inside(setting: Setting, cells: Sequence[str], found: Sequence[Outcome]) -> None:
    name = ", ".join(filter(None, cells[:3]))
    exact, quantised = ([each.accuracy for each in found], [each.quantised for each in found])
    row(
        *cells,
        _judged(setting, name, exact),
        cell(quantised),
        _judged(setting, f"{name}, 256 bins", quantised),
        f"{noticed(found)} {codes(found)}",
        setting.at_most(f"{name}, false Notices", MOST_FALSE, noticed(found), len(found)),
    )


def _judged(setting: Setting, name: str, accuracies: Sequence[float]) -> str:
    """Judge median and 5th percentile."""
    met = float(np.median(accuracies)) >= MEDIAN and most_reach(setting, P5, accuracies)
    return setting.verdict(name, met)


def most_reach(setting: Setting, least: float, accuracies: Sequence[float]) -> bool:
    """Judge a 5th percentile: as the share of runs that reach it."""
    return setting.reaches(
        MOST, counted(sum(each >= least for each in accuracies), len(accuracies))
    )


def counted(hits: int, trials: int) -> Tally:
    """Return a share."""
    return Tally(hits=hits, refused=0, trials=trials, half_width=math.nan)


def high_rate(setting: Setting) -> None:
    """Print accuracies of short segments with heavy-tailed times."""
    runs = setting.runs(RUNS, RUNS)
    print(
        f"{runs} runs a row as above, times with heavy-tailed noise (2 % Student t, 2 degrees).\n"
    )
    heading(["a second", *COLUMNS, f"p5 {P5_HIGH_RATE}", "Notices"])
    rates = RATES[-1:] if setting.quick else RATES
    for number, each in enumerate(HIGH_RATES):
        for rate in rates:
            program = at_high_rate(INSIDE[each.program], rate)
            key = (setting.seed, HIGH_RATE_RUNS, number, rate)
            found = setting.repeated(partial(run_inside, key, program, each.n, runs), runs)
            name = f"{each.program}, {rate} a second"
            met = most_reach(setting, P5_HIGH_RATE, [each.accuracy for each in found])
            row(
                rate,
                *described(each, found),
                setting.verdict(name, met),
                f"{noticed(found)} {codes(found)}",
            )


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
    bars = [f"of all {NOTICED}", f"of those off {NOTICED}"]
    heading(
        ["program", "accuracy", "points off", "with a Notice", bars[0], "off", bars[1], "codes"]
    )
    for name in OUTSIDE:
        found = setting.repeated(partial(run_outside, setting.seed, name, runs), runs)
        off = [each for each in found if each.accuracy < BADLY_OFF]
        with_notice, off_with = (counted(noticed(each), len(each)) for each in (found, off))
        row(
            name,
            cell([each.accuracy for each in found]),
            f"{np.median([each.off for each in found]):+.1f}",
            f"{with_notice.share:.3f}",
            setting.judged(f"{name}, Notices", NOTICED, with_notice),
            f"{off_with.hits} of {len(off)}",
            setting.judged(f"{name}, Notices where off", NOTICED, off_with) if off else "none",
            codes(found),
        )
