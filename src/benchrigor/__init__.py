"""benchrigor: benchmark numbers whose error bars can be believed.

>>> import benchrigor as br
>>> record = br.measure(lambda: sorted(range(1000)), budget_s=0.2)  # doctest: +SKIP
>>> print(record)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing typing would cost 10 ms
if TYPE_CHECKING:
    from benchrigor.errors import (
        BenchrigorError,
        ClockFailed,
        DetectorFailed,
        InvalidInput,
        MissingExtra,
        NotEstimable,
        PlanMismatch,
        StoreFailed,
        WorkloadFailed,
        WorkTooShort,
    )
    from benchrigor.instrument import segments
    from benchrigor.model import (
        Analysis,
        ChangePoints,
        Comparison,
        Composite,
        Decision,
        Estimate,
        Interference,
        Light,
        Metric,
        Notice,
        Options,
        Plan,
        Progress,
        Provenance,
        Replay,
        Round,
        RoundPlan,
        Ruling,
        RunRecord,
        SegmentProfile,
        ServiceRate,
        StablePhase,
        StopReason,
        Subsessions,
        Verdict,
        WpsFit,
    )
    from benchrigor.session import Session, default_rules, measure, measure_pair, plan, replay
    from benchrigor.units import Direction
    from benchrigor.workloads import CommandWorkload, StepwiseWorkload

_WHERE = {
    "benchrigor.errors": (
        "BenchrigorError",
        "ClockFailed",
        "DetectorFailed",
        "InvalidInput",
        "MissingExtra",
        "NotEstimable",
        "PlanMismatch",
        "StoreFailed",
        "WorkTooShort",
        "WorkloadFailed",
    ),
    "benchrigor.instrument": ("segments",),
    "benchrigor.model": (
        "Analysis",
        "ChangePoints",
        "Comparison",
        "Composite",
        "Decision",
        "Estimate",
        "Interference",
        "Light",
        "Metric",
        "Notice",
        "Options",
        "Plan",
        "Progress",
        "Provenance",
        "Replay",
        "Round",
        "RoundPlan",
        "Ruling",
        "RunRecord",
        "SegmentProfile",
        "ServiceRate",
        "StablePhase",
        "StopReason",
        "Subsessions",
        "Verdict",
        "WpsFit",
    ),
    "benchrigor.session": (
        "Session",
        "default_rules",
        "measure",
        "measure_pair",
        "plan",
        "replay",
    ),
    "benchrigor.units": ("Direction",),
    "benchrigor.workloads": ("CommandWorkload", "StepwiseWorkload"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
_ROOMS = ("errors", "instrument", "model", "queues", "report", "stats", "testing", "workloads")

__all__ = [
    "Analysis",
    "BenchrigorError",
    "ChangePoints",
    "ClockFailed",
    "CommandWorkload",
    "Comparison",
    "Composite",
    "Decision",
    "DetectorFailed",
    "Direction",
    "Estimate",
    "Interference",
    "InvalidInput",
    "Light",
    "Metric",
    "MissingExtra",
    "NotEstimable",
    "Notice",
    "Options",
    "Plan",
    "PlanMismatch",
    "Progress",
    "Provenance",
    "Replay",
    "Round",
    "RoundPlan",
    "Ruling",
    "RunRecord",
    "SegmentProfile",
    "ServiceRate",
    "Session",
    "StablePhase",
    "StepwiseWorkload",
    "StopReason",
    "StoreFailed",
    "Subsessions",
    "Verdict",
    "WorkTooShort",
    "WorkloadFailed",
    "WpsFit",
    "__version__",
    "default_rules",
    "measure",
    "measure_pair",
    "plan",
    "replay",
    "segments",
]


def __getattr__(name: str) -> object:
    """Resolve public names when they are asked for, so that importing benchrigor costs nothing."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # it alone costs milliseconds

        return version("benchrigor")
    if name in _MODULE_OF:
        found: object = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = found
        return found
    if name in _ROOMS:
        return import_module(f"benchrigor.{name}")
    raise AttributeError(f"module 'benchrigor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
