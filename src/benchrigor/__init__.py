"""benchrigor: benchmark numbers whose error bars can be believed.

>>> import benchrigor as br
>>> record = br.measure(lambda: sorted(range(1000)), budget_s=0.2)  # doctest: +SKIP
>>> print(record)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module

from benchrigor.lazy_names import lazy_names

_resolve, _list = lazy_names(
    __name__,
    {
        "errors": "BenchrigorError InvalidInput NotEstimable",
        "interference": "segments",
        "model": (
            "Analysis ChangePoints Comparison Decision Estimate Interference Limit LoadResult "
            "LoadTrial Metric Notice Options PeakRate PeakStatus Progress Reason Round RoundPlan "
            "RunRecord SegmentProfile Selection ServiceRate StablePhase StopReason Subsessions "
            "Verdict WpsFit"
        ),
        "session": (
            "Session compare_runs default_rules measure measure_async measure_many "
            "measure_pair plan read_results"
        ),
        "units": "Direction",
        "workloads": "CommandWorkload InterpreterWorkload",
    },
)
_ROOMS = (
    "errors",
    "instrument",
    "interference",
    "machine",
    "model",
    "queues",
    "report",
    "stats",
    "testing",
    "workbench",
    "workloads",
)

__version__ = "0.1.0"  # `importlib.metadata` would take longer to load than all else here

_PUBLIC = sorted([*_list(), "__version__"])

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> object:
    """Resolve public names on first use, so that importing benchrigor is free."""
    return import_module(f"benchrigor.{name}") if name in _ROOMS else _resolve(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
