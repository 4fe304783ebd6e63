"""ONE RUN: an engine that decides, a loop that does, and `measure` for the shortest way."""

from __future__ import annotations

from benchrigor.session.engine import Engine
from benchrigor.session.measuring import measure
from benchrigor.session.paired import measure_pair
from benchrigor.session.planning import plan
from benchrigor.session.replaying import replay
from benchrigor.session.retracing import retraced
from benchrigor.session.rules import default_rules
from benchrigor.session.session import Session, as_workload, meter_for

__all__ = [
    "Engine",
    "Session",
    "as_workload",
    "default_rules",
    "measure",
    "measure_pair",
    "meter_for",
    "plan",
    "replay",
    "retraced",
]
