"""WHAT IS TRUE: frozen data that every other part speaks in; no computation beyond properties."""

from __future__ import annotations

from benchrigor.model.analysis import (
    Analysis,
    ChangePoints,
    Kind,
    LevelFit,
    Mode,
    Phase,
    PhaseLabel,
    PhaseReason,
    StablePhase,
    Subsessions,
    VarianceSplit,
    WpsFit,
)
from benchrigor.model.comparison import Comparison, Family, Ranked, Verdict
from benchrigor.model.decision import Decision, Progress, StopReason
from benchrigor.model.estimate import Estimate
from benchrigor.model.interference import (
    Composite,
    CompositeGroup,
    Interference,
    Light,
    SegmentGroup,
)
from benchrigor.model.metric import Metric, quantile_named
from benchrigor.model.notice import Code, Evidence, Notice, Severity
from benchrigor.model.options import Options, check_work
from benchrigor.model.pipeline import (
    Bottleneck,
    BufferSize,
    PipelineAdvice,
    PipelineStage,
    Quantity,
    ReplicaCount,
    StageAdvice,
    StageLoad,
)
from benchrigor.model.readings import Delays, Round, RoundPlan
from benchrigor.model.replay import Replay, Ruling
from benchrigor.model.run import Capability, Provenance, RunRecord
from benchrigor.model.sample_size import Plan, Price
from benchrigor.model.segments import SegmentProfile
from benchrigor.model.series import Floats, as_invocations, as_series
from benchrigor.model.service import RateReason, ServiceMoments, ServiceProcess, ServiceRate
from benchrigor.model.track_record import RunPair, Standing, Tally, TrackRecord

__all__ = [
    "Analysis",
    "Bottleneck",
    "BufferSize",
    "Capability",
    "ChangePoints",
    "Code",
    "Comparison",
    "Composite",
    "CompositeGroup",
    "Decision",
    "Delays",
    "Estimate",
    "Evidence",
    "Family",
    "Floats",
    "Interference",
    "Kind",
    "LevelFit",
    "Light",
    "Metric",
    "Mode",
    "Notice",
    "Options",
    "Phase",
    "PhaseLabel",
    "PhaseReason",
    "PipelineAdvice",
    "PipelineStage",
    "Plan",
    "Price",
    "Progress",
    "Provenance",
    "Quantity",
    "Ranked",
    "RateReason",
    "Replay",
    "ReplicaCount",
    "Round",
    "RoundPlan",
    "Ruling",
    "RunPair",
    "RunRecord",
    "SegmentGroup",
    "SegmentProfile",
    "ServiceMoments",
    "ServiceProcess",
    "ServiceRate",
    "Severity",
    "StablePhase",
    "StageAdvice",
    "StageLoad",
    "Standing",
    "StopReason",
    "Subsessions",
    "Tally",
    "TrackRecord",
    "VarianceSplit",
    "Verdict",
    "WpsFit",
    "as_invocations",
    "as_series",
    "check_work",
    "quantile_named",
]
