"""What a session says of readings: more than functions of `stats` return."""

from typing import Any

import benchrigor as br
from benchrigor.model import Analysis
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject


def analysed(*rounds: Any, unit: str = "", detector: Any = None, **options: Any) -> Analysis:
    """Return the analysis of recorded readings, which end where the work did."""
    if isinstance(detector, str):
        options, detector = {**options, "detector": detector}, None
    asked = br.Options(rounds="restarted" if len(rounds) > 1 else "continuous", **options)
    metric = br.Metric(name="u", unit=unit)
    engine = Engine(Subject(asked, (metric,), detector=detector, recorded=True))
    for index, readings in enumerate(rounds):
        plan = br.RoundPlan(index=index, readings=len(readings))
        engine.tell(br.Round(plan=plan, elapsed_ns=0, unit_readings={"u": readings}), asked=False)
    return _only(engine.result())


def told(*rounds: Any, unit: str = "s", **options: Any) -> Analysis:
    """Return the analysis of a running session that was told these rounds.

    A round is readings, or fields of a Round.
    """
    asked = br.Options(**{"max_rounds": len(rounds), "target": 1e-9, **options})
    session = br.Session(asked, (br.Metric(name="u", unit=unit),), seed=1)
    for given in rounds:
        plan = session.ask()
        assert plan is not None
        fields = given if isinstance(given, dict) else {"unit_readings": {"u": given}}
        # A round fills its piece.
        lasted_s = plan.seconds if asked.pieces > 1 else 1.0
        session.tell(br.Round(plan=plan, elapsed_ns=round(1e9 * lasted_s), **fields))
    return _only(session.result())


def _only(record: br.RunRecord) -> Analysis:
    analysis = record.analysis("u")
    assert analysis is not None
    return analysis
