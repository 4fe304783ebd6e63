"""Rounds on a machine that changes its pace, with references in turn."""

import math
from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.model import References, Round, RoundPlan
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject

FULL_S, TRUE_S, SLOW = 4e-6, 1e-4, math.log(1.5)  # of the reference and of a reading
_GROUP, _SPELL = 5, 50  # readings between two references, and at one pace


def paced_round(
    plan,
    rng,
    *,
    slow_share,
    sensitivity=1.0,
    n=2_000,
    metric="time",
    level_s=TRUE_S,
    **given,
):
    """Make readings whose pace changes every hundredth one, with a reference after each fifth."""
    slow = np.repeat(rng.random(n // 100) < slow_share, 100)
    values = level_s * np.exp(sensitivity * SLOW * slow + rng.normal(0.0, 0.03, n))
    stops = np.arange(_GROUP, n + 1, _GROUP)
    seconds = FULL_S * np.exp(SLOW * slow[stops - 1] + rng.normal(0.0, 0.02, stops.size))
    return _referred(plan, {metric: values}, stops, seconds, **given)


def told(seed, *, slow_share=0.5, options=None, rounds=4, name="work", store=None, **given):
    options = options or br.Options(target=0.0001, max_rounds=rounds)
    session = br.Session(options, name=name, seed=1, store=store)
    rng = np.random.default_rng(seed)
    while (plan := session.ask()) is not None:
        session.tell(paced_round(plan, rng, slow_share=slow_share, **given))
    return session.result()


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
    given = br.Options(**{"target": 1e-3, "budget_readings": 6000, **options})
    engine = Engine(Subject(given, name="json"))
    done = 0
    while (turn := engine.ask()) is not None:
        n = turn.plan.readings
        pace = np.where((done + np.arange(n)) // _SPELL % 2, slow, 1.0)
        waited = np.where(rng.random(n) < delay, 3.0 * TRUE_S, 0.0)
        readings = TRUE_S * pace**sensitivity * rng.normal(1.0, 0.01, n) + waited
        stops = np.arange(_GROUP, n + 1, _GROUP)
        seconds = FULL_S * pace[stops - 1] * rng.normal(1.0, 0.005, stops.size)
        stops = stops if references else stops[:0]
        delays = waited if delay else None
        engine.tell(_referred(turn.plan, {"time": readings}, stops, seconds, delays=delays))
        done += n
    return engine.result()


def _referred(
    plan: RoundPlan, readings: dict[str, np.ndarray], stops: Any, seconds: np.ndarray, **given: Any
) -> Round:
    """Make a round with a reference after so many readings, if there are any."""
    references = References(stops=stops, seconds={"interpreter": seconds}) if stops.size else None
    return Round(
        plan=plan,
        elapsed_ns=round(1e9 * sum(float(each.sum()) for each in readings.values())),
        unit_readings=readings,
        references=references,
        **given,
    )
