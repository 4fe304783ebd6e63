"""Traces of known phases: whether the number at each entry point is of the right readings."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from click.testing import CliRunner
from coverage_tables import Bar, Setting, heading, row
from machine import wilson

import benchrigor as br
from benchrigor.cli import main
from benchrigor.model.codec import decode
from benchrigor.testing import FakeClock

__all__ = ["others", "traces"]

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

UNIT_S = 1e-3
"""The level that holds most readings."""
NEAR, HELD = Bar(0.95), Bar(0.93, 0.97)
WIDEST = 0.025
AWAY = 0.05
"""Neighbouring levels differ by this at least, and so do all from the one that holds most."""


class Found(NamedTuple):
    """What an entry point made of a trace, relative to the truth."""

    off: float
    half_width: float
    held: bool


def noise(rng: Rng, n: int, sd: float, phi: float) -> Floats:
    """Return factors around 1, autoregressive of order 1."""
    shocks = rng.normal(0.0, sd * np.sqrt(1.0 - phi * phi), n)
    path = np.empty(n)
    last = rng.normal(0.0, sd)
    for at, shock in enumerate(shocks):
        last = path[at] = phi * last + shock
    return 1.0 + path


def end(rng: Rng, n: int, *, falls: bool) -> Floats:
    """Return one to three constant levels; three that rise to the end are a staircase."""
    count = int(rng.integers(1, min(3, n // 12) + 1)) if n >= 12 else 1
    while True:
        levels = np.exp(rng.uniform(np.log(0.5), np.log(4.0), count))
        path = np.r_[1.0, levels]
        apart = np.abs(np.log(levels)).min() > AWAY and np.abs(np.diff(np.log(path))).min() > AWAY
        away = np.abs(np.log(levels))
        in_order = (
            count == 3 and np.all(np.diff(away) > 0.0) and abs(np.sign(levels - 1.0).sum()) == 3
        )
        if apart and (falls or not in_order):
            break
    borders = np.linspace(0, n, count + 1).astype(int)
    drawn = np.repeat(levels, np.diff(borders))
    return drawn[::-1] if falls else drawn


def phased(rng: Rng) -> Floats:
    """Draw a trace whose level of 1 holds 55 to 90 % of it."""
    n = int(np.exp(rng.uniform(np.log(240), np.log(2_400))))
    rest = n - int(rng.uniform(0.55, 0.90) * n)
    share = (0.0, 1.0, rng.uniform(0.2, 0.8))[int(rng.integers(3))]
    first, last = int(share * rest), rest - int(share * rest)
    parts = [end(rng, first, falls=True)] if first else []
    parts += [np.ones(n - rest)]
    parts += [end(rng, last, falls=False)] if last else []
    series = np.concatenate(parts)
    return series * noise(rng, n, rng.uniform(0.01, 0.03), float(rng.choice([0.0, 0.4])))


def by_statistics(series: Floats) -> br.Estimate | None:
    """Estimate the mean of an array."""
    try:
        return br.stats.estimate_mean(series, trim=True)
    except br.NotEstimable:
        return None


def analysed(words: list[str], stdin: str | None) -> br.Estimate | None:
    """Return the estimate of `benchrigor analyze`."""
    done = CliRunner().invoke(main, ["analyze", "--json", *words], input=stdin)
    (analysis,) = json.loads(done.stdout)["analyses"]
    return None if analysis["estimate"] is None else decode(br.Estimate, analysis["estimate"])


def by_file(series: Floats) -> br.Estimate | None:
    """Analyse a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "readings.txt")
        path.write_text("\n".join(map(str, series.tolist())))
        return analysed([str(path)], None)


def by_pipe(series: Floats) -> br.Estimate | None:
    """Analyse what comes through a pipe."""
    return analysed([], "\n".join(map(str, series.tolist())))


def by_generator(series: Floats) -> br.Estimate | None:
    """Measure the steps of a generator that ends by itself, on a clock of its own."""
    clock = FakeClock()

    def steps() -> Iterator[None]:
        for duration_ns in np.rint(series * 1e9).astype(int).tolist():
            clock.advance(duration_ns)
            yield

    options = br.Options(target=1e-6, budget_s=1e6, reference=False)
    workload = br.StepwiseWorkload(steps, clock=clock)
    return br.Session(options, clock=clock, seed=1).run(workload).estimate()


def by_round(series: Floats) -> br.Estimate | None:
    """Tell a session one round of a fresh process."""
    session = br.Session(br.Options(rounds="restarted", reference=False), seed=1)
    plan = session.ask()
    assert plan is not None
    took_ns = int(series.sum() * 1e9)
    session.tell(br.Round(plan=plan, elapsed_ns=took_ns, unit_readings={"time": series}))
    return session.result().estimate()


DOORS: dict[str, Callable[[Floats], br.Estimate | None]] = {
    "stats": by_statistics,
    "analyze": by_file,
    "generator": by_generator,
    "pipe": by_pipe,
    "restarted round": by_round,
}


def compare(estimate: br.Estimate | None, truth: float) -> Found | None:
    """Compare an estimate with the truth."""
    if estimate is None:
        return None
    held = estimate.low <= truth <= estimate.high
    return Found(estimate.value / truth - 1.0, estimate.half_width / truth, held)


def _trace(seed: int, number: int) -> Found | None:
    rng = np.random.default_rng([seed, 1, number])
    door = list(DOORS.values())[number % len(DOORS)]
    return compare(door(UNIT_S * phased(rng)), UNIT_S)


def share_cell(hits: int, trials: int) -> str:
    """Format a share with its Wilson interval."""
    low, high = wilson(hits, trials)
    return f"{hits / trials:.3f} [{low:.3f}, {high:.3f}]"


def judge(setting: Setting, name: str, bar: Bar, hits: int, trials: int) -> str:
    """Return a share, its bar and the verdict."""
    low, high = wilson(hits, trials, setting.z)
    met = setting.verdict(name, low <= bar.most and high >= bar.least)
    return f"{share_cell(hits, trials)}, {bar}: {met}"


def traces(setting: Setting) -> None:
    """Print how often the number is that of the level that holds most readings."""
    runs = setting.runs(600, 60)
    found = setting.repeated(partial(_trace, setting.seed), runs)
    print(f"{runs} traces of 240 to 2,400 readings, at the entry points in turn.\n")
    heading(["entry point", "within 1.5 %", "held", "no number", "median half-width"])
    for index, door in enumerate((*DOORS, "all")):
        some = found if door == "all" else found[index :: len(DOORS)]
        known = [one for one in some if one is not None]
        near, held = (sum(abs(one.off) <= 0.015 for one in known), sum(one.held for one in known))
        width = float(np.median([one.half_width for one in known]))
        cells: list[object] = [share_cell(near, len(some)), share_cell(held, len(some))]
        shown = f"{width:.2%}"
        if door == "all":
            cells = [
                judge(setting, "within 1.5 %", NEAR, near, len(some)),
                judge(setting, "held", HELD, held, len(some)),
            ]
            shown += f", at most {WIDEST:.1%}: {setting.verdict('half-width', width <= WIDEST)}"
        row(door, *cells, len(some) - len(known), shown)


def leak(rng: Rng) -> Floats:
    """Return a level that holds 55 to 80 %, then a rise by 20 to 100 % to the end."""
    n = int(rng.integers(400, 2_400))
    flat = int(rng.uniform(0.55, 0.80) * n)
    rise = np.linspace(1.0, 1.0 + rng.uniform(0.2, 1.0), n - flat)
    levels: Floats = np.r_[np.ones(flat), rise]
    return levels * noise(rng, n, rng.uniform(0.01, 0.03), 0.0)


def staircase(rng: Rng) -> Floats:
    """Return a level that holds half or more, then three to six steps up."""
    n, steps = int(rng.integers(400, 2_400)), int(rng.integers(3, 7))
    flat = int(rng.uniform(0.50, 0.70) * n)
    heights = np.cumprod(np.r_[1.0, 1.0 + rng.uniform(0.04, 0.2, steps)])
    sizes = np.diff(np.linspace(flat, n, steps + 1).astype(int))
    return np.repeat(heights, np.r_[flat, sizes]) * noise(rng, n, rng.uniform(0.01, 0.03), 0.0)


def walk(rng: Rng) -> Floats:
    """Return a random walk of 1 % a step."""
    return 10.0 + 0.1 * np.cumsum(rng.normal(size=int(rng.integers(400, 2_400))))


def persistent(rng: Rng) -> Floats:
    """Return autoregressive readings with a coefficient of .9, which have a level."""
    return noise(rng, int(rng.integers(400, 2_400)), 0.05, 0.9)


def falls_back(rng: Rng) -> Floats:
    """Return a start-up whose compiler falls back once."""
    return np.repeat([2.0, 1.0, 2.0, 1.0], [50, 50, 50, 850]) * noise(rng, 1_000, 0.02, 0.0)


def alternating(rng: Rng) -> tuple[Floats, float]:
    """Return two paces that come and go for 50 readings or so, and their mean."""
    levels = np.r_[np.ones(0)]
    slow = rng.uniform(1.2, 2.0)
    while levels.size < 2_000:
        stay = 20 + int(rng.geometric(1.0 / 60.0))
        levels = np.r_[levels, np.full(stay, 1.0 if levels.size and levels[-1] > 1.0 else slow)]
    return levels * noise(rng, levels.size, 0.02, 0.0), float(levels.mean())


REFUSED: dict[str, Callable[[Rng], Floats]] = {
    "leak": leak,
    "staircase": staircase,
    "random walk": walk,
}
SHAPES: dict[str, Callable[[Rng], Floats]] = {
    **REFUSED,
    "AR(1) 0.9": persistent,
    "falls back": falls_back,
}


def _other(seed: int, name: str, repetition: int) -> Found | None:
    rng = np.random.default_rng([seed, 2, list(SHAPES).index(name), repetition])
    return compare(by_statistics(SHAPES[name](rng)), 1.0)


def _alternating(seed: int, repetition: int) -> Found | None:
    series, truth = alternating(np.random.default_rng([seed, 3, repetition]))
    return compare(by_statistics(series), truth)


def others(setting: Setting) -> None:
    """Print what becomes of traces without a level that holds most readings."""
    runs = setting.runs(100, 30)
    print(f"{runs} traces of each shape.\n")
    heading(["shape", "no number", "within 1.5 %", "held"])
    for name in SHAPES:
        found = setting.repeated(partial(_other, setting.seed, name), runs)
        known = [one for one in found if one is not None]
        near: object = sum(abs(one.off) <= 0.015 for one in known)
        if name == "falls back":
            near = judge(setting, name, NEAR, int(str(near)), runs)
        row(name, runs - len(known), near, sum(one.held for one in known))
    found = setting.repeated(partial(_alternating, setting.seed), runs)
    known = [one for one in found if one is not None]
    held = sum(one.held for one in known)
    verdict = judge(setting, "alternating", Bar(0.90), held, runs)
    row("alternating paces, mean over time", runs - len(known), "", verdict)
