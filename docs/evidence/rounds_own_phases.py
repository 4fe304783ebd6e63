"""Whether rounds whose warm-ups and cool-downs differ are cut so that the mean is right.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/rounds_own_phases.py [--quick] [--seed N]

Sessions of 25 restarted rounds of 300 readings, of which the first 5 to 99 are a warm-up and, in
some of the rounds, the last 1 to 59 a cool-down.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from coverage_tables import Bar, Interval, Setting, heading, row, tally
from front_door import print_sections

import benchrigor as br
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.stats.changepoints.named_detector import detector_named

SHARES = (0.0, 0.5, 1.0)
SHAPES = ("step", "decay")
ROUNDS, READINGS = 25, 300
MOST_BIASED = 0.002
BAR = Bar(0.92)


def rounds(rng: np.random.Generator, shape: str, share: float) -> list[np.ndarray]:
    """Draw rounds around the level 1, each with phases of its own."""
    times, drawn = np.arange(READINGS), []
    for _ in range(ROUNDS):
        warm_up, cool_down = rng.integers(5, 100), rng.integers(1, 60)
        excess = np.exp(-3.0 * times / warm_up) if shape == "decay" else times < warm_up
        series = 1.0 + 0.5 * excess
        if rng.random() < share:
            series[READINGS - cool_down :] += 0.3
        drawn.append(series * rng.normal(1.0, 0.01) * rng.normal(1.0, 0.03, READINGS))
    return drawn


def session(seed: int, shape: str, share: float, repetition: int) -> tuple[Interval | None, float]:
    """Return the interval of a session, and how far its mean is off."""
    key = [seed, SHAPES.index(shape), round(10 * share), repetition]
    series = rounds(np.random.default_rng(key), shape, share)
    try:
        mean = br.stats.estimate_invocations(series, trim=True)
    except br.NotEstimable:
        return None, np.nan
    return Interval(mean.low <= 1.0 <= mean.high, mean.half_width), mean.value - 1.0


def phases(setting: Setting) -> None:
    """Print coverage and bias by the share of rounds that have a cool-down."""
    runs = setting.runs(200, 40)
    print(f"{runs} sessions a row; in brackets the half-width in % of the truth.\n")
    heading(["warm-up", "cool-downs", "held", "bar", "bias", "bar"])
    for shape in SHAPES:
        for share in SHARES:
            sessions = setting.repeated(partial(session, setting.seed, shape, share), runs)
            held = tally(interval for interval, _ in sessions)
            bias = float(np.nanmean([off for _, off in sessions]))
            name = f"{shape}, {share:.0%}"
            met = setting.verdict(f"{name}, bias", abs(bias) <= MOST_BIASED)
            row(
                shape,
                f"{share:.0%} of rounds",
                held.cell(wilson_too=True),
                setting.judged(name, BAR, held),
                f"{bias:+.2%}",
                f"{MOST_BIASED:.1%}: {met}",
            )


def phased(seed: int, name: str, shortest: int | None, repetition: int) -> Interval | None:
    """Return the interval of a series with a warm-up of 60, 400 stable and 40 last readings."""
    rng = np.random.default_rng([seed, 20, repetition])
    series = rng.normal(np.repeat([30.0, 20.0, 24.0], [60, 400, 40]), 1.0)
    record = record_of_readings(
        [series],
        br.Options(detector=name),
        br.Metric(name="time", unit="s"),
        name="phased",
        detector=detector_named(name, shortest),
    )
    mean = record.estimate()
    if mean is None:
        return None
    return Interval(mean.low <= 20.0 <= mean.high, mean.half_width / 20.0)


def detectors(setting: Setting) -> None:
    """Print how often a phased series has an interval by each detector, and how often it holds."""
    runs = setting.runs(200, 40)
    print(f"{runs} series a row; no interval counts as a miss.\n")
    heading(["detector", "held"])
    for name, shortest in (("ranks", None), ("edm", None), ("edm", 10)):
        label = name if shortest is None else f"{name}, segments of {shortest} at least"
        series = setting.repeated(partial(phased, setting.seed, name, shortest), runs)
        row(label, tally(series).cell(wilson_too=True))


SECTIONS = {
    "phases": ("Rounds with phases of their own", "rounds_own_phases"),
    "detectors": ("A phased series by each detector", "rounds_own_phases"),
}

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20361126))
