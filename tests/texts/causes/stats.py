"""What the functions of ``benchrigor.stats`` refuse of one series, and why numbers are missing."""

import math

import numpy as np
from tests.texts.rendering import tried

import benchrigor as br
from benchrigor import stats
from benchrigor.model import Estimate
from benchrigor.stats import (
    estimate_invocations,
    estimate_mean,
    estimate_proportion,
    estimate_quantile,
    estimate_rate,
    merge_subsessions,
    required_readings,
)

NORMAL = np.random.default_rng(1).normal(10.0, 1.0, 100)
THREE = [1.0, 2.0, 3.0]
PILOT = Estimate(
    value=1.0, low=0.9, high=1.1, confidence=0.95, n=100, n_effective=100.0, method="any"
)


CAUSES = {
    "a reading that is not a number": lambda: estimate_mean([1.0, float("nan")]),
    "confidence out of range": lambda: tried(
        lambda wrong: estimate_mean(NORMAL, confidence=wrong), 95, 0.0, math.nan, "95%", True
    ),
    "all that is wrong with a mean": lambda: estimate_mean(
        [], confidence=0, method="bootstrap", autocorrelation_limit=2, detector="eyes", trim=True
    ),
    "an unknown method": lambda: estimate_mean(NORMAL, method="bootstrap"),
    "a share out of range": lambda: tried(
        lambda wrong: estimate_quantile(NORMAL, wrong), 1.5, 0, 50, math.nan, True, "0.5", None
    ),
    "a width out of range": lambda: tried(
        lambda wrong: required_readings(PILOT, wrong), 0.0, -0.1, math.inf, math.nan, None
    ),
    "readings to narrow a value near 0": lambda: required_readings(
        estimate_mean(NORMAL - NORMAL.mean()), 0.1
    ),
    "readings to narrow a list": lambda: required_readings([1, 2], 0.01),
    "a target out of reach": lambda: required_readings(estimate_mean(NORMAL), 1e-12),
    "too few readings above a quantile": lambda: estimate_quantile(NORMAL, 0.99),
    "a quantile at the edge of numbers": lambda: estimate_quantile([1.0, 1.1, 1.2] * 20, 5e-324),
    "one reading": lambda: estimate_mean([1.0]),
    "one reading for a quantile": lambda: estimate_quantile([1.0], 0.5),
    "too few readings to merge": lambda: estimate_mean([1.0, 2.0], method="subsessions"),
    "readings that no merging makes independent": lambda: estimate_mean(
        np.random.default_rng(5).normal(size=30).cumsum(), method="subsessions"
    ),
    "a limit out of range": lambda: tried(
        lambda wrong: merge_subsessions(THREE, limit=wrong), 0.0, 1.5, math.nan, "0.1"
    ),
    "a harmonic mean with a zero": lambda: merge_subsessions([1.0, 0.0, 2.0], mean="harmonic"),
    "a lag out of range": lambda: tried(
        lambda wrong: stats.autocorrelation(THREE, wrong), -1, 3, 1.5, True
    ),
    "nothing to observe": lambda: stats.observe([]),
    "invocations that are not valid": lambda: tried(
        estimate_invocations, [], "abc", 3.0, [[1.0, 2.0], [math.nan, 1.0]]
    ),
    "few invocations": lambda: estimate_invocations([[1.0, 1.1], [1.2, 1.3]]).notices,
    "rates that are all equal": lambda: estimate_rate([49.0] * 12).notices,
    "times that are all equal": lambda: estimate_mean([0.0625] * 40).notices,
    "one rate": lambda: estimate_rate([1.0]),
    "rates that are not valid": lambda: tried(
        estimate_rate, [1.0, 0.0], [-2.0], [1.0, 1e-200], [1.0, math.inf]
    ),
    "durations that are not valid": lambda: tried(
        lambda wrong: estimate_rate(THREE, weights=wrong),
        "harmonic",
        [1.0, 2.0],
        [1.0, 0.0, 1.0],
        [1.0, 2.0, math.nan],
        [[1.0, 2.0, 3.0]],
        None,
    ),
    "one outcome": lambda: estimate_proportion([True]),
    "outcomes that are not valid": lambda: tried(
        estimate_proportion, [0, 1, 2], [0.0, 1.0, 0.5], "1", 5
    ),
    "counts that are not valid": lambda: tried(
        estimate_proportion,
        (3, 2),
        (-1, 0),
        (1.0, 2),
        (1, 2.5),
        (True, 2),
        ([1, 0], 2),
    ),
    "a plan for a change that is not valid": lambda: tried(
        lambda **wrong: br.plan(PILOT, **wrong),
        {"change": 0.0},
        {"change": math.nan},
        {"change": "3%"},
        {"change": 0.01, "margin": 0.01},
        {"margin": -0.01},
        {"power": 1.0},
        {"power": True},
        {"confidence": 95},
        {"half_widths": (0.01, 0.0)},
        {"half_widths": 0.05},
        {"half_widths": None},
        {"half_widths": "5%"},
        {"change": 1e-9},
        {"change": -1.0, "power": 2.0, "margin": -1.0, "half_widths": (math.inf,)},
    ),
    "a plan from what has no noise": lambda: br.plan(estimate_mean([3.0] * 40)),
    "a plan from one invocation": lambda: br.plan(estimate_invocations([[1.0, 1.1, 1.2]])),
    "a plan from few invocations": lambda: (
        br.plan(
            estimate_invocations([NORMAL + 0.01 * seed for seed in range(12)]), change=0.03
        ).notices
    ),
    "a plan from few readings": lambda: br.plan(PILOT, change=0.5).notices,
}
