"""Recorded readings and runs, judged by several rules."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Estimate, Floats, Options, Replay
from benchrigor.session import replay
from benchrigor.stats import ChangeDetector, estimate_mean, estimate_quantile
from fence.cases import case
from fence.readings import column, warming
from fence.rounds import restarted
from fence.telling import Tape, record_of

__all__: list[str] = []


def median(readings: Floats) -> Estimate:
    """Estimate the median of the readings so far."""
    return estimate_quantile(readings, 0.5)


@case
def replay_of_real_readings() -> Replay:
    return replay(column("recorded_inserts.csv"), unit="s")


@case
def replay_beside_a_busy_neighbour() -> Replay:
    return replay(column("encoding.csv", "busy"), target=0.1, confidence=0.9)


@case
def replay_by_rules_of_ones_own() -> Replay:
    judges = [
        "benchrigor",
        ("quick", Options(preset="quick")),
        ("median", Options(statistic="median")),
        ("sensitive", ChangeDetector(level=0.2)),
        ("untrimmed", estimate_mean),
        ("medians", median),
    ]
    return replay(warming(2000, seed=370), judges=judges, target=0.01)


@case
def replay_of_a_run() -> Replay:
    return replay(record_of(Tape(time=warming(20_000, seed=371)), target=0.004), target=0.01)


@case
def replay_of_restarted_rounds() -> Replay:
    record = record_of(restarted, rounds="restarted", max_rounds=20, target=1e-4)
    return replay(record, target=0.02)


@case
def replay_of_constant_readings() -> Replay:
    return replay(np.full(900, 3.0))
