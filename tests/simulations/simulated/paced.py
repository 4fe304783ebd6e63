"""Rounds on a machine that changes its pace, with references in turn."""

import math

import numpy as np

import benchrigor as br
from benchrigor.model import References, Round

FULL_S, TRUE_S, SLOW = 4e-6, 1e-4, math.log(1.5)


def paced_round(plan, rng, *, slow_share, n=2_000, metric="time", level_s=TRUE_S, **given):
    """Make readings whose pace changes every hundredth one, with a reference after each fifth."""
    slow = np.repeat(rng.random(n // 100) < slow_share, 100)
    values = level_s * np.exp(SLOW * slow + rng.normal(0.0, 0.03, n))
    stops = np.arange(5, n + 1, 5)
    seconds = FULL_S * np.exp(SLOW * slow[stops - 1] + rng.normal(0.0, 0.02, stops.size))
    references = References(stops=stops, seconds={"interpreter": seconds})
    return Round(
        plan=plan,
        elapsed_ns=int(1e9 * values.sum()),
        unit_readings={metric: values},
        references=references,
        **given,
    )


def told(seed, *, slow_share=0.5, options=None, rounds=4, name="work", store=None, **given):
    options = options or br.Options(target=0.0001, max_rounds=rounds)
    session = br.Session(options, name=name, seed=1, store=store)
    rng = np.random.default_rng(seed)
    while (plan := session.ask()) is not None:
        session.tell(paced_round(plan, rng, slow_share=slow_share, **given))
    return session.result()
