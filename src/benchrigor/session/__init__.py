"""ONE RUN: an engine that decides, a loop that does, and `measure` for the shortest way."""

from __future__ import annotations

from benchrigor.session.engine import Engine
from benchrigor.session.measuring import measure
from benchrigor.session.pairs.measuring_pair import measure_pair
from benchrigor.session.pairs.run_comparison import compare_runs
from benchrigor.session.replays.recorded_run import retraced
from benchrigor.session.replays.replaying import replay
from benchrigor.session.sample_size import plan
from benchrigor.session.session import Session, as_workload, meter_for
from benchrigor.session.stop_rules import default_rules

__all__ = [
    "Engine",
    "Session",
    "as_workload",
    "compare_runs",
    "default_rules",
    "measure",
    "measure_pair",
    "meter_for",
    "plan",
    "replay",
    "retraced",
]
