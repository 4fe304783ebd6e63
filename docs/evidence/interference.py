"""How far the interference estimated from a single run can be trusted, and what recording costs.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/interference.py [--quick] [--seed N] [--only a,b]

Every draw is default_rng([seed, section, row, run]). Accuracy is 1 - |difference of the logistic
probabilities of truth and estimate|. The real sections want a machine that does nothing else.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.interference import composite_profile, quantise, segments
from benchrigor.model import Code, SegmentProfile
from benchrigor.model.notice import Severity
from benchrigor.model.series import Floats
from benchrigor.stats import (
    estimate_interference,
    probability_high,
    profile_interference,
)
from shared.processes import ar1
from shared.running import Bar, Interval, Run, Script, by_turns, of, tally

script = Script(__doc__)
SEED = 20261206
INSIDE_RUNS, HIGH_RATE, OUTSIDE_RUNS, CONTINUOUS, COMPOSITE = 81, 82, 83, 84, 85
OVERHEAD, SPEED = 89, 90
Rng = np.random.Generator
Classes = npt.NDArray[np.intp]


class Ran(NamedTuple):
    """A recorded profile, and how long its segments would have lasted undisturbed."""

    profile: SegmentProfile
    clean_s: Floats

    @property
    def percent(self) -> float:
        """The truth: delays in per cent of the wall time."""
        return 100.0 * (1.0 - float(self.clean_s.sum() / self.profile.duration_s.sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Classes of segments.

    Parameters
    ----------
    duration_s
        Of a segment of each class, undisturbed.
    computation, nominal
        By feature, its value in each class.
    shares
        How often each class occurs; None: all as often.
    feature_noise
        Relative standard deviation of the computation features.
    time_noise
        Draws factors on durations.
    even
        Features spread evenly, in logarithms, from the first class to the last, and durations with
        them: there are no classes.
    contended
        Delays cost processor time, and the computation features are processor time.
    """

    duration_s: tuple[float, ...]
    computation: Mapping[str, tuple[float, ...]]
    nominal: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    shares: tuple[float, ...] | None = None
    feature_noise: float = 0.003
    time_noise: Callable[[Rng, int], Floats] = lambda rng, n: 1.0 + 0.01 * rng.standard_normal(n)
    even: bool = False
    contended: bool = False

    def classes(self, rng: Rng, n: int) -> Classes:
        """Return the class of each segment, which is the same in every run of a program."""
        return rng.choice(len(self.duration_s), n, p=self.shares)

    def run(
        self, rng: Rng, classes: Classes, *, level: float, hit: float, slower: float = 1.0
    ) -> Ran:
        """Run it; delays take a share ``level`` of the time, and strike ``hit`` of the segments.

        ``slower`` is a factor on all durations: continuous interference.
        """
        n = classes.size
        duration_s = np.take(self.duration_s, classes)
        features = {name: np.take(column, classes) for name, column in self.computation.items()}
        if self.even:
            factor = (self.duration_s[-1] / self.duration_s[0]) ** rng.random(n)
            duration_s = self.duration_s[0] * factor
            features = {name: column[0] * factor for name, column in self.computation.items()}
        clean_s = duration_s * self.time_noise(rng, n) * slower
        struck = rng.choice(n, max(1, round(hit * n)), replace=False)
        mean_s = level / (1.0 - level) * float(clean_s.sum()) / struck.size
        wall_s = clean_s.copy()
        wall_s[struck] += np.maximum(rng.normal(mean_s, 0.3 * mean_s, struck.size), 0.0)
        if self.contended:
            features = dict.fromkeys(features, wall_s)
        profile = SegmentProfile(
            duration_s=wall_s,
            computation={
                name: column * (1.0 + self.feature_noise * rng.standard_normal(n))
                for name, column in features.items()
            },
            nominal={name: np.take(column, classes) for name, column in self.nominal.items()},
        )
        return Ran(profile, clean_s)


def as_computed(*sizes: float, unit_s: float = 0.012, even: bool = False) -> Program:
    """Return classes that last as long as they compute."""
    return Program(
        duration_s=tuple(unit_s * size for size in sizes),
        computation={"instructions": tuple(1e6 * size for size in sizes)},
        even=even,
    )


def at_high_rate(program: Program, rate: float) -> Program:
    """Return the program with a number of segments a second, and heavy tails of their times."""
    scale = 1.0 / (rate * math.fsum(program.duration_s) / len(program.duration_s))
    duration_s = tuple(scale * duration_s for duration_s in program.duration_s)
    noise: Callable[[Rng, int], Floats] = lambda rng, n: np.maximum(  # noqa: E731
        1.0 + 0.02 * rng.standard_t(2.0, n), 0.5
    )
    return replace(program, duration_s=duration_s, time_noise=noise)


# Near ones are 17 % apart: with less the conditions would not hold, with much more all is easy.
ONE = as_computed(1.0, 1.17, 1.6, 2.6)
INSIDE = {
    "one feature": ONE,
    "two features": Program(
        duration_s=(0.010, 0.017, 0.012, 0.023),
        computation={"instructions": (1e6, 1e6, 1.2e6, 1.2e6), "flops": (2e5, 4e5, 2e5, 4e5)},
    ),
    "nominal splits": Program(
        duration_s=(0.010, 0.018, 0.040, 0.011),
        computation={"instructions": (1e6, 1e6, 1e6, 1e6)},
        nominal={"label": ("solve", "solve", "write", "exchange"), "bytes": (0, 4096, 65536, 0)},
    ),
    "three decades": as_computed(*np.geomspace(1.0, 1000.0, 8).tolist(), unit_s=0.0002),
    "unequal classes": replace(ONE, shares=(0.02, 0.9, 0.07, 0.01)),
}
"""Programs with an estimate that should be right."""
OUTSIDE = {
    "30 % hit": ONE,
    "45 % hit": ONE,
    "60 % hit": ONE,
    "5 % apart, times 43 %": Program(
        duration_s=(0.012, 0.01716, 0.024, 0.03432),
        computation={"instructions": (1e6, 1.05e6, 2e6, 2.1e6)},
    ),
    "40 segments": ONE,
    "evenly spread": as_computed(1.0, 20.0, unit_s=0.004, even=True),
    "3,000 a second": at_high_rate(ONE, 3000.0),
    "80 % hit": ONE,
    "5 % lognormal noise": replace(ONE, time_noise=lambda rng, n: rng.lognormal(0.0, 0.05, n)),
    "10 % gamma noise": replace(ONE, time_noise=lambda rng, n: rng.gamma(100.0, 0.01, n)),
    "contention that costs CPU time": replace(
        ONE,
        computation={"processor_s": ONE.duration_s},
        nominal={"label": ("solve", "write", "exchange", "read")},
        contended=True,
    ),
}
"""Programs, and runs of them, for which it may be wrong, and should say so."""


def accuracy(truth_percent: float, percent: float) -> float:
    """Return 1 - |difference of the probabilities that the run is highly interfered with|."""
    return 1.0 - abs(probability_high(truth_percent) - probability_high(percent))


class Outcome(NamedTuple):
    """Accuracy of one run, also with features in 256 bins, and whether a Notice stands beside."""

    accuracy: float
    in_bins: float
    is_noted: bool


def outcome(ran: Ran) -> Outcome:
    """Compare the estimate with the truth."""
    durations, features = ran.profile.duration_s, ran.profile.computation
    binned = {name: quantise(values, 256) for name, values in features.items()}
    found, other = (
        estimate_interference(durations, program, nominal=ran.profile.nominal)
        for program in (features, binned)
    )
    return Outcome(
        accuracy(ran.percent, found.percent),
        accuracy(ran.percent, other.percent),
        any(
            notice.severity is not Severity.NOTE or notice.code is Code.PROCESSOR_TIME
            for notice in found.notices
        ),
    )


def run_inside(key: Sequence[int], rates: Sequence[int | None], runs: int, number: int) -> Outcome:
    """Do one of the runs that cover the plane of levels and shares hit, all rows as often."""
    rng = np.random.default_rng(key)
    rows = [*product(INSIDE, (0.003,) if rates[0] else (0.003, 0.01), (500, 2000, 10_000), rates)]
    rows = [row for row in rows if row[2] == 2000] if rates[0] else rows
    hit = 0.2 * ((rng.random() + (math.sqrt(5.0) - 1.0) / 2.0 * number) % 1.0)
    name, noise, n, rate = rows[rng.permutation(np.arange(runs) % len(rows))[number]]
    rng = np.random.default_rng([*key, number])
    program = replace(INSIDE[name], feature_noise=noise)
    program = program if rate is None else at_high_rate(program, rate)
    level = 0.6 * number / max(1, runs - 1)
    return outcome(program.run(rng, program.classes(rng, n), level=level, hit=hit))


def quantile_bar(run: Run, name: str, share: float, least: float, values: Sequence[float]) -> str:
    """Judge a quantile; its standard error is from the order statistics one deviation off."""
    one = math.sqrt(share * (1.0 - share) / len(values))
    low, found, high = np.quantile(values, [max(share - one, 0.0), share, min(share + one, 1.0)])
    figure = float(found + run.z * (high - low) / 2.0)
    verdict = run.bar(f"{name}, {share:.0%} of runs", figure, ">=", least)
    return f"* {name}, {share:.0%} of runs below {found:.4f}; with its error {verdict}"


@script.section("Simulated runs inside the conditions", seed=SEED)
def inside(run: Run) -> None:
    """Print accuracies of 0 to 60 % interference, up to 20 % of the segments hit."""
    runs = run.runs(5_000, 400)
    key = (run.seed, INSIDE_RUNS, 31)
    found = run.repeated(partial(run_inside, key, (None,), runs), runs)
    for name, values in (
        ("accuracy", [case.accuracy for case in found]),
        ("accuracy, 256 bins", [case.in_bins for case in found]),
    ):
        run.say(quantile_bar(run, name, 0.5, 0.99, values))
        run.say(quantile_bar(run, name, 0.05, 0.97, values))
    run.share("with a Notice", Bar(0.0, 0.05), [case.is_noted for case in found])
    key = (run.seed, HIGH_RATE, 11)
    found = run.repeated(partial(run_inside, key, (300, 700), runs), runs)
    values = [case.accuracy for case in found]
    run.say(quantile_bar(run, "short segments, heavy tails", 0.05, 0.93, values))


def run_slower(seed: int, name: str, runs: int, number: int) -> tuple[float, float]:
    """Return the estimate with nothing injected, and how far the continuous part is off."""
    rng = np.random.default_rng([seed, CONTINUOUS, list(INSIDE).index(name), number])
    program, level = INSIDE[name], 0.6 * number / max(1, runs - 1)
    classes = program.classes(rng, 2000)
    fast = program.run(rng, classes, level=0.0, hit=0.0)
    slow = program.run(rng, classes, level=0.0, hit=0.0, slower=1.1)
    struck = program.run(rng, classes, level=level, hit=rng.uniform(0.0, 0.2), slower=1.1)
    found = profile_interference(struck.profile, reference=fast.profile)
    truth = 100.0 * (1.0 - 1.0 / 1.1) * (1.0 - struck.percent / 100.0)
    off = math.inf if found.continuous_percent is None else found.continuous_percent - truth
    alone = estimate_interference(
        slow.profile.duration_s, slow.profile.computation, nominal=slow.profile.nominal
    )
    return alone.percent, abs(off)


@script.section("Continuous interference: all segments 10 % slower", seed=SEED)
def continuous(run: Run) -> None:
    """Print the estimate without delays, and the continuous part against an undisturbed run."""
    runs = run.runs(200, 50)
    run.heading("program", "estimate without delays", "bar", "continuous, off by", "bar")
    for name in ("one feature", "nominal splits") if run.quick else INSIDE:
        found = run.repeated(partial(run_slower, run.seed, name, runs), runs)
        percent, off = map(max, zip(*found, strict=True))
        bars = run.bar(f"{name}, alone", percent, "<=", 1), run.bar(f"{name}, off", off, "<=", 1)
        run.row(name, f"{percent:.3f}", bars[0], f"{off:.2f}", bars[1])


def run_outside(seed: int, name: str, runs: int, number: int) -> Outcome:
    """Do one run outside the conditions: the levels rise from 5 to 60 %."""
    rng = np.random.default_rng([seed, OUTSIDE_RUNS, list(OUTSIDE).index(name), number])
    program, n = OUTSIDE[name], 40 if name == "40 segments" else 2000
    level = 0.05 + 0.55 * number / max(1, runs - 1)
    hit = float(name[:2]) / 100 if name.endswith("% hit") else rng.uniform(0.0, 0.2)
    return outcome(program.run(rng, program.classes(rng, n), level=level, hit=hit))


@script.section("Outside the conditions", seed=SEED)
def outside(run: Run) -> None:
    """Print how often a Notice stands next to an estimate with an accuracy below .9."""
    runs = run.runs(200, 50)
    run.heading("program", "median accuracy", "with a Notice", "off", "noted where off", "bar")
    for name in OUTSIDE:
        found = run.repeated(partial(run_outside, run.seed, name, runs), runs)
        off = tally(case.is_noted for case in found if case.accuracy < 0.9)
        median = float(np.median([case.accuracy for case in found]))
        verdict = run.judged(f"{name}, noted", Bar(0.95), off) if off.trials else "none off"
        noted = sum(case.is_noted for case in found) / runs
        run.row(name, f"{median:.3f}", f"{noted:.3f}", off.trials, off.hits, verdict)


COMPOSED = ("one feature", "nominal splits", "unequal classes")


def compose(
    seed: int, name: str, runs: int, disturbed: bool, number: int
) -> tuple[Interval, float]:
    """Run a program several times, and put one undisturbed profile together."""
    key = [seed, COMPOSITE, COMPOSED.index(name), runs, int(disturbed), number]
    rng, program = np.random.default_rng(key), INSIDE[name]
    classes = program.classes(rng, 500)
    levels = 1.0 + 0.01 * ar1(rng, runs, 0.0)
    ran = [
        program.run(
            rng,
            classes,
            level=rng.uniform(0.0, 0.4) if disturbed else 0.0,
            hit=rng.uniform(0.0, 0.2),
            slower=level,
        )
        for level in levels.tolist()
    ]
    found = composite_profile([case.profile for case in ran]).duration
    truth = float(np.array(program.duration_s)[classes].sum())
    held = of(found, truth)
    assert held is not None
    return held, found.value / truth - 1.0


@script.section("One profile of several runs", seed=SEED)
def composite(run: Run) -> None:
    """Print coverage and bias; the truth is the mean duration of undisturbed segments."""
    run.heading("program", "runs", "disturbed", "held", "bar", "bias", "bar")
    rows = [*product(COMPOSED, (5, 10, 30), (False, True))]
    rows = (
        [row for row in rows if row[0] == COMPOSED[0] and row[1] < 30 and row[2]]
        if run.quick
        else rows
    )
    for row in rows:
        found = run.repeated(partial(compose, run.seed, *row), run.runs(3_000, 40))
        held, bias = tally(error for error, _ in found), float(np.mean([off for _, off in found]))
        verdict = run.bar(f"{row}, bias", abs(bias), "<=", 0.005)
        run.row(*row, held, run.judged(f"{row}", Bar(0.92), held), f"{bias:+.2%}", verdict)


# --- real runs


def busy(loops: int) -> int:
    """Compute for a while."""
    total = 0
    for index in range(loops):
        total += index * index
    return total


def checksums(n: int) -> None:
    """Do work that takes as long whatever surrounds it, unlike a loop of bytecode."""
    for _ in range(n):
        zlib.crc32(BLOCK)


BLOCK = bytes(range(256)) * 16
BARS = {100: 0.01, 1000: 0.04}
"""Most that recording may add to the wall time, by segments per second."""


@script.section("What recording costs", seed=SEED, quick=False)
def overhead(run: Run) -> None:
    """Print the cost of a segment to single calls, in random order, and of empty ones."""
    run.heading("work", "segments a second", "adds", "bar")
    works: dict[str, Callable[[int], object]] = {"checksums": checksums, "bytecode": busy}
    for (number, (name, work)), (rate, most) in product(enumerate(works.items()), BARS.items()):
        trial, calls = (20_000 if work is checksums else 1_000_000), run.runs(1_500, 20)
        times = round(trial / rate / by_turns(5, partial(work, trial))[0])
        order = np.tile([0, 1], calls)[run.rng(OVERHEAD, 2 + number, rate).permutation(2 * calls)]
        walls: tuple[list[float], list[float]] = ([], [])
        with segments() as recorder:
            for index in order.tolist():
                start = time.perf_counter()
                with recorder.segment("loop") if index else nullcontext():
                    work(times)
                walls[index].append(time.perf_counter() - start)
        adds = float(np.median(walls[1]) / np.median(walls[0])) - 1.0
        run.row(name, rate, f"{adds:+.2%}", run.bar(f"{name} at {rate}, calls", adds, "<=", most))

    def empty(n: int) -> None:
        with segments() as recorder:
            for _ in range(n):
                with recorder.segment("loop"):
                    pass

    each_s = by_turns(7, partial(empty, 20_000))[0] / 20_000
    for rate, most in BARS.items():
        verdict = run.bar(f"empty segments at {rate}", each_s * rate, "<=", most)
        run.say(f"an empty segment takes {1e6 * each_s:.1f} us, at {rate} a second {verdict}")


@script.section("A million segments", seed=SEED, quick=False)
def speed(run: Run) -> None:
    """Print the time of a million segments, over sorting their durations."""
    rng = run.rng(SPEED)
    splits = INSIDE["nominal splits"]
    numbers = replace(splits, nominal={"bytes": splits.nominal["bytes"]})
    rows = {name: INSIDE[name] for name in ("one feature", "two features")}
    for name, program in {**rows, "a nominal column": numbers}.items():
        classes = program.classes(rng, 1_000_000)
        profile = program.run(rng, classes, level=0.2, hit=0.1).profile
        sorting = partial(np.sort, profile.duration_s)
        ours, sort = by_turns(9, partial(profile_interference, profile), sorting)
        verdict = run.bar(f"a million, {name}", ours / sort, "<=", 8.0)
        run.say(f"{name}: {1e3 * ours:.0f} ms, over numpy.sort {ours / sort:.1f}, {verdict}")


if __name__ == "__main__":
    raise SystemExit(script.main())
