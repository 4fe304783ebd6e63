"""ONE RUN: an engine that decides, a loop that does, and `measure` for the shortest way."""

from __future__ import annotations

from benchrigor.session.engine import Engine, retraced
from benchrigor.session.measuring import measure
from benchrigor.session.paired import measure_pair
from benchrigor.session.planning import plan
from benchrigor.session.replaying import replay
from benchrigor.session.rules import default_rules
from benchrigor.session.session import Session, as_workload

__all__ = [
    "Engine",
    "Session",
    "as_workload",
    "default_rules",
    "measure",
    "measure_pair",
    "plan",
    "replay",
    "retraced",
]
