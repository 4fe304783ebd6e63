"""Simulated stages of known rate: what the estimators say of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from machine import wilson

from benchrigor.model import Code
from benchrigor.queues import ServiceRateEstimator
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.fakes import StagePeriods, SyntheticStage

__all__ = ["busy", "moments", "phases", "quantile"]

BUSY, QUANTILE, PHASES, MOMENTS, SLOW = 91, 92, 93, 94, 95
RUNS, QUICK_RUNS, ITEMS = 100, 12, 100_000
PERIOD_S = 0.032
"""32 items at the true rate of 1000 a second."""
UTILISATIONS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
QUICK_UTILISATIONS = (0.2, 0.9)
COLUMNS = ("service", "noise", "load", "within 5 %", "10 %", "off (least to most)", "covered")
SERVICES = ("exponential", "deterministic")
NOISY = {"stalled": 0.001, "stretched": 0.02, "missed": 0.01}
WITHIN_5, WITHIN_10, COVERED = 0.95, 1.0, (0.90, 0.99)
ANSWERED_WITHIN_10, MOST_REFUSED, HIGH_LOAD, WILD = 0.90, 0.15, 0.8, 0.20
SLOW_SERVICES = (
    ("lognormal", 0.5, 0.97),
    ("lognormal", 0.5, 0.99),
    ("lognormal", 0.5, 0.999),
    ("lognormal", 2.0, 0.0),
    ("pareto", 1.5, 0.0),
)
"""Service, its shape, and the correlation of neighbouring items."""
SLOW_UTILISATIONS = (0.5, 0.9, 0.99)
BOTH_FOUND, LATEST, PHASE_WITHIN = 0.95, 0.05, 0.10


class Cell(NamedTuple):
    """Conditions of a row."""

    utilisation: float
    service: str
    noisy: bool

    @property
    def stage(self) -> SyntheticStage:
        """The stage under these conditions."""
        noise = NOISY if self.noisy else {}
        return SyntheticStage(utilisation=self.utilisation, service=self.service, **noise)

    def names(self) -> tuple[str, str, str]:
        """Return the first cells of the row."""
        return self.service, "noisy" if self.noisy else "clean", f"{self.utilisation:g}"


class Answer(NamedTuple):
    """One rate: how far off, relative, whether its interval holds the truth, how wide that is."""

    off: float
    holds: bool
    half_width: float


class Run(NamedTuple):
    """What came of a run: rates that converged, and the best of those that did not."""

    answers: tuple[Answer, ...]
    doubtful: Answer | None


class Steady(NamedTuple):
    """What came of a run without a change, whose service wanders slowly or has a heavy tail."""

    ended: int
    last: Answer | None
    converged: bool
    restless: bool


class Halved(NamedTuple):
    """What came of a run whose rate halves: whether each phase was found, and how many were."""

    first: bool
    soon: bool
    second: bool
    phases: int


def cells(setting: Setting, least: float = 0.0) -> list[Cell]:
    """Return the rows of a section."""
    loads = QUICK_UTILISATIONS if setting.quick else UTILISATIONS
    return [
        Cell(load, service, noisy)
        for service, noisy, load in product(SERVICES, (False, True), loads)
        if load >= least
    ]


def told(est: ServiceRateEstimator, seen: StagePeriods, start: int = 0, stop: int = -1) -> None:
    """Tell an estimator of periods from ``start`` to before ``stop``.

    The quantile method learns no more than it asks for: whether the stage waited at all.
    """
    part = slice(start, len(seen.items) if stop < 0 else stop)
    blocked_s = seen.blocked_s[part]
    known_s = blocked_s if est.method == "busy-time" else 0.0
    est.tell_many(seen.items[part], seen.period_s[part], known_s, blocked_s > 0.0)


def answer(rate: ServiceRate, truth: float) -> Answer | None:
    """Compare a rate with the truth."""
    found = rate.estimate
    if found is None:
        return None
    holds = found.low <= truth <= found.high
    return Answer(found.value / truth - 1.0, holds, found.relative_half_width)


def watched(key: Sequence[int], cell: Cell, method: str, guards: bool, run: int) -> Run:
    """Do one run of one phase."""
    rng = np.random.default_rng([*key, run])
    est = ServiceRateEstimator(method, guards=guards)
    told(est, cell.stage.watch(ITEMS, period_s=PERIOD_S, rng=rng))
    truth = cell.stage.true_rate
    found = [(rate.converged, answer(rate, truth)) for rate in est.rates]
    return Run(
        answers=tuple(each for converged, each in found if converged and each is not None),
        doubtful=found[-1][1] if found and not found[-1][0] else None,
    )


def halved(key: Sequence[int], cell: Cell, run: int) -> Halved:
    """Do one run whose rate halves midway."""
    rng = np.random.default_rng([*key, run])
    stage = cell.stage
    seen = SyntheticStage(
        utilisation=stage.utilisation,
        service=stage.service,
        later=0.5,
        stalled=stage.stalled,
        stretched=stage.stretched,
        missed=stage.missed,
    ).watch(ITEMS, period_s=PERIOD_S, rng=rng)
    assert seen.changed is not None
    latest = seen.changed + int(LATEST * len(seen.items))
    truths = stage.true_rate, stage.true_rate / 2.0
    est = ServiceRateEstimator()
    told(est, seen, 0, latest)
    soon = near(est.rates[-1], truths[1])
    told(est, seen, latest)
    rates = est.rates
    return Halved(near(rates[0], truths[0]), soon, near(rates[-1], truths[1]), len(rates))


def steady(key: Sequence[int], stage: SyntheticStage, run: int) -> Steady:
    """Do one run without a change."""
    rng = np.random.default_rng([*key, run])
    est = ServiceRateEstimator()
    told(est, stage.watch(ITEMS, period_s=PERIOD_S, rng=rng))
    last = est.rates[-1]
    return Steady(
        ended=len(est.rates) - 1,
        last=answer(last, stage.true_rate),
        converged=last.converged,
        restless=any(each.code is Code.RESTLESS_RATE for each in last.notices),
    )


def near(rate: ServiceRate, truth: float) -> bool:
    """Tell whether a rate is that of a phase."""
    found = answer(rate, truth)
    return found is not None and abs(found.off) <= PHASE_WITHIN


def share_within(found: Sequence[Answer], most: float) -> float:
    """Return the share of answers that are off by no more."""
    return float(np.mean([abs(each.off) <= most for each in found])) if found else float("nan")


def shown(found: Sequence[Answer]) -> tuple[str, ...]:
    """Format errors of answers."""
    if not found:
        return ("-",) * 4
    off = np.array([each.off for each in found])
    held = sum(each.holds for each in found)
    low, high = wilson(held, len(found))
    return (
        f"{share_within(found, 0.05):.1%}",
        f"{share_within(found, 0.10):.1%}",
        f"{off.mean():+.2%} ({off.min():+.1%} to {off.max():+.1%})",
        f"{held / len(found):.3f} [{low:.3f}, {high:.3f}] "
        f"({np.mean([each.half_width for each in found]):.2%})",
    )


def busy(setting: Setting) -> None:
    """Print how the default estimator does: of each run, its last rate."""
    runs = setting.runs(RUNS, QUICK_RUNS)
    print(f"{runs} runs a row of {ITEMS:,} items, periods of 32 service times. A run without a")
    print("converged rate is a miss. Covered: share of runs whose 95 % interval holds the truth,")
    print("and mean half-width. Further phases are false ones.\n")
    heading([*COLUMNS, "refused", "further phases", "within: bar", "covered: bar"])
    everything: list[Answer] = []
    for number, cell in enumerate(cells(setting)):
        key = (setting.seed, BUSY, number)
        found = setting.repeated(partial(watched, key, cell, "busy-time", True), runs)
        last = [each.answers[-1] for each in found if each.answers]
        everything += last
        refused = runs - len(last)
        good = (
            not refused
            and share_within(last, 0.05) >= WITHIN_5
            and share_within(last, 0.10) >= WITHIN_10
        )
        name = " ".join(cell.names())
        row(
            *cell.names(),
            *shown(last),
            refused,
            sum(len(each.answers) - 1 for each in found),
            setting.verdict(f"busy time, {name}", good),
            _covered(setting, name, cell, last),
        )
    _pooled(setting, everything)


def _covered(setting: Setting, name: str, cell: Cell, found: Sequence[Answer]) -> str:
    """Judge the coverage of a row; service without any noise has no interval to be judged by."""
    if cell.service == "deterministic" and not cell.noisy:
        return "none: no noise"
    low, high = wilson(sum(each.holds for each in found), len(found), setting.z)
    met = high >= COVERED[0] and low <= COVERED[1]
    return setting.verdict(f"coverage, {name}", met)


def _pooled(setting: Setting, found: Sequence[Answer]) -> None:
    share = float(np.mean([each.holds for each in found]))
    met = COVERED[0] <= share <= COVERED[1]
    print(f"\nAll rows: {share:.3f} covered: {setting.verdict('coverage of all rows', met)}")


def quantile(setting: Setting) -> None:
    """Print how the quantile method does, with guards and as published."""
    runs = setting.runs(RUNS, QUICK_RUNS)
    print(
        f"{runs} runs a row of {ITEMS:,} items, told in periods of 32 service times, which guards"
    )
    print(
        "join, with no more than a flag where the stage waited. Every converged rate is an answer;"
    )
    print("a run without one is refused.\n")
    for guards in (True,) if setting.quick else (True, False):
        print(f"\nguards={guards}\n")
        heading([*COLUMNS, "answers", "refused", "off by > 20 %"])
        answers, refused, wild = [], [], 0
        for number, cell in enumerate(cells(setting)):
            key = (setting.seed, QUANTILE, number)
            found = setting.repeated(partial(watched, key, cell, "quantile", guards), runs)
            given = [each for run in found for each in run.answers]
            without = sum(not each.answers for each in found)
            far = sum(abs(each.off) > WILD for each in given)
            wild += far
            if cell.utilisation >= HIGH_LOAD:
                answers += given
                refused.append(without / runs)
            row(*cell.names(), *shown(given), len(given), f"{without / runs:.0%}", far)
        good, none = share_within(answers, 0.10), float(np.mean(refused))
        verdicts = ("", "", "")
        if guards:
            verdicts = (
                f": {setting.verdict('quantile, within 10 %', good >= ANSWERED_WITHIN_10)}",
                f": {setting.verdict('quantile, refusals', none <= MOST_REFUSED)}",
                f": {setting.verdict('quantile, no wild answer', not wild)}",
            )
        print(
            f"\nFrom a load of {HIGH_LOAD:g} on, {good:.1%} of the answers within 10 %{verdicts[0]}"
        )
        print(f"and {none:.1%} of the runs refused{verdicts[1]}; at any load {wild} converged")
        print(f"answers off by more than 20 %{verdicts[2]}.")


def phases(setting: Setting) -> None:
    """Print whether both rates of a run are found, and how soon the second one is."""
    runs = setting.runs(RUNS, QUICK_RUNS)
    print(f"{runs} runs a row of {ITEMS:,} items; rate and arrivals halve midway. Soon: the last")
    print(
        f"rate when {LATEST:.0%} of the run's periods have passed since. Found: within 10 %. Three"
    )
    print("phases and more are false ones.\n")
    heading(["service", "noise", "load", "first", "second soon", "second", "3 phases", "bar"])
    for number, cell in enumerate(cells(setting, 0.5)):
        found = setting.repeated(partial(halved, (setting.seed, PHASES, number), cell), runs)
        both = sum(each.first and each.soon and each.second for each in found)
        reached = wilson(both, runs, setting.z)[1] if setting.quick else both / runs
        shares = [np.mean([each[place] for each in found]) for place in range(3)]
        row(
            *cell.names(),
            *(f"{each:.0%}" for each in shares),
            sum(each.phases > 2 for each in found),
            setting.verdict(f"phases, {' '.join(cell.names())}", reached >= BOTH_FOUND),
        )
    _false_phases(setting, runs)


def _false_phases(setting: Setting, runs: int) -> None:
    """Print how many phases are found where none changes: for information, there is no bar."""
    print("\nNothing changes, but service times are correlated from item to item, or have a heavy")
    print("tail. Off and covered: the last rate of each run, converged or not. Restless: the runs")
    print("whose last rate says so. The truth is the rate in the long run.\n")
    heading(
        [
            *("service", "shape", "correlation", "load", "runs with false phases", "mean", "most"),
            *("converged", "within 5 %", "10 %", "off (least to most)", "covered", "restless"),
        ]
    )
    loads = QUICK_UTILISATIONS[1:] if setting.quick else SLOW_UTILISATIONS
    for number, (kind, load) in enumerate(product(SLOW_SERVICES, loads)):
        service, shape, correlation = kind
        stage = SyntheticStage(
            utilisation=load, service=service, shape=shape, correlation=correlation
        )
        found = setting.repeated(partial(steady, (setting.seed, SLOW, number), stage), runs)
        ended = [each.ended for each in found]
        row(
            service,
            f"{shape:g}",
            f"{correlation:g}",
            f"{load:g}",
            f"{np.mean(np.array(ended) > 0):.0%}",
            f"{np.mean(ended):.2f}",
            max(ended),
            f"{np.mean([each.converged for each in found]):.0%}",
            *shown([each.last for each in found if each.last is not None]),
            sum(each.restless for each in found),
        )


def moments(setting: Setting) -> None:
    """Print what is learned of the service time: for information, there is no bar."""
    runs = setting.runs(RUNS, QUICK_RUNS)
    print("Squared coefficient of variation and skewness of service times, from counts; medians of")
    print(f"{runs} runs of {ITEMS:,} items. In truth: exponential 1 and 2; deterministic 0; with")
    print("stalls 1.73 and 20.7, and 0.77 and 67. Of stalls that last longer than the stretches of")
    print("64 items that are looked at, only a part shows.\n")
    heading(["service", "noise", "load", "variation", "skewness", "said to be"])
    for number, cell in enumerate(cells(setting)):
        key = (setting.seed, MOMENTS, number)
        found = setting.repeated(partial(learned, key, cell), runs)
        names = [each[2] for each in found]
        usual = max(set(names), key=names.count)
        row(
            *cell.names(),
            f"{np.median([each[0] for each in found]):.2f}",
            f"{np.median([each[1] for each in found]):.2f}",
            f"{usual} ({names.count(usual) / runs:.0%})",
        )


def learned(key: Sequence[int], cell: Cell, run: int) -> tuple[float, float, str]:
    """Return variation, skewness and hint of one run."""
    est = ServiceRateEstimator()
    rng = np.random.default_rng([*key, run])
    told(est, cell.stage.watch(ITEMS, period_s=PERIOD_S, rng=rng))
    found = est.rates[-1].moments
    assert found is not None
    skewness = found.third_s3 / found.variance_s2**1.5 if found.variation > 0.01 else 0.0
    return found.variation, skewness, str(found.process)
