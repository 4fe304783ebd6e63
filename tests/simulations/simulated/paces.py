"""Runs on a machine that is slow for half of the time, with a reference in turn."""

from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.model import References
from benchrigor.session.engine import Engine

FULL_S, TRUTH_S = 4e-6, 1e-4  # of the reference and of a reading
_GROUP, _SPELL = 5, 50  # readings between two references, and at one pace


def paced(
    *,
    slow: float = 1.6,
    sensitivity: float = 1.0,
    delay: float = 0.0,
    references: bool = True,
    **options: Any,
) -> br.RunRecord:
    """Run readings of which every other fifty meet a machine that is ``slow`` times as slow.

    They depend on the pace by a power of it; the share ``delay`` of them waits for others.
    """
    rng = np.random.default_rng(20271207)
    engine = Engine(br.Options(**{"target": 1e-3, "budget_readings": 6000, **options}), name="json")
    done = 0
    while (plan := engine.ask()) is not None:
        n = plan.readings
        pace = np.where((done + np.arange(n)) // _SPELL % 2, slow, 1.0)
        waited = np.where(rng.random(n) < delay, 3.0 * TRUTH_S, 0.0)
        readings = TRUTH_S * pace**sensitivity * rng.normal(1.0, 0.01, n) + waited
        stops = np.arange(_GROUP, n + 1, _GROUP)
        seconds = FULL_S * pace[stops - 1] * rng.normal(1.0, 0.005, stops.size)
        has_references = references and stops.size > 0
        engine.tell(
            br.Round(
                plan=plan,
                elapsed_ns=round(1e9 * float(readings.sum())),
                unit_readings={"time": readings},
                delays=waited if delay else None,
                references=References(stops=stops, seconds={"interpreter": seconds})
                if has_references
                else None,
            )
        )
        done += n
    return engine.result()
