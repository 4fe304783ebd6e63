"""How long the library thinks: for one decision, and for the responses of one trial."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
from coverage_tables import Setting

import benchrigor as br
from benchrigor.workbench import PeakSearch
from benchrigor.workbench.loadgen.judging import judge
from benchrigor.workbench.loadgen.sending import Sent

__all__ = ["speed"]

DECISION_S, JUDGED_S, TRIALS, RESPONSES = 0.1, 1.0, 100, 1_000_000


def speed(setting: Setting) -> None:
    """Print both, processor time, medians."""
    rng = np.random.default_rng([setting.seed, 7])
    search = PeakSearch(threshold_s=0.04, accuracy=1e-4)
    for _ in range(TRIALS):
        trial = search.ask()
        if trial is None:
            break
        spare = max(200.0 - trial.load, 0.2)
        mean_s = 1.0 / spare * np.exp(rng.normal(0.0, 0.3))
        search.tell(trial, br.LoadResult(mean_response_s=float(mean_s)))
    n = len(search.result().trials)
    times = []
    for _ in range(setting.runs(20, 5)):
        begun = time.process_time()
        search.ask()
        times.append(time.process_time() - begun)
    took = float(np.median(times))
    slower = 3.0 if setting.quick else 1.0  # where other processes share the caches
    verdict = setting.verdict("decision", took <= slower * DECISION_S and n == TRIALS)
    print(f"a decision at {n} trials: {took * 1e3:.0f} ms, at most {DECISION_S * 1e3:g}: {verdict}")
    limits = [br.Limit(metric="mean", at_most=1.0), br.Limit(metric="p99", at_most=1.0)]
    for name, load in (("half busy", 0.5), ("at its peak", 0.875), ("saturated", 1.05)):
        sent = _queue(rng, load)
        begun = time.process_time()
        judge(sent, duration_s=sent.elapsed_s, limits=limits, spent_s={"run": sent.elapsed_s})
        took = time.process_time() - begun
        verdict = setting.verdict(f"responses, {name}", took <= slower * JUDGED_S)
        print(f"{RESPONSES:,} responses, {name}: {took:.2f} s, at most {JUDGED_S:g}: {verdict}")


def _queue(rng: np.random.Generator, load: float) -> Sent:
    """Return the responses of a queue, one after the other."""
    service = rng.exponential(0.005, RESPONSES)
    between = rng.exponential(0.005 / load, RESPONSES)
    steps = np.append(0.0, np.cumsum(service[:-1] - between[1:]))
    at_s = np.cumsum(between)
    return Sent(
        at_s=at_s,
        lag_s=np.zeros(RESPONSES),
        response_s=steps - np.minimum.accumulate(steps) + service,
        first_byte_s=np.full(RESPONSES, np.nan),
        chunk_gap_s=np.full(RESPONSES, np.nan),
        failed=np.zeros(RESPONSES, dtype=np.bool_),
        failures=Counter(),
        cpu_s=1.0,
        elapsed_s=float(at_s[-1]),
        gave_up=False,
    )
