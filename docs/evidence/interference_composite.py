"""The profile free of interference that several disturbed runs give: coverage and bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally
from interference_programs import INSIDE, Floats, exponential, steady

from benchrigor.interference import composite_profile
from benchrigor.model import Code

__all__ = ["composite"]

COMPOSITE = 85
EXPERIMENTS, QUICK_EXPERIMENTS = 3000, 40
"""So many that a true coverage of 0.90 misses the bar nineteen times in twenty."""
N = 500
RUN_TO_RUN = 0.01
"""Standard deviation of the factor by which whole runs differ."""
HIGHEST, MOST_HIT = 0.4, 0.2
RUNS = (5, 10, 30)
BAR, MOST_BIASED = Bar(0.92), 0.005
PROGRAMS = ("one feature", "nominal splits", "unequal classes")


class Case(NamedTuple):
    """What is not as it should be."""

    correlation: float = 0.0
    """Of runs with the run before."""
    tails: bool = False
    """Segments of the program have exponential tails of 5 %."""


USUAL = Case()
CASES = {
    "runs correlated by 0.5": Case(correlation=0.5),
    "runs correlated by 0.9": Case(correlation=0.9),
    "exponential tails of 5 %": Case(tails=True),
}
CASE_RUNS, CASE_EXPERIMENTS, QUICK_CASE = 15, 1000, 20


class Outcome(NamedTuple):
    """What is kept of one experiment, relative to the truth."""

    duration: Interval
    off: float
    groups: tuple[Interval, ...]
    missing: int
    """Groups without an estimate."""
    mean: float
    fastest: float
    noted: bool
    """Whether slow segments in all runs were noted."""


def levels(rng: np.random.Generator, runs: int, correlation: float) -> Floats:
    """Return the factors by which whole runs differ."""
    drawn = rng.standard_normal(runs)
    for run in range(1, runs):
        drawn[run] = correlation * drawn[run - 1] + math.sqrt(1.0 - correlation**2) * drawn[run]
    return 1.0 + RUN_TO_RUN * drawn


def experiment(
    seed: int, name: str, runs: int, disturbed: bool, index: int, *, case: Case = USUAL
) -> Outcome:
    """Run a program several times, and put one undisturbed profile together."""
    row_key = (PROGRAMS.index(name), runs, int(disturbed))
    rng = np.random.default_rng([seed, COMPOSITE, *row_key, index])
    program = replace(INSIDE[name], time_noise=exponential if case.tails else steady)
    classes = program.classes(rng, N)
    ran = [
        program.run(
            rng,
            classes,
            level=rng.uniform(0.0, HIGHEST) if disturbed else 0.0,
            hit=rng.uniform(0.0, MOST_HIT),
            slower=level,
        )
        for level in levels(rng, runs, case.correlation).tolist()
    ]
    found = composite_profile([each.profile for each in ran])
    durations_s = np.array(program.duration_s)
    truth = float(durations_s[classes].sum())
    known = [each.duration for each in found.groups if each.duration is not None]
    walls = [each.wall_s for each in ran]
    return Outcome(
        duration=of(found.duration, truth),
        off=found.duration.value / truth - 1.0,
        # The class that a group stands for is the one with the nearest duration.
        groups=tuple(
            of(each, float(durations_s[np.argmin(np.abs(np.log(durations_s / each.value)))]))
            for each in known
        ),
        missing=len(durations_s) - len(known),
        mean=float(np.mean(walls)) / truth - 1.0,
        fastest=min(walls) / truth - 1.0,
        noted=any(each.code is Code.NATURAL_TAIL for each in found.notices),
    )


def composite(setting: Setting) -> None:
    """Print coverage, bias, and what the mean and the fastest of the runs say instead."""
    experiments = setting.runs(EXPERIMENTS, QUICK_EXPERIMENTS)
    print(f"{experiments} experiments a row: runs of {N} segments, 0 to 40 % interference or none,")
    print(f"up to 20 % of segments hit; whole runs differ by {RUN_TO_RUN:.0%}. The truth: what the")
    print("segments last in the mean, undisturbed. In brackets half-widths in %.\n")
    columns = [
        "program",
        "runs",
        "interference",
        "duration",
        str(BAR),
        "bias",
        f"{MOST_BIASED:.1%}",
    ]
    heading([*columns, "groups", "missing", "mean of runs", "fastest"])
    for name in PROGRAMS[: 1 if setting.quick else None]:
        for runs in RUNS[:2] if setting.quick else RUNS:
            for disturbed in (True,) if setting.quick else (False, True):
                run = partial(experiment, setting.seed, name, runs, disturbed)
                _print(setting, (name, runs, disturbed), setting.repeated(run, experiments))
    _outside(setting)


def _outside(setting: Setting) -> None:
    """Print what becomes of it where the conditions do not hold; there is no bar."""
    experiments = setting.runs(CASE_EXPERIMENTS, QUICK_CASE)
    print(f"\nOutside of its conditions: {PROGRAMS[0]}, {CASE_RUNS} runs, no interference,")
    print(f"{experiments} experiments. Noted: slow segments in all runs.\n")
    heading(["what differs", "duration", "bias", "noted"])
    for label, case in {"nothing": USUAL, **CASES}.items():
        run = partial(experiment, setting.seed, PROGRAMS[0], CASE_RUNS, False, case=case)
        found = setting.repeated(run, experiments)
        bias = float(np.mean([each.off for each in found]))
        noted = float(np.mean([each.noted for each in found]))
        cell = tally(each.duration for each in found).cell(wilson_too=True)
        row(label, cell, f"{bias:+.2%}", f"{noted:.3f}")


def _print(setting: Setting, key: tuple[str, int, bool], found: Sequence[Outcome]) -> None:
    name, runs, disturbed = key
    label = f"{name}, {runs} {'disturbed ' if disturbed else ''}runs"
    durations = tally(each.duration for each in found)
    offs = [each.off for each in found]
    bias = float(np.mean(offs))
    error = float(np.std(offs, ddof=1)) / math.sqrt(len(offs))
    row(
        name,
        runs,
        "0 to 40 %" if disturbed else "none",
        durations.cell(wilson_too=True),
        setting.judged(label, BAR, durations),
        f"{bias:+.2%} ({error:.2%})",
        setting.verdict(f"{label}, bias", abs(bias) < MOST_BIASED),
        tally(group for each in found for group in each.groups).cell(),
        sum(each.missing for each in found),
        f"{np.mean([each.mean for each in found]):+.1%}",
        f"{np.mean([each.fastest for each in found]):+.1%}",
    )
