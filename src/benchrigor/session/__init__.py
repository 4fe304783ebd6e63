"""ONE RUN: an engine that decides, a loop that does, and `measure` for the shortest way."""

from __future__ import annotations

from benchrigor.session.engine import Engine as Engine
from benchrigor.session.measuring import measure as measure
from benchrigor.session.pairs.measuring_pair import measure_pair as measure_pair
from benchrigor.session.pairs.run_comparison import compare_runs as compare_runs
from benchrigor.session.replays.recorded_run import retraced as retraced
from benchrigor.session.replays.replaying import replay as replay
from benchrigor.session.sample_size import plan as plan
from benchrigor.session.session import Session as Session
from benchrigor.session.session import as_workload as as_workload
from benchrigor.session.session import meter_for as meter_for
from benchrigor.session.stop_rules import default_rules as default_rules
