"""What a fit costs beside a bare one, what telling costs a round, and what has to be loaded."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from coverage_speed import by_turns
from coverage_tables import Setting, heading, row
from imports import cpu_seconds
from statsmodels.regression.linear_model import OLS  # type: ignore[import-untyped]
from wps_processes import CASES, Floats, bisecting, noisy

import benchrigor as br
from benchrigor.stats import fit_wps

__all__ = ["speed"]

SPEED = 76
CALLS = {40: 101, 1_000: 9}
TOLD = (40, 200)
ROUND_S, MOST = 1.0, 0.02
STARTS = 5
CASE = CASES["overhead 5 %, given range"]
PLAIN = "import benchrigor.session, scipy.special"
FULL = """
from benchrigor import Options, Round, Session
session = Session(Options(analysis="wps", work=(1.0, 2.0), budget_s=60.0), seed=1)
for _ in range(5):
    plan = session.ask()
    session.tell(Round(plan=plan, elapsed_ns=int(1e9 * plan.work), readings={}))
"""


def bare(work: Floats, duration_s: Floats) -> object:
    """Fit a line with HC3 errors, and nothing else."""
    design = np.column_stack([np.ones(work.size), work])
    return OLS(duration_s, design).fit(cov_type="HC3").conf_int()


def telling(seed: int, rounds: int) -> tuple[float, float]:
    """Return mean and longest time inside ``tell``, over all rounds of a session, in seconds."""
    rng = np.random.default_rng([seed, SPEED, rounds])
    options = br.Options(
        analysis="wps", work=CASE.work, target=1e-12, budget_s=math.inf, max_rounds=rounds
    )
    session = br.Session(options, seed=seed)
    inside = []
    while (plan := session.ask()) is not None:
        assert plan.work is not None
        duration = CASE.duration("additive", plan.index, plan.work, rng.standard_normal())
        told = br.Round(plan=plan, elapsed_ns=int(1e9 * duration), readings={"time": duration})
        start = time.perf_counter()
        session.tell(told)
        inside.append(time.perf_counter() - start)
    return float(np.mean(inside)), max(inside)


def speed(setting: Setting) -> None:
    """Print the three."""
    # A busy machine may take twice as long: quick runs tell a change of order only.
    slack = 2.0 if setting.quick else 1.0
    print("Least of several calls by turns; bare: OLS of statsmodels with HC3.\n")
    heading(["rounds", "fit_wps", "bare", "ratio"])
    for n, calls in CALLS.items():
        work = 2.0 * bisecting(n)
        duration_s = noisy(CASE, "additive", np.random.default_rng([setting.seed, SPEED]), work)
        turns = max(3, calls // (4 if setting.quick else 1))
        ours, theirs = by_turns(
            turns, partial(fit_wps, work, duration_s), partial(bare, work, duration_s)
        )
        row(f"{n:,}", f"{ours * 1e3:.2f} ms", f"{theirs * 1e3:.2f} ms", f"{ours / theirs:.1f} x")
    print(f"\nInside `tell`, of rounds of {ROUND_S:.0f} s:\n")
    heading(["rounds", "mean", "longest", "bar"])
    for rounds in TOLD[: 1 if setting.quick else None]:
        mean, longest = telling(setting.seed, rounds)
        met = mean <= slack * MOST * ROUND_S
        verdict = setting.verdict(f"inside tell, {rounds} rounds", met)
        row(rounds, f"{mean * 1e3:.1f} ms", f"{longest * 1e3:.1f} ms", f"{MOST:.0%}: {verdict}")
    starts = 2 if setting.quick else STARTS
    plain, full = (min(cpu_seconds("-c", code) for _ in range(starts)) for code in (PLAIN, FULL))
    print(
        f"\nProcessor time of an interpreter that loads sessions: {plain:.2f} s; with five rounds"
    )
    print(f"of various work, which load the regressions of statsmodels: {full:.2f} s.")
