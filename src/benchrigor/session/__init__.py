"""ONE RUN: an engine that decides, a loop that does, and `measure` for the shortest way."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fitness": "examine",
        "measuring": "measure measure_async measure_many",
        "pairs.in_turn": "measure_pair",
        "pairs.run_comparison": "compare_runs",
        "replays": "read_results",
        "sample_size": "plan",
        "session": "Session",
        "stop_rules": "default_rules",
    },
)
