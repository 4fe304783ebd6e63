"""Estimates of one thing: means, quantiles, rates, proportions, invocations."""

from __future__ import annotations

import numpy as np

from benchrigor.model.analysis import VarianceSplit
from benchrigor.stats import (
    autocorrelation,
    estimate_invocations,
    estimate_mean,
    estimate_proportion,
    estimate_quantile,
    estimate_rate,
    merge_subsessions,
    observe,
    required_readings,
)
from benchrigor.stats.readings.analysis import rejected_notices
from benchrigor.stats.series.interval import estimate_level, fit_level
from benchrigor.stats.statistic import combine_values, readings_per_invocation
from fence.cases import case
from fence.plain import attempted
from fence.readings import column, correlated, drifting, invocations, skewed, warming


def of_several() -> dict[str, np.ndarray]:
    """Return series that differ in memory, shape and size, by name."""
    return {
        "quiet": column("encoding.csv", "quiet"),
        "busy": column("encoding.csv", "busy"),
        "correlated": correlated(2000, seed=60, phi=0.8),
        "persistent": correlated(2000, seed=61, phi=0.99),
        "alternating": correlated(500, seed=62, phi=-0.6),
        "skewed": skewed(300, seed=63),
        "few": skewed(12, seed=64),
        "two": np.array([1.0, 2.0]),
        "constant": np.full(30, 2.5),
        "around zero": correlated(200, seed=65) - 1.0,
    }


@case
def means() -> object:
    return {name: attempted(estimate_mean, series) for name, series in of_several().items()}


@case
def means_by_subsessions() -> object:
    return {
        name: attempted(estimate_mean, series, method="subsessions")
        for name, series in of_several().items()
    }


@case
def means_of_other_confidences() -> object:
    series = correlated(800, seed=66, phi=0.5)
    return [estimate_mean(series, confidence=each, trim=True) for each in (0.5, 0.9, 0.999)]


@case
def means_of_what_is_not_stable() -> object:
    return {
        "drift": attempted(estimate_mean, drifting(800, seed=67), trim=True),
        "one reading": attempted(estimate_mean, [1.0]),
        "one reading, trimmed": attempted(estimate_mean, [1.0], trim=True),
    }


@case
def quantiles() -> object:
    return {
        f"{name}, {q:g}": attempted(estimate_quantile, series, q)
        for name, series in of_several().items()
        for q in (0.1, 0.5, 0.99)
    }


@case
def quantiles_of_the_stable_phase() -> object:
    series = warming(1200, seed=68)
    return [attempted(estimate_quantile, series, q, trim=True) for q in (0.1, 0.5, 0.9)]


@case
def rates() -> object:
    series = 1.0 / correlated(400, seed=69, phi=0.4, cv=0.1)
    work = np.random.default_rng(70).integers(1, 20, 400)
    return {
        "equal work": estimate_rate(series),
        "equal time": estimate_rate(series, weights="time"),
        "amounts": estimate_rate(series, weights=work),
        "real": estimate_rate(1.0 / column("encoding.csv", "quiet")),
    }


@case
def proportions() -> object:
    outcomes = column("encoding.csv", "busy") > 0.0002
    return {
        "counts": estimate_proportion(7, 50),
        "none": estimate_proportion(0, 20),
        "all": estimate_proportion(20, 20, confidence=0.99),
        "outcomes in order": attempted(estimate_proportion, outcomes.astype(float)),
    }


@case
def invocations_and_what_they_vary_by() -> object:
    several = invocations("baseline")
    split = VarianceSplit(level=1.0, between=1e-4, within=25e-4, invocations=10, readings=200.0)
    return {
        "estimate": estimate_invocations(several),
        "trimmed": estimate_invocations(several, trim=True),
        "two": estimate_invocations(several[:2]),
        "readings each": readings_per_invocation(
            split, start_cost=0.1, reading_cost=0.001, longest=10_000
        ),
        "rejected": rejected_notices(3, 12),
    }


@case
def levels_with_and_without_transients() -> object:
    series = warming(600, seed=71)
    fits = [fit_level(series), fit_level(series, transients=(40.0, 160.0))]
    return {
        "fits": fits,
        "estimates": [estimate_level(each, 0.95) for each in fits],
        "combined": combine_values([each.level for each in fits], 0.95),
    }


@case
def subsessions() -> object:
    series = correlated(1200, seed=72, phi=0.8)
    return {
        "arithmetic": merge_subsessions(series),
        "harmonic": merge_subsessions(series, mean="harmonic"),
        "narrow": merge_subsessions(series, limit=0.02),
        "drifting": merge_subsessions(drifting(300, seed=73)),
        "real": merge_subsessions(column("recorded_inserts.csv")),
        "autocorrelation": [autocorrelation(series, lag) for lag in (0, 1, 2, 10)],
    }


@case
def readings_that_a_target_takes() -> object:
    found = estimate_mean(correlated(800, seed=74, phi=0.5))
    return [required_readings(found, target) for target in (0.1, 0.01, 0.001)]


@case
def levels_that_chance_may_show() -> object:
    """Of two series with two levels each, one shows them clearly enough."""
    found = {}
    for seed in (0, 23):
        rng = np.random.default_rng([5, seed])
        series = np.concatenate([rng.normal(level, 0.05, 500) for level in (1.0, 1.155)])
        found[str(seed)] = observe(rng.permutation(series))
    return found
