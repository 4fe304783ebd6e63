"""benchrigor: benchmark numbers whose error bars can be believed.

>>> import benchrigor as br
>>> record = br.measure(lambda: sorted(range(1000)), budget_s=0.2)  # doctest: +SKIP
>>> print(record)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module

from benchrigor.lazy_names import lazy_names

TYPE_CHECKING = False  # type checkers take it for True; importing typing would cost 10 ms
if TYPE_CHECKING:
    from benchrigor.errors import BenchrigorError as BenchrigorError
    from benchrigor.errors import ClockFailed as ClockFailed
    from benchrigor.errors import DetectorFailed as DetectorFailed
    from benchrigor.errors import InvalidInput as InvalidInput
    from benchrigor.errors import MissingExtra as MissingExtra
    from benchrigor.errors import NotComparable as NotComparable
    from benchrigor.errors import NotEstimable as NotEstimable
    from benchrigor.errors import PlanMismatch as PlanMismatch
    from benchrigor.errors import StoreFailed as StoreFailed
    from benchrigor.errors import WorkloadFailed as WorkloadFailed
    from benchrigor.errors import WorkTooShort as WorkTooShort
    from benchrigor.instrument import segments as segments
    from benchrigor.model import Analysis as Analysis
    from benchrigor.model import ChangePoints as ChangePoints
    from benchrigor.model import Comparison as Comparison
    from benchrigor.model import Composite as Composite
    from benchrigor.model import Decision as Decision
    from benchrigor.model import Estimate as Estimate
    from benchrigor.model import Interference as Interference
    from benchrigor.model import Light as Light
    from benchrigor.model import Limit as Limit
    from benchrigor.model import LoadResult as LoadResult
    from benchrigor.model import LoadTrial as LoadTrial
    from benchrigor.model import Metric as Metric
    from benchrigor.model import Notice as Notice
    from benchrigor.model import Options as Options
    from benchrigor.model import PeakRate as PeakRate
    from benchrigor.model import PeakStatus as PeakStatus
    from benchrigor.model import Plan as Plan
    from benchrigor.model import Progress as Progress
    from benchrigor.model import Provenance as Provenance
    from benchrigor.model import Replay as Replay
    from benchrigor.model import Round as Round
    from benchrigor.model import RoundPlan as RoundPlan
    from benchrigor.model import Ruling as Ruling
    from benchrigor.model import RunRecord as RunRecord
    from benchrigor.model import SegmentProfile as SegmentProfile
    from benchrigor.model import ServiceRate as ServiceRate
    from benchrigor.model import StablePhase as StablePhase
    from benchrigor.model import StopReason as StopReason
    from benchrigor.model import Subsessions as Subsessions
    from benchrigor.model import Trial as Trial
    from benchrigor.model import Verdict as Verdict
    from benchrigor.model import WpsFit as WpsFit
    from benchrigor.session import Session as Session
    from benchrigor.session import compare_runs as compare_runs
    from benchrigor.session import default_rules as default_rules
    from benchrigor.session import measure as measure
    from benchrigor.session import measure_async as measure_async
    from benchrigor.session import measure_many as measure_many
    from benchrigor.session import measure_pair as measure_pair
    from benchrigor.session import plan as plan
    from benchrigor.session import replay as replay
    from benchrigor.units import Direction as Direction
    from benchrigor.workloads import CommandWorkload as CommandWorkload
    from benchrigor.workloads import InterpreterWorkload as InterpreterWorkload
    from benchrigor.workloads import StepwiseWorkload as StepwiseWorkload

_resolve, _list = lazy_names(
    __name__,
    {
        "errors": (
            "BenchrigorError ClockFailed DetectorFailed InvalidInput MissingExtra "
            "NotComparable NotEstimable PlanMismatch StoreFailed WorkTooShort WorkloadFailed"
        ),
        "instrument": "segments",
        "model": (
            "Analysis ChangePoints Comparison Composite Decision Estimate Interference Light "
            "Limit LoadResult LoadTrial Metric Notice Options PeakRate PeakStatus Plan Progress "
            "Provenance Replay Round RoundPlan Ruling RunRecord SegmentProfile ServiceRate "
            "StablePhase StopReason Subsessions Trial Verdict WpsFit"
        ),
        "session": (
            "Session compare_runs default_rules measure measure_async measure_many measure_pair "
            "plan replay"
        ),
        "units": "Direction",
        "workloads": "CommandWorkload InterpreterWorkload StepwiseWorkload",
    },
)
_ROOMS = (
    "errors",
    "instrument",
    "model",
    "queues",
    "report",
    "stats",
    "testing",
    "workbench",
    "workloads",
)

_PUBLIC = sorted([*_list(), "__version__"])

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> object:
    """Resolve public names on first use, so that importing benchrigor costs nothing."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # it alone costs milliseconds

        return version("benchrigor")
    return import_module(f"benchrigor.{name}") if name in _ROOMS else _resolve(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
