"""How often intervals over invocations hold the truth: ten starts of 200 readings each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import coverage_rivals as rivals
import numpy as np
from coverage_processes import exponential_warm_up, filtered
from coverage_tables import Bar, Interval, Setting, heading, interval, of, row, tally

import benchrigor as br
from benchrigor.stats import estimate_invocations

__all__ = ["PROGRAMS", "Program", "invocations"]

INVOCATIONS = 41
COUNT, READINGS = 10, 200
METHODS = ("trim", "no trim", "means, t", "all readings, t", "first only")
QUICK = ("level", "lottery and warm-up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program whose starts differ.

    Parameters
    ----------
    spread
        Standard deviation of the starts' levels, over the mean.
    phi
        Autocorrelation of a start's readings, of which the coefficient of variation is ``cv``.
    slow
        By how much one start in four is slower.
    warm_up
        Amplitude of a warm-up with a time constant of ten readings.
    """

    spread: float = 0.0
    phi: float = 0.0
    cv: float = 0.1
    slow: float = 0.0
    warm_up: float = 0.0

    @property
    def mean(self) -> float:
        """Mean over all possible starts."""
        return 1.0 + self.slow / 4.0

    def draw(self, rng: np.random.Generator, count: int, readings: int) -> list[rivals.Floats]:
        """Return the readings of so many starts."""
        noise = filtered([self.phi], [])
        fading = exponential_warm_up(self.warm_up, 10.0)(np.arange(readings, dtype=np.float64))
        levels = 1.0 + self.spread * rng.normal(size=count)
        levels += self.slow * (rng.random(count) < 0.25)
        return [level + fading + self.cv * noise(rng, readings) for level in levels]


PROGRAMS = {
    "no level": Program(),
    "level": Program(spread=0.05),
    "level and AR(1) 0.9": Program(spread=0.05, phi=0.9),
    "lottery": Program(slow=0.2),
    "lottery and warm-up": Program(slow=0.2, warm_up=1.0),
    "level and warm-up": Program(spread=0.05, warm_up=1.0),
    "level, AR(1) 0.5 and warm-up": Program(spread=0.02, phi=0.5, warm_up=0.5),
}
"""The last two are beyond the list of bars."""
BARS = {"lottery and warm-up": Bar(0.90)}


def intervals(seed: int, name: str, repetition: int) -> tuple[Interval | None, ...]:
    """Return the intervals of all methods on one set of starts."""
    program = PROGRAMS[name]
    numbers = [seed, INVOCATIONS, list(PROGRAMS).index(name), repetition]
    starts = program.draw(np.random.default_rng(numbers), COUNT, READINGS)
    means = np.array([start.mean() for start in starts])
    ends = (
        rivals.plain_t(means),
        rivals.plain_t(np.concatenate(starts)),
        rivals.plain_t(starts[0]),
    )
    return (
        _ours(starts, program.mean, trim=True),
        _ours(starts, program.mean, trim=False),
        *(interval(*each, program.mean) for each in ends),
    )


def _ours(starts: list[rivals.Floats], truth: float, *, trim: bool) -> Interval | None:
    try:
        return of(estimate_invocations(starts, trim=trim), truth)
    except br.NotEstimable:
        return None


def invocations(setting: Setting) -> None:
    """Print coverage by kind of program."""
    runs = setting.runs(1_000, 100)
    print(
        f"{runs} sets of {COUNT} starts of {READINGS} readings a row; in brackets the half-width "
        "in % of the truth. One start in four is 20% slower in a lottery.\n"
    )
    heading(["program", METHODS[0], "bar", *METHODS[1:]])
    for name in PROGRAMS:
        if setting.quick and name not in QUICK:
            continue
        found = setting.repeated(partial(intervals, setting.seed, name), runs)
        ours, *others = map(tally, zip(*found, strict=True))
        row(
            name,
            ours.cell(wilson_too=True),
            setting.judged(f"{name}, invocations", BARS.get(name, Bar(0.92)), ours),
            *(each.cell() for each in others),
        )
