"""WHAT IS TRUE: frozen data that every other part speaks in; no computation beyond properties."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

TYPE_CHECKING = False  # type checkers take it for True; importing typing would cost 10 ms
if TYPE_CHECKING:
    from benchrigor.model.advice import BatchAdvice as BatchAdvice
    from benchrigor.model.advice import Kernel as Kernel
    from benchrigor.model.advice import KernelPartition as KernelPartition
    from benchrigor.model.advice import NodeLoad as NodeLoad
    from benchrigor.model.analysis import Analysis as Analysis
    from benchrigor.model.analysis import ChangePoints as ChangePoints
    from benchrigor.model.analysis import Disturbed as Disturbed
    from benchrigor.model.analysis import Kind as Kind
    from benchrigor.model.analysis import LevelFit as LevelFit
    from benchrigor.model.analysis import Mode as Mode
    from benchrigor.model.analysis import Observed as Observed
    from benchrigor.model.analysis import Phase as Phase
    from benchrigor.model.analysis import PhaseLabel as PhaseLabel
    from benchrigor.model.analysis import PhaseReason as PhaseReason
    from benchrigor.model.analysis import StablePhase as StablePhase
    from benchrigor.model.analysis import Subsessions as Subsessions
    from benchrigor.model.analysis import VarianceSplit as VarianceSplit
    from benchrigor.model.analysis import WpsFit as WpsFit
    from benchrigor.model.comparison import Comparison as Comparison
    from benchrigor.model.comparison import Family as Family
    from benchrigor.model.comparison import Ranked as Ranked
    from benchrigor.model.comparison import Verdict as Verdict
    from benchrigor.model.decision import Decision as Decision
    from benchrigor.model.decision import Progress as Progress
    from benchrigor.model.decision import StopReason as StopReason
    from benchrigor.model.estimate import Estimate as Estimate
    from benchrigor.model.finding import Finding as Finding
    from benchrigor.model.finding import Fitness as Fitness
    from benchrigor.model.interference import Composite as Composite
    from benchrigor.model.interference import CompositeGroup as CompositeGroup
    from benchrigor.model.interference import Interference as Interference
    from benchrigor.model.interference import Light as Light
    from benchrigor.model.interference import SegmentGroup as SegmentGroup
    from benchrigor.model.machine import Alarm as Alarm
    from benchrigor.model.machine import Capability as Capability
    from benchrigor.model.machine import Health as Health
    from benchrigor.model.machine import Sample as Sample
    from benchrigor.model.machine import Status as Status
    from benchrigor.model.metric import Metric as Metric
    from benchrigor.model.metric import quantile_named as quantile_named
    from benchrigor.model.notice import Code as Code
    from benchrigor.model.notice import Notice as Notice
    from benchrigor.model.notice import Severity as Severity
    from benchrigor.model.options import Options as Options
    from benchrigor.model.options import check_work as check_work
    from benchrigor.model.pace import Pace as Pace
    from benchrigor.model.pace import QuietPace as QuietPace
    from benchrigor.model.pipeline import Bottleneck as Bottleneck
    from benchrigor.model.pipeline import BufferSize as BufferSize
    from benchrigor.model.pipeline import PipelineAdvice as PipelineAdvice
    from benchrigor.model.pipeline import PipelineStage as PipelineStage
    from benchrigor.model.pipeline import ReplicaCount as ReplicaCount
    from benchrigor.model.pipeline import StageAdvice as StageAdvice
    from benchrigor.model.pipeline import StageLoad as StageLoad
    from benchrigor.model.probe_reading import ProbeReading as ProbeReading
    from benchrigor.model.probe_reading import ProbeReadings as ProbeReadings
    from benchrigor.model.probe_reading import ProbeRow as ProbeRow
    from benchrigor.model.readings import Delays as Delays
    from benchrigor.model.readings import References as References
    from benchrigor.model.readings import Round as Round
    from benchrigor.model.readings import RoundPlan as RoundPlan
    from benchrigor.model.replay import Replay as Replay
    from benchrigor.model.replay import Ruling as Ruling
    from benchrigor.model.run import Provenance as Provenance
    from benchrigor.model.run import RunRecord as RunRecord
    from benchrigor.model.sample_size import Plan as Plan
    from benchrigor.model.sample_size import Price as Price
    from benchrigor.model.segments import SegmentProfile as SegmentProfile
    from benchrigor.model.series import Floats as Floats
    from benchrigor.model.series import as_invocations as as_invocations
    from benchrigor.model.series import as_series as as_series
    from benchrigor.model.service import RateReason as RateReason
    from benchrigor.model.service import ServiceMoments as ServiceMoments
    from benchrigor.model.service import ServiceProcess as ServiceProcess
    from benchrigor.model.service import ServiceRate as ServiceRate
    from benchrigor.model.track_record import RunPair as RunPair
    from benchrigor.model.track_record import Standing as Standing
    from benchrigor.model.track_record import Tally as Tally
    from benchrigor.model.track_record import TrackRecord as TrackRecord
    from benchrigor.model.trial import Limit as Limit
    from benchrigor.model.trial import LoadResult as LoadResult
    from benchrigor.model.trial import LoadTrial as LoadTrial
    from benchrigor.model.trial import PeakRate as PeakRate
    from benchrigor.model.trial import PeakStatus as PeakStatus
    from benchrigor.model.trial import Trial as Trial

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "advice": "BatchAdvice Kernel KernelPartition NodeLoad",
        "analysis": (
            "Analysis ChangePoints Disturbed Kind LevelFit Mode Observed Phase PhaseLabel "
            "PhaseReason StablePhase Subsessions VarianceSplit WpsFit"
        ),
        "comparison": "Comparison Family Ranked Verdict",
        "decision": "Decision Progress StopReason",
        "estimate": "Estimate",
        "interference": "Composite CompositeGroup Interference Light SegmentGroup",
        "finding": "Finding Fitness",
        "machine": "Alarm Capability Health Sample Status",
        "metric": "Metric quantile_named",
        "notice": "Code Notice Severity",
        "options": "Options check_work",
        "pace": "Pace QuietPace",
        "pipeline": (
            "Bottleneck BufferSize PipelineAdvice PipelineStage ReplicaCount StageAdvice StageLoad"
        ),
        "probe_reading": "ProbeReading ProbeReadings ProbeRow",
        "readings": "Delays References Round RoundPlan",
        "replay": "Replay Ruling",
        "run": "Provenance RunRecord",
        "sample_size": "Plan Price",
        "segments": "SegmentProfile",
        "series": "Floats as_invocations as_series",
        "service": "RateReason ServiceMoments ServiceProcess ServiceRate",
        "track_record": "RunPair Standing Tally TrackRecord",
        "trial": "Limit LoadResult LoadTrial PeakRate PeakStatus Trial",
    },
)
