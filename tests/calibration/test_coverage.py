"""The intervals of whole sessions hold the truth as often as they claim: a quick, seeded check.

The full tables come from docs/evidence/intervals.py, whose quick run in CI has the rows that are
marked `minutes` here. Bounds: with 120 sessions at a true coverage of 0.95, fewer than 105 or more
than 119 hits come up with a chance of about 0.001 and 0.002.
"""

from statistics import NormalDist

import numpy as np
import pytest

import benchrigor as br
from benchrigor.testing import ExponentialWarmUp, SyntheticWorkload

pytestmark = pytest.mark.slow
MINUTES = pytest.mark.minutes

SESSIONS = 120
FEWEST, MOST = 105, 119
WARM_UP = ExponentialWarmUp(amplitude=1.0, time_constant=25.0)
QUANTILES = {
    "median of lognormal": ("median", {"noise": "lognormal", "cv": 0.5}, 1.25**-0.5),
    "p10 of AR(1) 0.9": ("p10", {"cv": 0.1, "phi": 0.9}, 1.0 + 0.1 * NormalDist().inv_cdf(0.1)),
}


def holds(phi: float, warm_up: ExponentialWarmUp | None, repetition: int) -> bool:
    seed = int(np.random.SeedSequence([2026, repetition]).generate_state(1)[0])
    workload = SyntheticWorkload(cv=0.15, phi=phi, warm_up=warm_up, seed=seed)
    options = br.Options(target=0.05, budget_readings=40_000, budget_s=float("inf"))
    session = br.Session(options, seed=seed)
    while (plan := session.ask()) is not None:
        values = workload.draw(plan)
        session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
    estimate = session.result().estimate()
    return estimate is not None and estimate.low <= workload.truth <= estimate.high


@pytest.mark.parametrize(
    ("phi", "warm_up"),
    [
        pytest.param(0.5, WARM_UP, id="AR(1) 0.5, warm-up"),
        *(
            pytest.param(phi, None, marks=MINUTES, id=f"AR(1) {phi}, steady")
            for phi in (0.0, 0.5, 0.9)
        ),
        *(
            pytest.param(phi, WARM_UP, marks=MINUTES, id=f"AR(1) {phi}, warm-up")
            for phi in (0.0, 0.9)
        ),
    ],
)
@pytest.mark.minutes
def test_sessions_cover_the_truth(phi: float, warm_up: ExponentialWarmUp | None) -> None:
    hits = sum(holds(phi, warm_up, repetition) for repetition in range(SESSIONS))
    assert FEWEST <= hits <= MOST


@MINUTES
def test_single_readings_and_restarted_rounds_cover_the_truth() -> None:
    hits = {"single": 0, "restarted": 0}
    for repetition in range(SESSIONS):
        rng = np.random.default_rng([2027, repetition])
        single = br.Session(br.Options(target=0.03), seed=1)
        while (plan := single.ask()) is not None:
            reading = float(rng.normal(1.0, 0.1))
            single.tell(br.Round(plan=plan, elapsed_ns=1, readings={"time": reading}))
        restarted = br.Session(br.Options(target=0.03, rounds="restarted"), seed=1)
        while (plan := restarted.ask()) is not None:
            level = rng.normal(1.0, 0.05)
            values = rng.normal(level, 0.1, 200) + np.where(np.arange(200) < 30, 1.0, 0.0)
            restarted.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
        for name, session in (("single", single), ("restarted", restarted)):
            estimate = session.result().estimate()
            hits[name] += estimate is not None and estimate.low <= 1.0 <= estimate.high
    # Looks at 10, 15, 23 ... rounds: 0.925 and 0.94 in 600 sessions of another seed.
    assert all(103 <= each <= MOST for each in hits.values()), hits


@pytest.mark.parametrize(
    "name",
    [
        "median of lognormal",
        pytest.param("p10 of AR(1) 0.9", marks=MINUTES),
    ],
)
@pytest.mark.minutes
def test_sessions_on_quantiles_cover_the_truth(name: str) -> None:
    # Fewer than 25 of 30: a chance of 0.003 at a true coverage of 0.95, and of 0.80 at 0.75.
    statistic, process, truth = QUANTILES[name]
    hits = 0
    for repetition in range(30):
        seed = int(np.random.SeedSequence([2028, repetition]).generate_state(1)[0])
        workload = SyntheticWorkload(seed=seed, **process)  # type: ignore[arg-type]
        options = br.Options(statistic=statistic, budget_readings=40_000, budget_s=float("inf"))
        session = br.Session(options, seed=seed)
        while (plan := session.ask()) is not None:
            values = workload.draw(plan)
            session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))
        estimate = session.result().estimate()
        hits += estimate is not None and estimate.low <= truth <= estimate.high
    assert hits >= 25


def test_no_session_stops_within_a_slow_cycle_and_misses() -> None:
    # 1.6 times as long as the first look, and as large as the noise. In 180 sessions none missed;
    # without the rule about the share of the stable phase two of five do, so that one of ten does
    # with a chance of 0.994.
    for repetition in range(10):
        rng = np.random.default_rng([2029, repetition])
        start, taken = rng.uniform(0.0, 2.0 * np.pi), 0
        session = br.Session(br.Options(budget_readings=6_000, budget_s=float("inf")), seed=1)
        while (plan := session.ask()) is not None:
            index = np.arange(taken, taken + plan.readings)
            taken += plan.readings
            cycle = 1.0 + 0.1 * np.sin(2.0 * np.pi * index / 800.0 + start)
            values = {"time": rng.normal(cycle, 0.1)}
            session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings=values))
        estimate = session.result().estimate()
        assert estimate is None or estimate.low <= 1.0 <= estimate.high
