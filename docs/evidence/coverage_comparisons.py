"""What comparisons say of identical code, and of a true change, beside pyperf's rule.

Each side is ten starts of 200 readings; the spread between starts is that of their true levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import coverage_rivals as rivals
import numpy as np
from coverage_invocations import Program
from coverage_tables import Setting, heading, row
from machine import wilson

import benchrigor as br
from benchrigor.model import Verdict
from benchrigor.stats.comparison.two_sample import compare

__all__ = ["comparisons"]

SAME, CHANGED, ALIKE, SINGLE = 51, 52, 53, 54
COUNT, READINGS = 10, 200
SPREADS, PHIS = (0.0, 0.01, 0.03), (0.0, 0.5, 0.9)
FALSE_VERDICTS, POWER = 0.05, 0.90
CHANGE, CHANGED_SD, ALIKE_SD = 1.03, 0.012, 0.002
STATISTICS = ("mean", "median")


class Said(NamedTuple):
    """What was said of one pair."""

    classical: Verdict | None
    """With a margin of 0; None when it is refused."""
    margin: Verdict | None
    """With the default margin of 1 %."""
    significant: bool
    """By pyperf."""


def _verdict(
    baseline: Sequence[rivals.Floats] | rivals.Floats,
    candidate: Sequence[rivals.Floats] | rivals.Floats,
    statistic: str,
    margin: float,
) -> Verdict | None:
    try:
        return compare(baseline, candidate, statistic=statistic, margin=margin).verdict
    except br.NotEstimable:
        return None


def said(baseline: list[rivals.Floats], candidate: list[rivals.Floats], statistic: str) -> Said:
    """Compare by all rules."""
    return Said(
        _verdict(baseline, candidate, statistic, 0.0),
        _verdict(baseline, candidate, statistic, 0.01),
        rivals.pooled_test(baseline, candidate),
    )


class Design(NamedTuple):
    """How a pair is drawn."""

    section: int
    number: int
    program: Program
    ratio: float = 1.0
    counts: tuple[int, int] = (COUNT, COUNT)
    statistic: str = "mean"


def compared(seed: int, design: Design, repetition: int) -> Said:
    """Draw one pair and compare it."""
    rng = np.random.default_rng([seed, design.section, design.number, repetition])
    baseline, candidate = (design.program.draw(rng, each, READINGS) for each in design.counts)
    return said(baseline, [design.ratio * each for each in candidate], design.statistic)


def single(seed: int, number: int, phi: float, repetition: int) -> tuple[Verdict | None, bool]:
    """Compare one series of 1000 readings with another of the same process."""
    rng = np.random.default_rng([seed, SINGLE, number, repetition])
    one, two = Program(phi=phi).draw(rng, 2, 1_000)
    return _verdict(one, two, "mean", 0.0), rivals.pooled_test([one], [two])


def _changes(verdicts: Sequence[Verdict | None]) -> int:
    return sum(each in (Verdict.BETTER, Verdict.WORSE) for each in verdicts)


def _share(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{hits / trials:.3f} [{low:.3f}, {high:.3f}]"


def comparisons(setting: Setting) -> None:
    """Print false verdicts, then power and equivalence."""
    runs = setting.runs(1_000, 100)
    print(f"{runs} pairs a row. False verdicts on identical code, bar {FALSE_VERDICTS:.0%}:\n")
    heading(
        ["starts", "spread", "AR(1)", "statistic", "margin 0", "bar", "margin 1%", "bar", "pyperf"]
    )
    designs = [
        Design(SAME, 3 * i + j, Program(spread=spread, phi=phi), statistic=statistic)
        for i, spread in enumerate(SPREADS)
        for j, phi in enumerate(PHIS)
        for statistic in STATISTICS
    ]
    if setting.quick:
        designs = [designs[0], designs[-2]]
    designs.append(Design(SAME, 9, Program(spread=0.01), counts=(COUNT, COUNT - 1)))
    for design in designs:
        _false_verdicts(
            setting, design, setting.repeated(partial(compared, setting.seed, design), runs)
        )
    print("\nOne series of 1000 readings a side, margin 0:\n")
    heading(["AR(1)", "false verdicts", "bar", "pyperf"])
    for number, phi in enumerate(PHIS):
        pairs = setting.repeated(partial(single, setting.seed, number, phi), runs)
        hits = _changes([each[0] for each in pairs])
        verdict = setting.at_most(f"A/A of single series, {phi}", FALSE_VERDICTS, hits, runs)
        row(phi, _share(hits, runs), verdict, _share(sum(each[1] for each in pairs), runs))
    print(f"\nFound, margin 1%, bar {POWER:.0%}:\n")
    heading(["pair", "looked for", "found", "bar", "pyperf: changed"])
    _found(setting, runs)


def _false_verdicts(setting: Setting, design: Design, pairs: list[Said]) -> None:
    program, cells = design.program, []
    label = f"A/A {design.counts}, {program.spread}, {program.phi}, {design.statistic}"
    for margin, verdicts in (
        (0, [each.classical for each in pairs]),
        (1, [each.margin for each in pairs]),
    ):
        hits = _changes(verdicts)
        verdict = setting.at_most(f"{label}, margin {margin}%", FALSE_VERDICTS, hits, len(pairs))
        cells += [_share(hits, len(pairs)), verdict]
    row(
        " + ".join(map(str, design.counts)),
        f"{program.spread:.0%}",
        program.phi,
        design.statistic,
        *cells,
        _share(sum(each.significant for each in pairs), len(pairs))
        if design.statistic == "mean"
        else "-",
    )


def spread_for(total: float, cv: float, phi: float) -> float:
    """Return the spread of levels with which means of starts have that standard deviation."""
    within = cv**2 * (1.0 + phi) / (1.0 - phi) / READINGS
    return math.sqrt(total**2 - within)


def _found(setting: Setting, runs: int) -> None:
    cv, phi = 0.05, 0.5
    slower = Design(
        CHANGED, 0, Program(spread=spread_for(CHANGED_SD, cv, phi), phi=phi, cv=cv), ratio=CHANGE
    )
    alike = Design(ALIKE, 0, Program(spread=spread_for(ALIKE_SD, 0.01, phi), phi=phi, cv=0.01))
    for label, design, wanted in (
        (f"3% slower, means of starts vary by {CHANGED_SD:.1%}", slower, Verdict.WORSE),
        (f"identical, means of starts vary by {ALIKE_SD:.1%}", alike, Verdict.EQUIVALENT),
    ):
        pairs = setting.repeated(partial(compared, setting.seed, design), runs)
        hits = sum(each.margin == wanted for each in pairs)
        met = wilson(hits, runs, setting.z)[1] >= POWER
        changed = sum(each.significant for each in pairs) / runs
        row(label, wanted, _share(hits, runs), setting.verdict(label, met), f"{changed:.3f}")
