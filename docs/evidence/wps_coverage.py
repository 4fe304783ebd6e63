"""Whether the speed that a session finds by work and duration is right: coverage, width, bias.

All three sections judge the same sessions, asked and told, that end when 40 rounds count.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Interval, Setting, Tally, heading, row, tally
from wps_processes import (
    CASES,
    NOISES,
    SPEED,
    Ran,
    estimate_of,
    naive,
    plain,
    session,
    through_origin,
)

import benchrigor as br
from benchrigor.model import Code
from benchrigor.stats import fit_wps

__all__ = ["Outcome", "bias", "coverage", "outcomes", "width"]

SESSIONS = 71
RUNS, QUICK_RUNS = 600, 30
LOOKS = (10, 15, 20, 40)
BAR = Bar(0.92)
WIDEST = 1.2
MOST_BIASED = 0.005
QUICK = [
    ("overhead 5 %", "additive"),
    ("overhead 5 %", "AR(1) 0.7 multiplicative"),
    ("overhead 30 %, range ends", "additive"),
]
INDEPENDENT = ("additive", "multiplicative", "skewed", "fanning")
PUBLISHED = {"overhead 5 %": "3.75 %", "overhead 30 %, range ends": "22 %"}
"""By how much a line through the origin was said to be off."""
PAIRS = [(case, noise) for case in CASES for noise in NOISES]


class Outcome(NamedTuple):
    """What is kept of one session, relative to the truth."""

    looks: tuple[Interval | None, ...]
    plain: Interval | None
    naive: Interval
    weighted: Interval | None
    robust: Interval | None
    speed: float
    origin: float
    total: float
    share: float
    """Overhead of the mean round."""
    bent: bool
    shape: str | None


def refitted(ran: Ran, estimator: str) -> Interval | None:
    """Fit the same rounds in another way."""
    try:
        return estimate_of(fit_wps(ran.work, ran.duration_s, estimator=estimator).speed)
    except br.NotEstimable:
        return None


def outcome(seed: int, case: str, noise: str, repetition: int) -> Outcome:
    """Run one session, and do other arithmetic on its rounds."""
    rng = np.random.default_rng([seed, SESSIONS, PAIRS.index((case, noise)), repetition])
    ran = session(CASES[case], noise, rng, looks=LOOKS)
    found, fit = ran.analysis.estimate, ran.analysis.wps
    return Outcome(
        looks=tuple(estimate_of(ran.early.get(look)) for look in LOOKS),
        plain=plain(ran.work, ran.duration_s),
        naive=naive(ran.work, ran.duration_s),
        weighted=refitted(ran, "weighted"),
        robust=refitted(ran, "robust"),
        speed=math.nan if found is None else found.value / SPEED,
        origin=through_origin(ran.work, ran.duration_s) / SPEED,
        total=float(ran.work.sum() / ran.duration_s.sum()) / SPEED,
        share=CASES[case].overhead_s / float(ran.duration_s.mean()),
        bent=any(notice.code is Code.NOT_LINEAR for notice in ran.analysis.notices),
        shape=None if fit is None else fit.shape,
    )


_known: dict[tuple[str, str], list[Outcome]] = {}


def outcomes(setting: Setting, case: str, noise: str) -> list[Outcome]:
    """Return the sessions of a row, the same in every section."""
    if (case, noise) not in _known:
        runs = setting.runs(RUNS, QUICK_RUNS)
        run = partial(outcome, setting.seed, case, noise)
        _known[case, noise] = setting.repeated(run, runs)
    return _known[case, noise]


def chosen(setting: Setting) -> list[tuple[str, str]]:
    """Return the rows; an overhead that is none does not drift."""
    drift = ("no overhead", "drifting overhead")
    return QUICK if setting.quick else [each for each in PAIRS if each != drift]


def coverage(setting: Setting) -> None:
    """Print one table per workload."""
    runs = setting.runs(RUNS, QUICK_RUNS)
    print(f"{runs} sessions a row, until 40 rounds count (amounts that were too small do not);")
    print("in brackets the half-width in % of the truth. Beside, on the same rounds: least squares")
    print("with Student t, the mean work per second of the rounds, and `fit_wps` in other ways;")
    print("then what the session said at fewer rounds.")
    rows = chosen(setting)
    for case in dict.fromkeys(case for case, _ in rows):
        noises = [noise for each, noise in rows if each == case]
        shares = [each.share for each in outcomes(setting, case, noises[0])]
        print(f"\n{case} ({np.mean(shares):.1%} of the mean round):\n")
        others = ["plain", "naive", "weighted", "robust", *(f"at {look}" for look in LOOKS[:-1])]
        heading(["noise", "session", "bar", *others])
        for noise in noises:
            found = outcomes(setting, case, noise)
            *early, last = (
                tally(each) for each in zip(*(each.looks for each in found), strict=True)
            )
            row(
                noise,
                last.cell(wilson_too=True),
                setting.judged(f"{case}, {noise}", BAR, last),
                *(each.cell() for each in rivals(found)),
                *(each.cell() for each in early),
            )


def rivals(found: list[Outcome]) -> tuple[Tally, ...]:
    """Count the intervals of other arithmetic."""
    return (
        tally(each.plain for each in found),
        tally(each.naive for each in found),
        tally(each.weighted for each in found),
        tally(each.robust for each in found),
    )


def width(setting: Setting) -> None:
    """Print how much wider the intervals are than those of plain least squares."""
    print("Mean half-width in % of the truth, of sessions where both have one.\n")
    heading(["workload", "independent noise", "session", "plain", "ratio", "bar"])
    for case, noise in chosen(setting):
        if noise not in INDEPENDENT:
            continue
        pairs = [(each.looks[-1], each.plain) for each in outcomes(setting, case, noise)]
        both = [(ours.half_width, theirs.half_width) for ours, theirs in pairs if ours and theirs]
        ours, theirs = np.mean(both, axis=0)
        verdict = "none"
        if noise == "additive":  # of unequal size or skewed, noise is not what plain widths are for
            met = bool(ours <= WIDEST * theirs)
            verdict = f"<= {WIDEST}: {setting.verdict(f'{case}, {noise}, width', met)}"
        row(case, noise, f"{ours:.2%}", f"{theirs:.2%}", f"{ours / theirs:.3f}", verdict)


def bias(setting: Setting) -> None:
    """Print by how much the speed is off in the mean, and what other arithmetic makes of it."""
    print(
        "Mean of estimate over truth, minus 1, and its standard error. Beside: a line through the"
    )
    print("origin, and all work over all time. Bar where the overhead is a fixed one.\n")
    heading(["workload", "noise", "session", "bar", "through the origin", "published", "all / all"])
    for case, noise in chosen(setting):
        if case == "no overhead":
            continue
        found = outcomes(setting, case, noise)
        speeds = np.array([each.speed for each in found])
        speeds = speeds[np.isfinite(speeds)] - 1.0
        off, error = float(speeds.mean()), float(speeds.std(ddof=1)) / math.sqrt(speeds.size)
        verdict = "none"
        if noise != "drifting overhead":
            met = abs(off) - setting.z * error < MOST_BIASED
            verdict = f"below {MOST_BIASED:.1%}: {setting.verdict(f'{case}, {noise}, bias', met)}"
        row(
            case,
            noise,
            f"{off:+.2%} ({error:.2%})",
            verdict,
            f"{np.mean([each.origin for each in found]) - 1.0:+.1%}",
            PUBLISHED.get(case, ""),
            f"{np.mean([each.total for each in found]) - 1.0:+.1%}",
        )
