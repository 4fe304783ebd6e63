"""Simulated windows of ten seconds on a machine that changes its pace, and of readings that drift.

A pace holds for a while and then jumps to another level. The truth of a window is its own mean
level, over the calls that were made in it. A trend is no pace: the report must refuse a mean of
it. Readings scatter around their level by a gamma distribution of shape 2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally

import benchrigor as br
from benchrigor import stats
from benchrigor.session.engine import Engine

__all__ = ["pace", "sessions", "trends"]

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

WINDOW_S = 10.0
CALL_S = 2e-3
"""Duration of a call at full pace: 2,500 to 5,000 readings a window."""
COVERAGE = Bar(0.92)
MOST_REFUSED, LEAST_REFUSED = 0.02, 0.95


class Regime(NamedTuple):
    """A pace: levels a factor apart, holding times and their tail, spread of the readings."""

    levels: int
    factor: float
    holding_s: float
    heavy: bool
    spread: float = 0.05

    def window(self, rng: Rng, *, seconds: float = WINDOW_S) -> tuple[Floats, Floats]:
        """Return the readings of a window, and the level of each."""
        steps = self.factor ** (np.arange(self.levels) / (self.levels - 1))
        time, at, levels = 0.0, int(rng.integers(self.levels)), []
        while time < seconds:
            holds = self._holding(rng)
            calls = max(1, round(min(holds, seconds - time) / (CALL_S * steps[at])))
            levels.append(np.full(calls, CALL_S * steps[at]))
            time += holds
            at = (at + int(rng.integers(1, self.levels))) % self.levels
        level = np.concatenate(levels)
        return level * noise(rng, level.size, self.spread), level

    def _holding(self, rng: Rng) -> float:
        """Draw a holding time; a heavy tail is Pareto's with exponent 1.5, of the same mean."""
        if self.heavy:
            return float(self.holding_s / 3.0 * (1.0 + rng.pareto(1.5)))
        return float(rng.exponential(self.holding_s))


def noise(rng: Rng, n: int, spread: float) -> Floats:
    """Return factors of mean 1."""
    factors: Floats = 1.0 + spread * (rng.gamma(2.0, 1.0, n) - 2.0) / np.sqrt(2.0)
    return factors


def estimated(readings: Floats) -> br.Estimate | None:
    """Return what every door makes of a series of readings."""
    try:
        return stats.estimate_mean(readings, trim=True)
    except br.NotEstimable:
        return None


def _one_window(regime: Regime, seed: int, number: int, repetition: int) -> Interval | None:
    readings, level = regime.window(np.random.default_rng([seed, 1, number, repetition]))
    found = estimated(readings)
    return None if found is None else of(found, float(level.mean()))


REGIMES = [
    Regime(levels, factor, holding_s, heavy)
    for heavy, levels, factor, holding_s in product(
        (False, True), (2, 3, 4), (1.1, 1.4, 2.0), (0.1, 0.3, 1.0, 3.0, 10.0)
    )
]


def pace(setting: Setting) -> None:
    """Print the coverage of each holding time, over levels and factors, and of all together."""
    print(
        f"Windows of {WINDOW_S:g} s, calls of {CALL_S * 1e3:g} ms at full pace; 2, 3, 4 levels a "
        "factor 1.1, 1.4, 2 apart; in brackets the mean half-width in %."
    )
    heading(["holding time", "tail", "holds the window's own mean level", "refused"])
    everything: list[Interval | None] = []
    runs = setting.runs(40, 4)
    for (heavy, holding_s), rows in _grouped():
        found = []
        for number in rows:
            run = partial(_one_window, REGIMES[number], setting.seed, number)
            found += setting.repeated(run, runs)
        everything += found
        counted = tally(found)
        tail = "Pareto 1.5" if heavy else "exponential"
        row(f"{holding_s:g} s", tail, counted.cell(wilson_too=True), f"{counted.refused}")
    counted = tally(everything)
    known = counted._replace(trials=counted.trials - counted.refused, refused=0)
    covered = setting.judged("coverage of the window's mean level", COVERAGE, known)
    few = setting.at_most("refused windows", MOST_REFUSED, counted.refused, counted.trials)
    row("all", "both", f"{known.cell(wilson_too=True)} {covered}", f"{counted.refused} {few}")


# --- whole sessions, which may end as soon as they are satisfied


class _Session(NamedTuple):
    """How a default session ended: its interval and the mean level of its own time, or None."""

    satisfied: bool
    seconds: float
    interval: Interval | None


def _one_session(regime: Regime, seed: int, number: int, repetition: int) -> _Session:
    readings, level = regime.window(
        np.random.default_rng([seed, 4, number, repetition]), seconds=1.3 * WINDOW_S
    )
    engine, taken = Engine(br.Options(), seed=repetition), 0
    engine.min_seconds = engine.options.min_seconds
    while (plan := engine.ask()) is not None:
        values = readings[taken : taken + plan.readings]
        taken += plan.readings
        elapsed_ns = int(1e9 * values.sum())
        engine.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    record = engine.result()
    found = record.estimate()
    own = None if found is None else of(found, float(level[:taken].mean()))
    satisfied = record.decision is not None and record.decision.satisfied
    return _Session(satisfied, record.elapsed_s, own)


def sessions(setting: Setting) -> None:
    """Print how default sessions end under each holding time, and what their intervals hold."""
    heading(["holding time", "tail", "satisfied", "after", "holds its mean level", "else holds"])
    runs, everything = setting.runs(20, 2), list[_Session]()
    for (heavy, holding_s), rows in _grouped():
        found = list[_Session]()
        for number in rows:
            run = partial(_one_session, REGIMES[number], setting.seed, number)
            found += setting.repeated(run, runs)
        everything += found
        _print_sessions(f"{holding_s:g} s", "Pareto 1.5" if heavy else "exponential", found)
    _print_sessions("all", "both", everything)
    counted = tally([each.interval for each in everything])
    known = counted._replace(trials=counted.trials - counted.refused, refused=0)
    print(f"\n- all: {setting.judged('coverage of whole sessions', COVERAGE, known)}")


def _print_sessions(holding: str, tail: str, found: list[_Session]) -> None:
    early = [each for each in found if each.satisfied]
    cells = [
        tally([each.interval for each in found if each.satisfied is kind]) for kind in (True, False)
    ]
    after = f"{np.mean([each.seconds for each in early]):.2g} s" if early else "-"
    shown = [each.cell(wilson_too=True) if each.trials else "-" for each in cells]
    row(holding, tail, f"{len(early)} of {len(found)}", after, *shown)


def _grouped() -> list[tuple[tuple[bool, float], list[int]]]:
    groups: dict[tuple[bool, float], list[int]] = {}
    for number, each in enumerate(REGIMES):
        groups.setdefault((each.heavy, each.holding_s), []).append(number)
    return list(groups.items())


# --- what is no pace


def leak(rise: float) -> Callable[[Floats], Floats]:
    """Return levels that rise by this share from beginning to end."""
    return lambda share: 1.0 + rise * share


def filling(excess: float, constant: float) -> Callable[[Floats], Floats]:
    """Return levels of a cache that fills with this time constant, relative to the window."""
    return lambda share: 1.0 + excess * np.exp(-share / constant)


DRIFTS: dict[str, Callable[[Floats], Floats]] = {
    "leak of 30 %": leak(0.3),
    "leak of 100 %": leak(1.0),
    "leak of 300 %": leak(3.0),
    "leak that slows down": lambda share: 1.0 + np.sqrt(share),
    "cache, 2x more, constant 0.3": filling(2.0, 0.3),
    "cache, 1x more, constant 0.5": filling(1.0, 0.5),
    "cache, 0.5x more, constant 1": filling(0.5, 1.0),
}


BESIDE = Regime(3, 1.5, 1.0, heavy=False)


def _drifting(name: str, seed: int, n: int, repetition: int) -> bool:
    """Draw n drifting readings, or for 0 a window beside other paces; return if it is refused."""
    number = list(DRIFTS).index(name)
    rng = np.random.default_rng([seed, 2, number, n, repetition])
    if n:
        level: Floats = np.full(n, CALL_S)
    else:
        level = BESIDE.window(rng)[1]
    share = np.arange(level.size) / level.size
    readings = level * DRIFTS[name](share) * noise(rng, level.size, 0.05)
    return estimated(readings) is None


def _sorted(seed: int, n: int, repetition: int) -> bool:
    rng = np.random.default_rng([seed, 3, n, repetition])
    return estimated(np.sort(CALL_S * noise(rng, n, 0.2))) is None


def trends(setting: Setting) -> None:
    """Print which share of drifting series is refused, alone and on a machine of changing pace."""
    runs = setting.runs(200, 30)
    heading(["series", "1,000 readings", "5,000 readings", "beside three levels of pace (no bar)"])
    for name in DRIFTS:
        cells = []
        for n in (1_000, 5_000):
            run = partial(_drifting, name, setting.seed, n)
            cells.append(_refused(setting, f"{name}, {n}", setting.repeated(run, runs)))
        beside = setting.repeated(partial(_drifting, name, setting.seed, 0), runs)
        row(name, *cells, f"{sum(beside) / runs:.3f}")
    found = [
        _refused(setting, f"sorted, {n}", setting.repeated(partial(_sorted, setting.seed, n), runs))
        for n in (1_000, 5_000)
    ]
    row("sorted readings", *found, "-")


def _refused(setting: Setting, name: str, refused: list[bool]) -> str:
    share = sum(refused) / len(refused)
    return f"{share:.3f} {setting.verdict(name, share >= LEAST_REFUSED)}"
