"""ONE RUN: an engine that decides, a loop that does, and `measure` for the shortest way."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

TYPE_CHECKING = False  # type checkers take it for True; importing typing would cost 10 ms
if TYPE_CHECKING:
    from benchrigor.session.engine import Engine as Engine
    from benchrigor.session.fitness.examination import examine as examine
    from benchrigor.session.measuring import measure as measure
    from benchrigor.session.measuring import measure_async as measure_async
    from benchrigor.session.pairs.measuring_pair import measure_pair as measure_pair
    from benchrigor.session.pairs.run_comparison import compare_runs as compare_runs
    from benchrigor.session.replays.recorded_run import retraced as retraced
    from benchrigor.session.replays.replaying import replay as replay
    from benchrigor.session.sample_size import plan as plan
    from benchrigor.session.session import Session as Session
    from benchrigor.session.session import as_workload as as_workload
    from benchrigor.session.session import meter_for as meter_for
    from benchrigor.session.stop_rules import default_rules as default_rules
    from benchrigor.session.turns.measuring_many import measure_many as measure_many

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "engine": "Engine",
        "fitness.examination": "examine",
        "measuring": "measure measure_async",
        "pairs.measuring_pair": "measure_pair",
        "pairs.run_comparison": "compare_runs",
        "replays.recorded_run": "retraced",
        "replays.replaying": "replay",
        "sample_size": "plan",
        "session": "Session as_workload meter_for",
        "stop_rules": "default_rules",
        "turns.measuring_many": "measure_many",
    },
)
