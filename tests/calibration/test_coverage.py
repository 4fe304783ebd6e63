"""The intervals of whole sessions hold the truth as often as they claim: a quick, seeded check.

The full tables come from docs/evidence/coverage.py. Bounds: with 120 sessions at a true coverage
of 0.95, fewer than 105 or more than 119 hits come up with a chance of about 0.001 and 0.002.
"""

import numpy as np
import pytest

import benchrigor as br
from benchrigor.testing import ExponentialWarmUp, SyntheticWorkload

SESSIONS = 120
FEWEST = 105
WARM_UP = ExponentialWarmUp(amplitude=1.0, time_constant=25.0)


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


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("warm_up", [None, WARM_UP], ids=["steady", "warm-up"])
def test_sessions_cover_the_truth(phi: float, warm_up: ExponentialWarmUp | None) -> None:
    hits = sum(holds(phi, warm_up, repetition) for repetition in range(SESSIONS))
    assert hits >= FEWEST
