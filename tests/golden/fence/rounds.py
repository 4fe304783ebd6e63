"""Sessions of restarted rounds, of one reading a round, and of rounds that lost their time."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Delays, Metric, RoundPlan
from fence.cases import case, register
from fence.readings import correlated, drifting, invocations, warming
from fence.telling import Told, record_of


def restarted(plan: RoundPlan) -> Told:
    """Give the readings of an invocation: a level of its own, and a warm-up."""
    level = 1.0 + 0.01 * np.random.default_rng([100, plan.index]).standard_normal()
    series = level * warming(plan.readings, seed=plan.index, fading=20.0)
    return Told({"unit_readings": {"time": series}})


@case
def restarted_rounds() -> object:
    return record_of(restarted, rounds="restarted", target=0.01)


@case
def restarted_rounds_of_a_quantile() -> object:
    how = {"rounds": "restarted", "statistic": "p90", "by": 300}
    return record_of(restarted, **how, target=0.01)


@case
def restarted_rounds_by_subsessions() -> object:
    how = {"rounds": "restarted", "method": "subsessions", "by": 300}
    return record_of(restarted, **how, max_rounds=8, target=1e-4)


@case
def restarted_rounds_that_are_few() -> object:
    return record_of(restarted, rounds="restarted", max_rounds=3, target=1e-4)


@case
def restarted_rounds_of_real_readings() -> object:
    """Is told what 12 interpreters took, one after the other."""
    series = invocations("baseline")

    def tell(plan: RoundPlan) -> Told:
        return Told({"unit_readings": {"time": series[plan.index]}})

    how = {"rounds": "restarted", "by": 150, "max_rounds": len(series)}
    return record_of(tell, **how, target=1e-3)


@case
def restarted_rounds_some_of_which_are_rejected() -> object:
    """Has a drift instead of a stable phase in every third round."""

    def tell(plan: RoundPlan) -> Told:
        if plan.index % 3 < 2:
            return restarted(plan)
        return Told({"unit_readings": {"time": drifting(plan.readings, seed=plan.index)}})

    how = {"rounds": "restarted", "by": 300, "max_rounds": 9}
    return record_of(tell, **how, target=1e-4)


@case
def rounds_of_one_reading() -> object:
    series = correlated(5000, seed=30, phi=0.4)
    return record_of(
        lambda plan: Told({"readings": {"time": series[plan.index]}}),
        metrics=(Metric(name="time", unit="s"),),
        target=0.01,
    )


@case
def rounds_that_give_nothing() -> object:
    return record_of(lambda _: Told({}))


@case
def rounds_of_several_metrics_one_of_which_is_missing() -> object:
    def tell(plan: RoundPlan) -> Told:
        series = correlated(plan.readings, seed=plan.index)
        return Told({"unit_readings": {"time": series}})

    metrics = (Metric(name="time", unit="s"), Metric(name="rate", direction="higher"))
    return record_of(tell, metrics=metrics, by=100, max_rounds=6)


def disturbed(plan: RoundPlan) -> Told:
    """Give rounds of which every sixth waits for a processor for a third of its time."""
    readings = 0.001 * correlated(plan.readings, seed=200 + plan.index)
    waited = np.zeros(plan.readings)
    if plan.index % 6 == 5:
        waited[::5] = 0.0025
    delays = Delays(stops=range(1, plan.readings + 1), seconds={"run queue": waited})
    return Told({"unit_readings": {"time": readings + waited}, "delays": delays})


def struck(plan: RoundPlan) -> Told:
    """Give rounds of which every tenth has stalls that nobody measured."""
    readings = 0.001 * correlated(plan.readings, seed=300 + plan.index)
    if plan.index % 10 == 7:
        readings[::20] += 0.008
    elapsed_ns = max(plan.readings * 10**6, round(1e9 * readings.sum()))
    return Told({"unit_readings": {"time": readings}, "elapsed_ns": elapsed_ns})


@case
def rounds_that_lose_a_tenth_of_their_time() -> object:
    """Has a measured delay in every fifth reading, which is taken off before the estimate."""

    def tell(plan: RoundPlan) -> Told:
        readings = 0.004 * correlated(plan.readings, seed=400 + plan.index)
        waited = 0.003 * (np.arange(plan.readings) % 5 == 4)
        delays = Delays(stops=range(1, plan.readings + 1), seconds={"steal": waited})
        return Told({"unit_readings": {"time": readings + waited}, "delays": delays})

    return record_of(tell, target=0.01)


for red in ("keep", "repeat"):
    how = {"red_rounds": red, "by": 50, "max_rounds": 24, "target": 1e-4}
    register(f"red_rounds_{red}", lambda how=how: record_of(disturbed, **how))


@case
def red_rounds_by_their_excess() -> object:
    how = {"red_rounds": "repeat", "by": 100, "max_rounds": 27, "target": 1e-4}
    return record_of(struck, **how)
