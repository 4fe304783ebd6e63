"""What comparisons of pairs say of the same code, of exchanged sides, and of 15% more.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/paired.py [--quick] [--seed N]

Readings have lognormal noise of 5%; 12% of them are slow by a factor, each by itself or both of a
pair. Printed per row: false BETTER and WORSE of the same code and of exchanged sides, those of two
samples (not paired), verdicts or p-values that exchanging does not mirror or that contradict each
other, power for 15% more beside a t test of the log ratios, how often the Notice says that few
pairs carry the interval, and how often 15% are found by it or by the median ratio in that Notice.

``bound`` is the variance of log ratios over that of (candidate - R baseline) / mean baseline. The
latter is the influence function of a ratio of means: no regular estimator of it has less variance
unless it assumes how both distributions are related (Hahn 1998; van der Vaart 1998, chapter 25).
Where ``bound`` is below 1 the mean of log ratios, which is another quantity, is known better from
the same data. The bar on power holds where it is at least .95.

Bars: false verdicts 3.5% each over the rows of a size n, in each row within chance of that; all
mirrored, none contradicts; power. Every draw is default_rng([seed, row, repetition]).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from machine import describe
from scipy import stats

from benchrigor.model import Code, Comparison, Floats, Verdict
from benchrigor.stats import compare

SEED = 20340417
SIZES, FACTORS, MARGINS = (15, 41, 200, 400), (1.5, 3.0, 10.0), (0.0, 0.01)
SLOW, NOISE, PLANTED = 0.12, 0.05, 1.15
MOST_FALSE, ENOUGH, CLEARLY = 0.035, 0.95, 3.0
MIRRORED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


@dataclass(kw_only=True)
class Tally:
    """What was counted of a row, by margin."""

    better: list[int] = field(default_factory=lambda: [0, 0])
    worse: list[int] = field(default_factory=lambda: [0, 0])
    unpaired: int = 0
    amiss: int = 0
    power: list[int] = field(default_factory=lambda: [0, 0])
    by_logs: list[int] = field(default_factory=lambda: [0, 0])
    noticed: int = 0
    by_either: int = 0


def draw(rng: np.random.Generator, n: int, factor: float, *, common: bool) -> tuple[Floats, Floats]:
    """Draw pairs of the same code."""
    slow = [np.where(rng.random(n) < SLOW, factor, 1.0) for _ in range(2)]
    one, two = (rng.lognormal(0.0, NOISE, n) * slow[0 if common else side] for side in (0, 1))
    return one, two


def is_mirror(one: Comparison, other: Comparison) -> bool:
    """Whether a comparison is that of exchanged sides."""
    if one.ratio is None or other.ratio is None:
        return False
    ends = (one.ratio.low, one.ratio.value, 1.0 / one.ratio.high)
    back = (1.0 / other.ratio.high, 1.0 / other.ratio.value, other.ratio.low)
    alike = np.allclose(ends, back, rtol=1e-9, atol=0.0)
    alike &= math.isclose(one.p_value or 0.0, other.p_value or 0.0, rel_tol=1e-6, abs_tol=1e-12)
    return bool(alike) and MIRRORED.get(one.verdict, one.verdict) is other.verdict


def contradicts(found: Comparison) -> bool:
    """Whether a verdict without a margin and its p-value disagree."""
    is_decided = found.verdict in MIRRORED
    return is_decided != ((found.p_value or 0.0) <= 0.05)


def logs_find(baseline: Floats, candidate: Floats, margin: float) -> bool:
    """Whether a t test of the log ratios finds more than the margin, at the same level."""
    logs = np.log(candidate / baseline)
    found = stats.ttest_1samp(logs, math.log1p(margin))
    return bool(found.pvalue <= 0.05 and found.statistic > 0.0)


def is_worse(found: Comparison, margin: float) -> bool:
    """Whether the whole interval lies above a margin, of a comparison without one."""
    return found.verdict is Verdict.WORSE and bool(found.ratio and found.ratio.low > 1.0 + margin)


def count(tally: Tally, baseline: Floats, candidate: Floats) -> None:
    """Compare a draw both ways, and with more work planted in the candidate."""
    more = PLANTED * candidate
    found, back = (
        compare(*sides, paired=True, margin=0.0)
        for sides in ((baseline, candidate), (candidate, baseline))
    )
    planted = compare(baseline, more, paired=True, margin=0.0)
    tally.amiss += not is_mirror(found, back) or contradicts(found) or contradicts(planted)
    for index, margin in enumerate(MARGINS):
        tally.worse[index] += is_worse(found, margin)
        tally.better[index] += is_worse(back, margin)
        tally.power[index] += is_worse(planted, margin)
        tally.by_logs[index] += logs_find(baseline, more, margin)
    alone = compare(baseline, candidate, margin=0.0)
    tally.unpaired += alone.verdict in MIRRORED
    tally.amiss += contradicts(alone)
    tally.noticed += Code.FEW_PAIRS_CARRY in {notice.code for notice in planted.notices}
    median = planted.median_ratio
    tally.by_either += is_worse(planted, 0.0) or (median is not None and median.low > 1.0)


def bound_of(factor: float, *, common: bool) -> float:
    """Return the variance of log ratios over that of the influence function of their ratio."""
    one, two = draw(np.random.default_rng(SEED), 400_000, factor, common=common)
    return float(np.log(two / one).var() / ((two - one) / one.mean()).var())


def main() -> int:
    """Print all rows, and return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="15 repetitions of the small sizes")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    repetitions, sizes = (15, SIZES[:2]) if options.quick else (400, SIZES)
    print(describe())
    print(f"seed {options.seed}, {repetitions} repetitions a row; margins {MARGINS}")
    print(
        "   n  slow       false better     worse  unpaired  amiss       power      of logs  bound"
        "  noticed  found by either"
    )
    missed: list[str] = []
    bounds = {
        (factor, common): bound_of(factor, common=common)
        for factor, common in product(FACTORS, (False, True))
    }
    for n in sizes:
        false = np.zeros((2, len(MARGINS)))
        for row, ((factor, common), bound) in enumerate(bounds.items()):
            tally = Tally()
            for repetition in range(repetitions):
                rng = np.random.default_rng([options.seed, n, row, repetition])
                count(tally, *draw(rng, n, factor, common=common))
            false += np.array([tally.better, tally.worse]) / repetitions / len(bounds)
            missed += print_row(n, factor, tally, repetitions, common=common, bound=bound)
        shown = ", ".join(f"{share:.3f}" for share in false.ravel())
        is_met = bool((false <= MOST_FALSE).all()) or options.quick
        print(f"{n:4}  all: false better, worse by margin: {shown}{'' if is_met else ': MISSED'}")
        missed += [] if is_met else [f"false verdicts, n = {n}"]
    print(f"{len(missed)} missed{': ' if missed else '.'}{'; '.join(missed)}")
    return 1 if missed else 0


def print_row(
    n: int, factor: float, tally: Tally, repetitions: int, *, common: bool, bound: float
) -> list[str]:
    """Print a row, and return the bars that it misses."""

    def shares(counts: list[int]) -> str:
        return " ".join(f"{number / repetitions:5.3f}" for number in counts)

    kind = "pairs" if common else "each"
    print(
        f"{n:4}  x{factor:<4g} {kind:5} {shares(tally.better)} {shares(tally.worse)}     "
        f"{tally.unpaired / repetitions:.3f}  {tally.amiss:5} {shares(tally.power)} "
        f" {shares(tally.by_logs)}  {bound:5.2f}    {tally.noticed / repetitions:5.3f}"
        f"  {tally.by_either / repetitions:15.3f}",
        flush=True,
    )
    name, missed = f"n = {n}, x{factor:g} {kind}", []
    chance = MOST_FALSE + CLEARLY * math.sqrt(MOST_FALSE * (1.0 - MOST_FALSE) / repetitions)
    if max(*tally.better, *tally.worse) > chance * repetitions:
        missed.append(f"false verdicts, {name}")
    if tally.amiss:
        missed.append(f"mirror or p-value, {name}")
    # Of a few hundred repetitions the power is known within one or two in a hundred.
    least = [logs - 0.02 * repetitions for logs in tally.by_logs]
    if bound >= ENOUGH and any(map(float.__lt__, map(float, tally.power), least)):
        missed.append(f"power, {name}")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
