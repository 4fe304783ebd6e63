"""How often intervals hold the truth, at fixed size and in sessions, and what comparisons say.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/intervals.py [--quick] [--seed N] [--only a,b]

Every draw is default_rng([seed, section, row, repetition]), of processes with a known truth.
"""

from __future__ import annotations

import csv
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from click.testing import CliRunner
from scipy import special
from scipy.signal import lfilter

import benchrigor as br
from benchrigor.cli import main as command_line
from benchrigor.model import Verdict, codec
from benchrigor.model.series import Floats
from benchrigor.protocols import Recorder
from benchrigor.stats import compare, estimate_invocations, estimate_mean, estimate_quantile
from benchrigor.stats.series.interval import estimate_level, fit_level
from benchrigor.stats.series.undisturbed import Groups, choose_undisturbed
from benchrigor.testing import ExponentialWarmUp, FakeClock, SyntheticWorkload
from benchrigor.units import Quantity
from shared.processes import ROWS, ZOO, Draw, Group, ar1, exponential_warm_up, filtered
from shared.running import Bar, Interval, Run, Script, by_turns, of, tally
from shared.series import three_phases

Rng = np.random.Generator
script = Script(__doc__)
SEED = 20261201
HELD = Bar(0.92)
CHANGES = (Verdict.BETTER, Verdict.WORSE)


def interval_of(
    estimate: Callable[..., br.Estimate],
    values: object,
    *given: float,
    truth: float,
    **options: Any,
) -> Interval | None:
    """Return the interval of an estimate; None if it refuses."""
    try:
        return of(estimate(values, *given, **options), truth)
    except br.NotEstimable:
        return None


# --- at fixed size

FIXED, LEVELS, SMALL, QUANTILES = 11, 12, 13, 31
N = 1_000
QUICK = (
    *("iid normal", "lognormal 1", "Pareto 2.5", "AR(1) 0.9", "negative moving average"),
    *("M/M/1 at 0.8", "iid, exp", "iid, step and cool-down", "lognormal 0.5, step"),
    "AR(1) 0.5, exp",
)
SPECIAL: dict[str, tuple[Bar | None, Bar | None]] = {
    "AR(1) 0.99": (Bar(0.90, may_refuse=True), Bar(0.90, may_refuse=True)),
    "M/M/1 at 0.8": (Bar(0.90), Bar(0.85)),
    "M/M/1 from empty": (None, Bar(0.80, may_refuse=True)),
}
"""Bars without and with trimming that differ from the group's."""
GROUPS: dict[Group, tuple[Bar | None, Bar | None]] = {
    Group.STATIONARY: (Bar(0.93, 0.97), Bar(0.93, 0.97)),
    Group.PERIODIC: (None, None),
    Group.WARM: (None, HELD),
}


def of_mean(
    seed: int, section: int, name: str, confidence: float, trim: bool, repetition: int
) -> Interval | None:
    """Return the interval of the mean of one series."""
    rng, process = np.random.default_rng([seed, section, ROWS[name], repetition]), ZOO[name]
    series = process.draw(rng, N)
    return interval_of(estimate_mean, series, truth=process.mean, confidence=confidence, trim=trim)


@script.section("The mean of 1,000 readings", seed=SEED)
def fixed(run: Run) -> None:
    """Print coverage by process, without and with trimming."""
    names = [name for name in ZOO if not run.quick or name in QUICK]
    run.shares(
        (
            (
                f"{name}{', trimmed' * trim}",
                partial(of_mean, run.seed, FIXED, name, 0.95, trim),
                SPECIAL.get(name, GROUPS[ZOO[name].group])[trim],
            )
            for name, trim in product(names, (False, True))
        ),
        run.runs(1_000, 100),
    )


@script.section("Other levels", seed=SEED)
def levels(run: Run) -> None:
    """Print coverage at other levels than 95 %."""
    names = ("AR(1) 0.5",) if run.quick else ("iid normal", "AR(1) 0.5", "AR(1) 0.9")
    bars = {0.8: Bar(0.77, 0.83), 0.99: Bar(0.975)}
    run.shares(
        (
            (
                f"{name} at {level}{', trimmed' * trim}",
                partial(of_mean, run.seed, LEVELS, name, level, trim),
                bars[level],
            )
            for name, level, trim in product(names, bars, (False, True))
        ),
        run.runs(1_000, 100),
    )


SMALL_ROWS: dict[str, Draw] = {
    "normal": lambda rng, n: 1.0 + 0.1 * rng.normal(size=n),
    "uniform": lambda rng, n: 2.0 * rng.uniform(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal 1": lambda rng, n: rng.lognormal(-0.5, 1.0, n),
    "AR(1) 0.3": lambda rng, n: 1.0 + 0.1 * ar1(rng, n, 0.3),
    "AR(1) 0.5": lambda rng, n: 1.0 + 0.1 * ar1(rng, n, 0.5),
    "AR(1) 0.8": lambda rng, n: 1.0 + 0.1 * ar1(rng, n, 0.8),
    "AR(1) 0.9": lambda rng, n: 1.0 + 0.1 * ar1(rng, n, 0.9),
}
"""Processes with mean 1."""
MARGINS = {0.8: 0.015, 0.9: 0.0125, 0.95: 0.01, 0.99: 0.005}
SIZES = (5, 10, 29, 30, 31, 37, 45, 60, 100, 300, 1_000)


def of_few(seed: int, name: str, n: int, repetition: int) -> tuple[Interval | None, ...]:
    """Return the interval of one series at each level, and the plain t interval at 95 %."""
    place = list(SMALL_ROWS).index(name)
    series = SMALL_ROWS[name](np.random.default_rng([seed, SMALL, place, n, repetition]), n)
    fit = fit_level(series)
    reach = -float(special.stdtrit(n - 1.0, 0.025) * series.std(ddof=1)) / math.sqrt(n)
    plain = Interval(bool(abs(series.mean() - 1.0) <= reach), reach)
    return *(of(estimate_level(fit, level, positive=True), 1.0) for level in MARGINS), plain


@script.section("Small samples", seed=SEED)
def small(run: Run) -> None:
    """Print coverage around 30 readings, from which on autocorrelation is estimated."""
    runs = run.runs(5_000, 500)
    run.heading("process", "n", *map(str, MARGINS), "bars missed", "plain t at 0.95")
    for name, n in product(SMALL_ROWS, SIZES):
        if run.quick and (name not in ("normal", "AR(1) 0.5") or n not in (29, 30, 60)):
            continue
        found = run.repeated(partial(of_few, run.seed, name, n), runs)
        *ours, plain = map(tally, zip(*found, strict=True))
        bars = {0.95: Bar(min(plain.share, 0.94) - 0.005)}
        if name in ("normal", "uniform"):
            bars = {level: Bar(level - margin, level + margin) for level, margin in MARGINS.items()}
        elif name.startswith("AR(1)"):
            bars = {0.95: Bar(0.94)} if n >= 100 else {}
        verdicts = [
            run.judged(f"{name}, n = {n}, at {level}", bars[level], verdict)
            for level, verdict in zip(MARGINS, ours, strict=True)
            if level in bars
        ]
        missed = [verdict for verdict in verdicts if verdict.endswith("MISSED")]
        run.row(name, n, *ours, "; ".join(missed) or "none", plain)


QUANTILE_NAMES = (
    *("iid normal", "AR(1) 0.9", "bimodal iid"),
    *("AR(1) 0.5", "lognormal 1", "bimodal switching"),
)


def of_quantile(seed: int, name: str, q: float, repetition: int) -> Interval | None:
    """Return the interval of a quantile of one series."""
    process = ZOO[name]
    assert process.quantile is not None
    series = process.draw(np.random.default_rng([seed, QUANTILES, ROWS[name], repetition]), N)
    return interval_of(estimate_quantile, series, q, truth=process.quantile(q))


@script.section("Quantiles of 1,000 readings", seed=SEED)
def quantiles(run: Run) -> None:
    """Print coverage by process and quantile."""
    rows = [*product(QUANTILE_NAMES[: 3 if run.quick else None], (0.5, 0.1)), ("iid normal", 0.99)]
    run.shares(
        (
            (
                f"{name}, p{100 * q:.0f}",
                partial(of_quantile, run.seed, name, q),
                HELD if q == 0.99 else Bar(0.92, 0.98),
            )
            for name, q in rows
        ),
        run.runs(1_000, 200),
    )


# --- processes, and comparisons of them

INVOCATIONS, SAME, CHANGED, ALIKE, SINGLE = 41, 51, 52, 53, 54
COUNT, READINGS = 10, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program with starts that differ.

    Parameters
    ----------
    spread
        Standard deviation of the starts' levels, over the mean.
    phi
        Autocorrelation of a start's readings; their coefficient of variation is ``cv``.
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

    def draw(self, rng: Rng, count: int, readings: int) -> list[Floats]:
        """Return the readings of a number of starts."""
        noise = filtered([self.phi], [])
        fading = exponential_warm_up(self.warm_up, 10.0)(np.arange(readings, dtype=np.float64))
        starts = 1.0 + self.spread * rng.normal(size=count)
        starts += self.slow * (rng.random(count) < 0.25)
        return [level + fading + self.cv * noise(rng, readings) for level in starts]


PROGRAMS = {
    "no level": Program(),
    "level": Program(spread=0.05),
    "level and AR(1) 0.9": Program(spread=0.05, phi=0.9),
    "lottery": Program(slow=0.2),
    "lottery and warm-up": Program(slow=0.2, warm_up=1.0),
    "level and warm-up": Program(spread=0.05, warm_up=1.0),
    "level, AR(1) 0.5 and warm-up": Program(spread=0.02, phi=0.5, warm_up=0.5),
}


def of_starts(seed: int, name: str, trim: bool, repetition: int) -> Interval | None:
    """Return the interval over one set of starts."""
    numbers = [seed, INVOCATIONS, list(PROGRAMS).index(name), repetition]
    starts = PROGRAMS[name].draw(np.random.default_rng(numbers), COUNT, READINGS)
    return interval_of(estimate_invocations, starts, truth=PROGRAMS[name].mean, trim=trim)


@script.section("Ten starts of 200 readings", seed=SEED)
def invocations(run: Run) -> None:
    """Print coverage by kind of program; one start in four is 20 % slower in a lottery."""
    names = ("level", "lottery and warm-up") if run.quick else PROGRAMS
    run.shares(
        (
            (
                name,
                partial(of_starts, run.seed, name, True),
                Bar(0.90) if name == "lottery and warm-up" else HELD,
            )
            for name in names
        ),
        run.runs(1_000, 100),
    )


class Design(NamedTuple):
    """How a pair is drawn, and compared."""

    section: int
    number: int
    program: Program
    ratio: float = 1.0
    counts: tuple[int, int] = (COUNT, COUNT)
    statistic: str = "mean"
    margin: float = 0.0


def said(seed: int, design: Design, wanted: tuple[Verdict, ...], repetition: int) -> bool:
    """Draw one pair and compare it."""
    rng = np.random.default_rng([seed, design.section, design.number, repetition])
    if design.section == SINGLE:
        baseline, candidate = ([values] for values in design.program.draw(rng, 2, 1_000))
    else:
        baseline, candidate = (design.program.draw(rng, count, READINGS) for count in design.counts)
    sides = baseline, [design.ratio * values for values in candidate]
    if design.section == SINGLE:
        sides = sides[0][0], sides[1][0]  # type: ignore[assignment]
    with suppress(br.NotEstimable):
        found = compare(*sides, statistic=design.statistic, margin=design.margin)
        return found.verdict in wanted
    return False


def spread_for(total: float, cv: float, phi: float) -> float:
    """Return the spread of levels with which means of starts have that standard deviation."""
    within = cv**2 * (1.0 + phi) / (1.0 - phi) / READINGS
    return math.sqrt(total**2 - within)


@script.section("Comparisons of starts", seed=SEED)
def comparisons(run: Run) -> None:
    """Print false verdicts on the same code, then power and equivalence."""
    cells = [*enumerate(product((0.0, 0.01, 0.03), (0.0, 0.5, 0.9)))]
    designs = [
        Design(SAME, number, Program(spread=spread, phi=phi), statistic=statistic, margin=margin)
        for (number, (spread, phi)), statistic, margin in product(
            cells[:: 8 if run.quick else 1], ("mean", "median"), (0.0, 0.01)
        )
    ]
    designs.append(Design(SAME, 9, Program(spread=0.01), counts=(COUNT, COUNT - 1)))
    designs += [Design(SINGLE, n, Program(phi=phi)) for n, phi in enumerate((0.0, 0.5, 0.9))]
    slower = Program(spread=spread_for(0.012, 0.05, 0.5), phi=0.5, cv=0.05)
    alike = Program(spread=spread_for(0.002, 0.01, 0.5), phi=0.5, cv=0.01)
    found = {
        "3% slower, called worse": (Design(CHANGED, 0, slower, 1.03, margin=0.01), Verdict.WORSE),
        "the same, called equivalent": (Design(ALIKE, 0, alike, margin=0.01), Verdict.EQUIVALENT),
    }
    rows = [
        (
            f"same code called a change: "
            f"{'one series' if design.section == SINGLE else design.counts}, "
            f"spread {design.program.spread:.0%}, AR(1) {design.program.phi}, "
            f"{design.statistic}, margin {design.margin:.0%}",
            partial(said, run.seed, design, CHANGES),
            Bar(0.0, 0.05),
        )
        for design in designs
    ]
    rows += [
        (name, partial(said, run.seed, design, (wanted,)), Bar(0.90))
        for name, (design, wanted) in found.items()
    ]
    run.shares(rows, run.runs(1_000, 100), "share")


OWN_ROUNDS, OWN_READINGS = 25, 300


def own_phases(
    seed: int, shape: str, share: float, repetition: int
) -> tuple[Interval | None, float]:
    """Return the interval over restarted rounds with phases of their own, and how far it is off."""
    key = [seed, ("step", "decay").index(shape), round(10 * share), repetition]
    rng, at, drawn = np.random.default_rng(key), np.arange(OWN_READINGS), []
    for _ in range(OWN_ROUNDS):
        warm_up, cool_down = rng.integers(5, 100), rng.integers(1, 60)
        series = 1.0 + 0.5 * (np.exp(-3.0 * at / warm_up) if shape == "decay" else at < warm_up)
        if rng.random() < share:
            series[OWN_READINGS - cool_down :] += 0.3
        drawn.append(series * rng.normal(1.0, 0.01) * rng.normal(1.0, 0.03, OWN_READINGS))
    try:
        mean = estimate_invocations(drawn, trim=True)
    except br.NotEstimable:
        return None, math.nan
    return of(mean, 1.0), mean.value - 1.0


@script.section("Rounds with warm-ups and cool-downs of their own", seed=20361126)
def phases(run: Run) -> None:
    """Print coverage and bias by the share of rounds that have a cool-down."""
    run.heading("warm-up", "cool-downs", "held", "bar", "bias", "bar")
    for shape, share in product(("step", "decay"), (0.0, 0.5, 1.0)):
        found = run.repeated(partial(own_phases, run.seed, shape, share), run.runs(200, 40))
        held, bias = tally(hit for hit, _ in found), float(np.nanmean([off for _, off in found]))
        name = f"{shape}, {share:.0%}"
        verdict = run.bar(f"{name}, bias", abs(bias), "<=", 0.002)
        run.row(shape, f"{share:.0%}", held, run.judged(name, HELD, held), f"{bias:+.2%}", verdict)


SLOW, MOST_FALSE = 0.12, 0.035
MIRRORED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
PAIRED_ROWS = [*product((1.5, 3.0, 10.0), (False, True))]


def slow_pairs(rng: Rng, n: int, factor: float, common: bool) -> tuple[Floats, Floats]:
    """Draw pairs of the same code; 12 % are slow, each by itself or both of a pair."""
    slow = [np.where(rng.random(n) < SLOW, factor, 1.0) for _ in range(2)]
    one, two = (rng.lognormal(0.0, 0.05, n) * slow[0 if common else side] for side in (0, 1))
    return one, two


def is_mirror(one: br.Comparison, other: br.Comparison) -> bool:
    """Whether a comparison mirrors another, of exchanged sides."""
    if one.ratio is None or other.ratio is None:
        return False
    ends = (one.ratio.low, one.ratio.value, 1.0 / one.ratio.high)
    back = (1.0 / other.ratio.high, 1.0 / other.ratio.value, other.ratio.low)
    alike = np.allclose(ends, back, rtol=1e-9, atol=0.0)
    alike &= math.isclose(one.p_value or 0.0, other.p_value or 0.0, rel_tol=1e-6, abs_tol=1e-12)
    return bool(alike) and MIRRORED.get(one.verdict, one.verdict) is other.verdict


def of_pairs(seed: int, n: int, row: int, repetition: int) -> tuple[bool, bool, bool]:
    """Return if the same code is worse, or better, and if anything is wrong.

    Exchanged sides have to give a mirror; a verdict without a margin must not contradict its
    p-value.
    """
    rng = np.random.default_rng([seed, n, row, repetition])
    baseline, candidate = slow_pairs(rng, n, *PAIRED_ROWS[row])
    found = compare(baseline, candidate, paired=True, margin=0.0)
    back = compare(candidate, baseline, paired=True, margin=0.0)
    contradicts = (found.verdict in MIRRORED) != ((found.p_value or 0.0) <= 0.05)
    amiss = contradicts or not is_mirror(found, back)
    return found.verdict is Verdict.WORSE, back.verdict is Verdict.WORSE, amiss


@script.section("Pairs, 12% of whose readings are slow", seed=20340417)
def paired(run: Run) -> None:
    """Print false verdicts and other errors; over the rows of a size false ones have the bar."""
    runs = run.runs(400, 15)
    chance = MOST_FALSE + 3.0 * math.sqrt(MOST_FALSE * (1.0 - MOST_FALSE) / runs)
    run.heading("pairs", "slow by, both of a pair", "worse", "better", "bar", "amiss", "bar")
    for n in (15, 41) if run.quick else (15, 41, 200, 400):
        every = np.zeros(2)
        for row, kind in enumerate(PAIRED_ROWS):
            found = run.repeated(partial(of_pairs, run.seed, n, row), runs)
            worse, better, amiss = np.mean(found, axis=0)
            every += np.array([worse, better]) / len(PAIRED_ROWS)
            name = f"n = {n}, {kind}"
            verdict = run.bar(f"false verdicts, {name}", max(worse, better), "<=", chance)
            told = run.bar(f"mirror or p-value, {name}", amiss, "<=", 0.0)
            run.row(n, kind, f"{worse:.3f}", f"{better:.3f}", verdict, amiss, told)
        if not run.quick:
            run.say(run.bar(f"false verdicts of all, n = {n}", max(every), "<=", MOST_FALSE))


# --- undisturbed readings

HIT_GROUPS, STRETCH = 1_500, 50


class Hit(NamedTuple):
    """The simulation: hits per group, and the readings."""

    hits: float
    bursts: bool
    size: int
    shape: str
    cv: float
    phi: float

    def readings(self, rng: Rng, n: int) -> Floats:
        """Draw readings of mean 1; bimodal ones are of two modes, a fifth of them slow."""
        noise = ar1(rng, n, self.phi)
        if self.shape == "lognormal":
            sigma = math.sqrt(math.log1p(self.cv**2))
            return np.exp(sigma * noise - sigma**2 / 2)
        level = np.where(noise > 0.8416212, 1 + 2.0 * self.cv, 1 - 0.5 * self.cv)
        return level * (1 + 0.02 * rng.normal(size=n))


HIT_ROWS = [
    Hit(hits, bursts, *design)
    for hits, bursts, design in product(
        (0.3, 1.5),
        (False, True),
        [
            (1, "lognormal", 0.1, 0.0),
            (1, "lognormal", 0.1, 0.5),
            (1, "lognormal", 0.5, 0.0),
            (1, "lognormal", 0.5, 0.5),
            (1, "lognormal", 1.0, 0.5),
            (1, "bimodal", 0.3, 0.0),
            (1, "bimodal", 1.0, 0.5),
            (20, "lognormal", 1.0, 0.5),
        ],
    )
]
STATISTICS: dict[str, tuple[float, Callable[[Floats], br.Estimate]]] = {
    "mean": (0.005, estimate_mean),
    "p50": (0.005, lambda values: estimate_quantile(values, 0.5)),
    "p95": (0.01, lambda values: estimate_quantile(values, 0.95)),
}
"""Most bias, and the estimate."""


def of_undisturbed(
    seed: int, number: int, repetition: int
) -> tuple[dict[str, tuple[float, float, float]], bool]:
    """Return value, low and high of each statistic, and whether the Notice is there.

    Long readings are hit more often, by a Poisson process in the time that they need; in bursts at
    twice that rate in every other stretch of fifty groups. Hit groups take twice as long.
    """
    row, rng = HIT_ROWS[number], np.random.default_rng([seed, number, repetition])
    values = row.readings(rng, HIT_GROUPS * row.size)
    own = values.reshape(HIT_GROUPS, row.size).sum(axis=1)
    rate = np.full(own.size, row.hits / row.size)
    if row.bursts:
        rate *= 2.0 * ((np.arange(own.size) // STRETCH + rng.integers(2)) % 2)
    hit = rng.random(own.size) < -np.expm1(-rate * own)
    groups = Groups(
        sizes=np.full(HIT_GROUPS, row.size),
        delay_s=np.where(hit, own, 0.0),
        duration_s=np.where(hit, 2.0, 1.0) * own,
    )
    chosen, notices = choose_undisturbed(groups)
    counted = values if chosen is None else values[chosen.indices]
    found = {}
    for name, (_, estimate) in STATISTICS.items():
        found[name] = (math.nan,) * 3
        with suppress(br.NotEstimable):
            each = estimate(counted)
            found[name] = each.value, each.low, each.high
    return found, bool(notices)


@script.section("Undisturbed readings, of which long ones are hit more often", seed=20271130)
def undisturbed(run: Run) -> None:
    """Print bias and coverage; a row that often carries the Notice has no bar."""
    runs = run.runs(200, 10)
    run.heading(
        "hits", "readings", *(f"{name}: bias, held" for name in STATISTICS), "noted", "bars"
    )
    for number in range(0, len(HIT_ROWS), 5 if run.quick else 1):
        row = HIT_ROWS[number]
        whole = row.readings(run.rng(number), 400_000)
        found = run.repeated(partial(of_undisturbed, run.seed, number), runs)
        noted = float(np.mean([told for _, told in found]))
        cells, verdicts = [], []
        for name, (most, _) in STATISTICS.items():
            truth = 1.0 if name == "mean" else float(np.quantile(whole, int(name[1:]) / 100))
            value, low, high = np.array([hit[name] for hit, _ in found]).T
            bias, error = (
                np.nanmean(value) / truth - 1.0,
                np.nanstd(value) / truth / math.sqrt(runs),
            )
            held = tally(((low <= truth) & (truth <= high)).tolist())
            cells.append(f"{bias:+.2%}, {held.share:.2f}")
            if noted < 0.1:
                label = f"{name} of {tuple(row)}"
                verdicts.append(run.bar(f"bias of {label}", abs(bias), "<=", most + 2.0 * error))
                verdicts.append(run.judged(f"coverage of {label}", Bar(0.93), held))
        missed = [verdict for verdict in verdicts if verdict.endswith("MISSED")]
        run.row(row.hits, row[1:], *cells, f"{noted:.2f}", "; ".join(missed) or "none missed")


# --- sessions that stop by themselves

SEQUENTIAL, BY_QUANTILE, ROUNDS = 21, 22, 43
BUDGET = 40_000
SEQUENTIAL_BARS = {
    "M/M/1 at 0.8": Bar(0.85),
    "M/M/1 from empty": Bar(0.82),
    "thermal cycle": Bar(0.90, may_refuse=True),
}
Next = Callable[[br.RoundPlan], Mapping[str, Any]]


def told(session: br.Session, following: Next) -> br.RunRecord:
    """Drive a session by what follows from each plan."""
    while (plan := session.ask()) is not None:
        session.tell(br.Round(plan=plan, **{"elapsed_ns": 1, **following(plan)}))
    return session.result()


def read_on(series: Floats) -> Next:
    """Return the readings of a series that each plan asks for."""
    at = 0

    def following(plan: br.RoundPlan) -> Mapping[str, Any]:
        nonlocal at
        at += plan.readings
        return {"unit_readings": {"reading": series[at - plan.readings : at]}}

    return following


def by_session(
    seed: int, section: int, name: str, statistic: str, warned: bool, repetition: int
) -> Interval | bool | None:
    """Run one session with a target of 5 %, or return whether its result carries a warning."""
    process, rng = ZOO[name], np.random.default_rng([seed, section, ROWS[name], repetition])
    series = process.draw(rng, BUDGET, ends=False)
    options = br.Options(
        target=0.05, budget_readings=BUDGET, budget_s=math.inf, statistic=statistic
    )
    # Not "time": noise around a duration is negative once in a very long while.
    record = told(br.Session(options, seed=repetition), read_on(series))
    truth = process.mean
    if statistic != "mean":
        assert process.quantile is not None
        truth = process.quantile({"median": 0.5, "p10": 0.1}[statistic])
    found = of(record.estimate(), truth)
    return found.warned if found is not None and warned else found


@script.section("Sessions that stop at 5%", seed=SEED)
def sequential(run: Run) -> None:
    """Print coverage by process and statistic; queues have to carry a warning."""
    quick = ("iid normal", "AR(1) 0.9", "lognormal 1", "iid, exp", "AR(1) 0.9, exp")
    rows = [(name, SEQUENTIAL, "mean") for name in (quick if run.quick else ZOO)]
    names = quick[:2] if run.quick else (*quick[:3], "bimodal iid", "bimodal switching")
    rows += [
        (name, BY_QUANTILE, statistic) for name, statistic in product(names, ("median", "p10"))
    ]
    queues = () if run.quick else ("M/M/1 at 0.8", "M/M/1 from empty")
    run.shares(
        [
            (
                f"{name}, {statistic}",
                partial(by_session, run.seed, section, name, statistic, False),
                SEQUENTIAL_BARS.get(name, HELD),
            )
            for name, section, statistic in rows
        ]
        + [
            (
                f"{name}, warned",
                partial(by_session, run.seed, SEQUENTIAL, name, "mean", True),
                Bar(0.95),
            )
            for name in queues
        ],
        run.runs(600, 60),
    )


WORKLOADS: dict[str, dict[str, Any]] = {
    "iid normal": {"noise": "normal", "cv": 0.15},
    "AR(1) 0.5": {"noise": "normal", "cv": 0.15, "phi": 0.5},
    "AR(1) 0.9": {"noise": "normal", "cv": 0.15, "phi": 0.9},
    "lognormal": {"noise": "lognormal", "cv": 0.5},
}
WARM_UPS = {
    "none": None,
    "x2, over 75 readings": ExponentialWarmUp(amplitude=1.0, time_constant=25.0),
    "+15%, over 225 readings": ExponentialWarmUp(amplitude=0.15, time_constant=75.0),
    # Beyond the bar: a transient still visible over 30 % and 60 % of the first look.
    "x2, over 150 readings": ExponentialWarmUp(amplitude=1.0, time_constant=50.0),
    "x2, over 300 readings": ExponentialWarmUp(amplitude=1.0, time_constant=100.0),
}


def warm_session(
    process: str, warm_up: str, block: int, repetition: int
) -> tuple[Interval | None, float]:
    """Run one session; return its interval, and its half-width over an oracle's.

    The oracle knows the long-run variance, and takes all readings for stable.
    """
    number = int(np.random.SeedSequence((block, repetition)).generate_state(1)[0])
    workload = SyntheticWorkload(warm_up=WARM_UPS[warm_up], seed=number, **WORKLOADS[process])
    options = br.Options(target=0.05, budget_readings=BUDGET, budget_s=math.inf)

    def following(plan: br.RoundPlan) -> Mapping[str, Any]:
        values = workload.draw(plan)
        return {"elapsed_ns": int(values.sum() * 1e6), "unit_readings": {"time": values}}

    record = told(br.Session(options, seed=number), following)
    found = record.estimate()
    if found is None:
        return None, math.nan
    oracle = 1.959964 * float(np.sqrt(workload.long_run_variance / record.readings().size))
    return of(found, workload.truth), found.half_width / oracle


@script.section("Sessions with warm-ups of several lengths; seeds (1, 0..) and (2, 0..)", seed=1)
def sessions(run: Run) -> None:
    """Print coverage, and the median half-width over an oracle's."""
    run.heading("process", "warm-up", "block", "held", "bar", "ratio", "bar")
    for process, (number, warm_up), block in product(WORKLOADS, enumerate(WARM_UPS), (1, 2)):
        if run.quick and (process != "AR(1) 0.5" or number > 2 or block > 1):
            continue
        found = run.repeated(partial(warm_session, process, warm_up, block), run.runs(600, 60))
        held, ratio = tally(hit for hit, _ in found), float(np.nanmedian([r for _, r in found]))
        cells: list[object] = ["beyond", f"{ratio:.2f}", "beyond"]
        if number <= 2:
            name = f"{process}, {warm_up}, block {block}"
            cells[0] = run.judged(name, Bar(0.92, 0.98), held)
            cells[2] = run.bar(f"{name}, ratio", ratio, "<=", 1.5)
        run.row(process, warm_up, block, held, *cells)


SINGLES: dict[str, tuple[float, Callable[[Rng, int], float]]] = {
    "iid normal": (1.0, lambda rng, _: rng.normal(1.0, 0.05)),
    "lognormal 0.2": (math.exp(0.02), lambda rng, _: rng.lognormal(0.0, 0.2)),
    "three slow first ones": (1.0, lambda rng, at: rng.normal(1.0, 0.05) + 0.3 * (at < 3)),
}
START_S, READING_S = 0.03, 1e-4  # where a start has a price, as for an interpreter


def of_rounds(seed: int, kind: str, name: str, repetition: int) -> Interval | None:
    """Run a session: its rounds are starts of a program, or one reading each."""
    number = list(SINGLES if kind == "one reading" else PROGRAMS).index(name)
    offset = {"restarted": 0, "priced": 60, "one reading": 40}[kind]
    rng = np.random.default_rng([seed, ROUNDS, offset + number, repetition])
    if kind == "one reading":
        truth, draw = SINGLES[name]
        options = br.Options(target=0.02, max_rounds=400, budget_s=math.inf)
        session = br.Session(options, seed=1)
        record = told(session, lambda plan: {"readings": {"reading": draw(rng, plan.index)}})
        return of(record.estimate(), truth)
    program = PROGRAMS[name]
    limits = {"max_rounds": 400, "budget_s": math.inf} if kind == "restarted" else {}
    options = br.Options(target=0.02, rounds="restarted", **limits)  # type: ignore[arg-type]

    def following(plan: br.RoundPlan) -> Mapping[str, Any]:
        if kind == "restarted":
            return {"unit_readings": {"reading": program.draw(rng, 1, READINGS)[0]}}
        values = program.draw(rng, 1, plan.readings)[0] * READING_S
        elapsed_ns = round(1e9 * (START_S + float(values.sum())))
        return {"elapsed_ns": elapsed_ns, "unit_readings": {"time": values}}

    record = told(br.Session(options, seed=1), following)
    return of(record.estimate(), program.mean * (1.0 if kind == "restarted" else READING_S))


@script.section("Sessions of several rounds, that stop at 2%", seed=SEED)
def rounds(run: Run) -> None:
    """Print coverage by kind of rounds; kinds that were never drawn, or are slow, have no bar."""
    rows = [*product(("restarted", "priced"), PROGRAMS), *product(("one reading",), SINGLES)]
    if run.quick:
        rows = [("restarted", "level and warm-up"), ("one reading", "iid normal")]
    beyond = ("lottery", "lottery and warm-up", "three slow first ones")
    run.shares(
        (
            (
                f"{kind}: {name}",
                partial(of_rounds, run.seed, kind, name),
                None if name in beyond else HELD,
            )
            for kind, name in rows
        ),
        run.runs(600, 60),
    )


REACH = (
    *(("independent", cv, 0.002) for cv in (0.4, 0.55, 0.65, 0.8)),
    *(("AR(1) 0.9", cv, 0.002) for cv in (0.1, 0.15, 0.2)),
    ("modes that switch", 0.2, 0.002),
    *(("independent", cv, 0.02) for cv in (0.05, 0.1, 0.2)),
    *(("independent", cv, 0.1) for cv in (0.01, 0.02, 0.05)),
    ("independent", 0.01, 0.5),
)


def is_out_of_reach(seed: int, index: int, case: tuple[str, float, float], repetition: int) -> bool:
    """Whether a session of ten seconds calls a target of 2 % out of reach, and then reaches it."""
    name, cv, reading_s = case
    n, rng = math.ceil(12.0 / reading_s), np.random.default_rng([seed, index, repetition])
    noise = ar1(rng, n, float(name.split()[1]) if name.startswith("AR(1)") else 0.0)
    if name == "modes that switch":
        side = 2.0 * ((np.cumsum(rng.random(n) < 0.05) + rng.integers(2)) % 2) - 1.0
        noise = side + 0.1 * noise
    series = 1.0 + cv * noise
    engine = br.Session(br.Options(target=0.02, budget_s=10.0), seed=repetition)
    engine.engine.min_seconds = 1.0
    taken, out_of_reach = 0, False
    while taken < n and (plan := engine.ask()) is not None:
        values = series[taken : taken + plan.readings]
        taken += values.size
        elapsed_ns = round(values.size * reading_s * 1e9)
        engine.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"reading": values}))
        progress = engine.progress
        out_of_reach |= bool(progress and progress.decision is None and progress.reachable)
    return out_of_reach and engine.decision is not None and engine.decision.satisfied


@script.section("Slow readings whose target is called out of reach, wrongly", seed=20261128)
def reach(run: Run) -> None:
    """Print how often a target is called out of reach that is reached."""
    rows = (
        (f"{case}", partial(is_out_of_reach, run.seed, 100 + index, case), Bar(0.0, 0.05))
        for index, case in enumerate(REACH)
    )
    run.shares(rows, run.runs(200, 20), "wrongly")


# --- commands and shares

COMMANDS, OUTCOMES, COUNTS = 60, 61, 62
SHAPES: dict[str, Callable[[Floats, int], Any]] = {
    "3 times, decaying with n/15": lambda at, n: 2.0 * np.exp(-at * 15.0 / n),
    "2 times for n/6": lambda at, n: 1.0 * (at < n / 6),
    "falling from 2.5 times over n/5": lambda at, n: 1.5 * np.maximum(1.0 - at * 5.0 / n, 0.0),
}
"""Time of each unit of a round of n units, less 1, in units of the level."""


class Printing:
    """A program that prints how long each of its units took; every round is a fresh process."""

    fresh_process = True

    def __init__(self, rng: Rng, shape: str, n: int, clock: FakeClock) -> None:
        self._rng, self._shape, self._n, self._clock = rng, SHAPES[shape], n, clock

    def run(self, _plan: br.RoundPlan, recorder: Recorder) -> None:
        """Print the units of one round."""
        at, rng = np.arange(self._n, dtype=np.float64), self._rng
        noise = lfilter([1.0], [1.0, -0.5], rng.normal(size=self._n))
        level = 1.0 + 0.005 * rng.normal()
        units = level * (1.0 + self._shape(at, self._n)) * (1.0 + 0.03 * noise)
        self._clock.advance(int(units.sum() * 1e6))
        recorder.unit_readings("u", units)


def analysed(words: list[str], stdin: str | None = None) -> br.Estimate | None:
    """Return the estimate of `benchrigor analyze`."""
    done = CliRunner().invoke(command_line, ["analyze", "--json", *words], input=stdin)
    (analysis,) = json.loads(done.stdout)["analyses"]
    found = analysis["estimate"]
    return None if found is None else codec.decode(br.Estimate, found)


def of_command(
    seed: int, number: int, shape: str, size: tuple[int, int], repetition: int
) -> tuple[Interval | None, bool]:
    """Return the interval of a session, and whether a file of its readings gives the same."""
    units, most = size
    rng, clock = np.random.default_rng([seed, COMMANDS, number, repetition]), FakeClock()
    options = br.Options(target=1e-9, max_rounds=most, budget_s=math.inf)
    session = br.Session(options, (br.Metric(name="u", unit="ms"),), seed=1, clock=clock)
    record = session.run(Printing(rng, shape, units, clock))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "readings.csv")
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["start", "u"])
            for done in record.rounds:
                rows.writerows([done.plan.index, repr(u)] for u in done.unit_readings["u"].tolist())
        by_file = analysed([str(path), "--column=u", "--round=start", "--unit=ms"])
    one, two = record.estimate(), by_file
    if one is None or two is None:
        return of(one, 1.0), one is two
    return of(one, 1.0), bool(np.allclose((one.low, one.high), (two.low, two.high), rtol=1e-9))


@script.section("Commands with warm-up, in sessions and files", seed=20270116)
def commands(run: Run) -> None:
    """Print the coverage of sessions over commands, and whether files give the same."""
    run.heading("warm-up", "units, rounds", "held", "bar", "files equal")
    for number, (shape, size) in enumerate(product(SHAPES, ((50, 30), (300, 20), (1_000, 10)))):
        found = run.repeated(partial(of_command, run.seed, number, shape, size), run.runs(200, 40))
        held, name = tally(hit for hit, _ in found), f"{shape}, {size}"
        equal = float(np.mean([same for _, same in found]))
        verdict = run.judged(name, HELD, held)
        run.row(shape, size, held, verdict, run.bar(f"{name}: file", equal, "==", 1.0))


def of_outcomes(
    seed: int, number: int, case: tuple[float, float, int], repetition: int
) -> Interval | None:
    """Run a session on outcomes: each repeats the last one, or is drawn again."""
    share, correlation, budget = case
    rng = np.random.default_rng([seed, OUTCOMES, number, repetition])
    state = bool(rng.random() < share)

    def following(plan: br.RoundPlan) -> Mapping[str, Any]:
        nonlocal state
        anew = rng.random(plan.readings) >= correlation
        drawn = np.append(state, rng.random(plan.readings) < share)
        values = drawn[np.maximum.accumulate(np.where(anew, np.arange(1, anew.size + 1), 0))]
        state = bool(values[-1])
        return {"elapsed_ns": 1_000 * plan.readings, "unit_readings": {"ok": values}}

    options = br.Options(target=0.1, budget_readings=budget, budget_s=math.inf)
    session = br.Session(options, (br.Metric(name="ok"),), seed=1)
    return of(told(session, following).estimate(), share)


def of_counts(
    seed: int, number: int, case: tuple[float, float, int], repetition: int
) -> Interval | None:
    """Run a session with rounds that count successes of trials; shares of rounds may differ."""
    share, spread, most = case
    rng = np.random.default_rng([seed, COUNTS, number, repetition])

    def following(_: br.RoundPlan) -> Mapping[str, Any]:
        p = share
        if spread > 0.0:  # a beta distribution whose trials correlate by ``spread``
            p = rng.beta(share * (1.0 / spread - 1.0), (1.0 - share) * (1.0 / spread - 1.0))
        trials = int(rng.integers(500, 2_000))
        ok = rng.binomial(trials, p) / trials
        return {"elapsed_ns": 1_000, "readings": {"ok": ok}, "weights": {"ok": float(trials)}}

    options = br.Options(target=1e-9, max_rounds=most, budget_s=math.inf)
    session = br.Session(options, (br.Metric(name="ok", kind=Quantity.SHARE),), seed=1)
    return of(told(session, following).estimate(), share)


@script.section("Shares", seed=20270116)
def shares(run: Run) -> None:
    """Print the coverage of shares that stop at a tenth of the rarer one, or with their budget."""
    truths = (0.5, 0.9, 0.99, 0.999)
    outcomes = enumerate(product(truths, (0.0, 0.5), (500, 20_000, 400_000)))
    counts = enumerate(product(truths, (0.0, 0.002), (5, 20)))
    rows = [
        (f"outcomes {case}", partial(of_outcomes, run.seed, number, case), HELD)
        for number, case in outcomes
        if not run.quick or case[2] <= 20_000
    ]
    rows += [
        (f"counts {case}", partial(of_counts, run.seed, number, case), HELD)
        for number, case in counts
    ]
    run.shares(rows, run.runs(200, 40))


# --- which part of a series is stable

NEAR = 0.015


def noise_of(rng: Rng, n: int, sd: float, phi: float) -> Floats:
    """Return factors around 1, autoregressive of order 1."""
    shocks = rng.normal(0.0, sd * np.sqrt(1.0 - phi * phi), n)
    last = rng.normal(0.0, sd)
    path, _ = lfilter([1.0], [1.0, -phi], shocks, zi=[phi * last])
    return np.asarray(1.0 + path)


def outer_levels(rng: Rng, n: int, *, falls: bool) -> Floats:
    """Return one to three constant levels; three that rise to the end would be a staircase."""
    count = int(rng.integers(1, min(3, n // 12) + 1)) if n >= 12 else 1
    while True:
        drawn = np.exp(rng.uniform(np.log(0.5), np.log(4.0), count))
        away = np.abs(np.log(drawn))
        apart = min(away.min(), np.abs(np.diff(np.log(np.r_[1.0, drawn]))).min()) > 0.05
        one_sided = abs(np.sign(drawn - 1.0).sum()) == 3
        in_order = count == 3 and bool(np.all(np.diff(away) > 0.0)) and one_sided
        if apart and (falls or not in_order):
            break
    series = np.repeat(drawn, np.diff(np.linspace(0, n, count + 1).astype(int)))
    return series[::-1] if falls else series


def draw_phases(rng: Rng) -> Floats:
    """Draw a trace with a level of 1 in 55 to 90 % of it."""
    n = int(np.exp(rng.uniform(np.log(240), np.log(2_400))))
    rest = n - int(rng.uniform(0.55, 0.90) * n)
    share = (0.0, 1.0, rng.uniform(0.2, 0.8))[int(rng.integers(3))]
    first, last = int(share * rest), rest - int(share * rest)
    parts = [outer_levels(rng, first, falls=True)] if first else []
    parts += [np.ones(n - rest)]
    parts += [outer_levels(rng, last, falls=False)] if last else []
    series = np.concatenate(parts)
    return series * noise_of(rng, n, rng.uniform(0.01, 0.03), float(rng.choice([0.0, 0.4])))


def by_statistics(series: Floats) -> br.Estimate | None:
    """Estimate the mean of an array."""
    with suppress(br.NotEstimable):
        return estimate_mean(series, trim=True)
    return None


def by_file(series: Floats) -> br.Estimate | None:
    """Analyse a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "readings.txt")
        path.write_text("\n".join(map(str, series.tolist())))
        return analysed([str(path)])


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
    return br.Session(options, clock=clock, seed=1).run(steps).estimate()


def by_round(series: Floats) -> br.Estimate | None:
    """Tell a session one round of a fresh process."""
    session = br.Session(br.Options(rounds="restarted", reference=False), seed=1)
    plan = session.ask()
    assert plan is not None
    took_ns = int(series.sum() * 1e9)
    session.tell(br.Round(plan=plan, elapsed_ns=took_ns, unit_readings={"time": series}))
    return session.result().estimate()


DOORS = (by_statistics, by_file, by_generator, by_pipe, by_round)


def of_trace(seed: int, number: int) -> tuple[float, float, bool] | None:
    """Return how far an entry point is off, how wide its interval is, and whether it holds."""
    estimate = DOORS[number % len(DOORS)](
        1e-3 * draw_phases(np.random.default_rng([seed, 1, number]))
    )
    if estimate is None:
        return None
    held = estimate.low <= 1e-3 <= estimate.high
    return abs(estimate.value / 1e-3 - 1.0), estimate.half_width / 1e-3, held


@script.section("Traces with a level that holds most readings, at every entry point", seed=20261128)
def traces(run: Run) -> None:
    """Print how often the number is the level that holds most readings."""
    found = run.repeated(partial(of_trace, run.seed), run.runs(600, 60))
    near = [None if record is None else record[0] <= NEAR for record in found]
    run.share("within 1.5 %", Bar(0.95), near)
    run.share("held", Bar(0.93, 0.97), [record and record[2] for record in found])
    width = float(np.median([record[1] for record in found if record is not None]))
    run.say(f"median half-width {width:.2%}: {run.bar('half-width', width, '<=', 0.025)}")


def leak(rng: Rng) -> Floats:
    """Return a level that holds 55 to 80 %, then a rise by 20 to 100 % to the end."""
    n = int(rng.integers(400, 2_400))
    flat = int(rng.uniform(0.55, 0.80) * n)
    rise = np.linspace(1.0, 1.0 + rng.uniform(0.2, 1.0), n - flat)
    return np.asarray(np.r_[np.ones(flat), rise] * noise_of(rng, n, rng.uniform(0.01, 0.03), 0.0))


def staircase(rng: Rng) -> Floats:
    """Return a level that holds half or more, then three to six steps up."""
    n, steps = int(rng.integers(400, 2_400)), int(rng.integers(3, 7))
    flat = int(rng.uniform(0.50, 0.70) * n)
    heights = np.cumprod(np.r_[1.0, 1.0 + rng.uniform(0.04, 0.2, steps)])
    sizes = np.diff(np.linspace(flat, n, steps + 1).astype(int))
    return np.repeat(heights, np.r_[flat, sizes]) * noise_of(rng, n, rng.uniform(0.01, 0.03), 0.0)


def walk(rng: Rng) -> Floats:
    """Return a random walk of 1 % a step."""
    return np.asarray(10.0 + 0.1 * np.cumsum(rng.normal(size=int(rng.integers(400, 2_400)))))


def persistent(rng: Rng) -> Floats:
    """Return autoregressive readings with a coefficient of .9, which have a level."""
    return noise_of(rng, int(rng.integers(400, 2_400)), 0.05, 0.9)


def falls_back(rng: Rng) -> Floats:
    """Return a start-up with a compiler that falls back once."""
    return np.repeat([2.0, 1.0, 2.0, 1.0], [50, 50, 50, 850]) * noise_of(rng, 1_000, 0.02, 0.0)


def alternating(rng: Rng) -> Floats:
    """Return two paces that come and go for 50 readings or so."""
    paces, slower = np.ones(0), rng.uniform(1.2, 2.0)
    while paces.size < 2_000:
        stay = 20 + int(rng.geometric(1.0 / 60.0))
        paces = np.r_[paces, np.full(stay, 1.0 if paces.size and paces[-1] > 1.0 else slower)]
    return np.asarray(np.r_[paces * noise_of(rng, paces.size, 0.02, 0.0), paces.mean()])


OTHERS = (leak, staircase, walk, persistent, falls_back)


def of_other(seed: int, index: int, repetition: int) -> bool:
    """Return whether a trace is refused; one that falls back is to be near, without its start."""
    estimate = by_statistics(OTHERS[index](np.random.default_rng([seed, 2, index, repetition])))
    if OTHERS[index] is falls_back:
        return estimate is not None and abs(estimate.value - 1.0) <= NEAR
    return estimate is None


def of_alternating(seed: int, repetition: int) -> Interval | None:
    """Return the interval of paces that come back; the truth is their mean over time."""
    *series, truth = alternating(np.random.default_rng([seed, 3, repetition]))
    return of(by_statistics(np.array(series)), truth)


@script.section("Traces without such a level", seed=20261128)
def others(run: Run) -> None:
    """Print what becomes of traces without a level that holds most readings."""
    rows: list[tuple[str, Callable[[int], Interval | bool | None], Bar | None]] = [
        (f"refused: {shape.__name__}", partial(of_other, run.seed, index), None)
        for index, shape in enumerate(OTHERS[:-1])
    ]
    rows += [
        ("near: falls back", partial(of_other, run.seed, len(OTHERS) - 1), Bar(0.95)),
        ("held: alternating, mean over time", partial(of_alternating, run.seed), Bar(0.90)),
    ]
    run.shares(rows, run.runs(100, 30), "share")


def bursts(rng: Rng, n: int, phases: int) -> Floats:
    """Return one level, and bursts at twice that."""
    heights = np.ones(n)
    for start in rng.integers(0, n, phases):
        heights[start : start + 100] = 2.0
    return heights


PHASED: dict[str, Callable[[Rng, int, int], Floats]] = {
    "random steps": lambda rng, n, phases: np.repeat(rng.uniform(1.0, 2.0, phases), n // phases),
    "bursts": bursts,
    "ramps": lambda rng, n, phases: (
        1.0 + rng.uniform(0.5, 1.0) * np.tile(np.arange(n // phases) / (n // phases), phases)
    ),
    "alternating": lambda _, n, phases: np.tile(np.repeat([1.0, 1.3], n // phases), phases // 2),
    "a falling staircase": lambda _, n, phases: (
        1.0 + np.repeat(1.0 / (1.0 + np.arange(phases)), n // phases)
    ),
}


@script.section("How long an analysis of a million readings takes", seed=20261128)
def analyses(run: Run) -> None:
    """Print the seconds of an analysis, whatever the number of phases."""
    n = 100_000 if run.quick else 1_000_000
    run.heading("shape", "phases", "seconds", "bar")
    for (index, (name, shape)), phases in product(enumerate(PHASED.items()), (10, 1_000, 20_000)):
        rng = run.rng(4, index, phases)
        paces = shape(rng, n, phases)
        series = paces * rng.normal(1.0, 0.01, paces.size)
        start = time.perf_counter()
        by_statistics(series)
        took = time.perf_counter() - start
        run.row(name, phases, f"{took:.2f}", run.bar(f"{name}, {phases}", took, "<=", 3.0))


@script.section("What one estimate costs", seed=SEED)
def speed(run: Run) -> None:
    """Print the time of `estimate_mean`, and that over sorting the same readings."""
    slack = 2.0 if run.quick else 1.0  # a busy machine may take twice as long
    run.heading("n", "series", "trim", "ms", "over numpy.sort", "bar")
    names = ("iid normal", "AR(1) 0.9", "lognormal 1", "three phases")
    for n, name in product((1_000, 1_000_000), names):
        rng = run.rng(61, n)
        values = three_phases(rng, n) if name == "three phases" else ZOO[name].draw(rng, n)
        *ours, sort = by_turns(
            (201 if n == 1_000 else 9) // (3 if run.quick else 1),
            partial(estimate_mean, values),
            partial(estimate_mean, values, trim=True),
            partial(np.sort, values),
        )
        for trim, spent in zip((False, True), ours, strict=True):
            label, verdict = f"{name}, n = {n:,}, trim {trim}", "none"
            if n > 1_000:
                verdict = run.bar(label, spent / sort, "<=", slack * (8.0 if trim else 3.0))
            elif not trim:
                verdict = run.bar(label, spent, "<=", slack * 2e-3)
            run.row(f"{n:,}", name, trim, f"{spent * 1e3:.3g}", f"{spent / sort:.1f}", verdict)


if __name__ == "__main__":
    raise SystemExit(script.main())
