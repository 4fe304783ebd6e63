"""MODEL: frozen data that all other parts exchange; no computation beyond properties."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "analysis": "Analysis ChangePoints Disturbed Observed Phase StablePhase Subsessions WpsFit",
        "benchrigor.instrument.advice": "Kernel",
        "benchrigor.instrument.data": "ProbeReading",
        "benchrigor.queues.data": "PipelineStage ServiceRate",
        "benchrigor.workbench.data": "Limit LoadResult LoadTrial PeakRate PeakStatus",
        "comparison": "Comparison Verdict",
        "decision": "Decision Progress StopReason Width",
        "estimate": "Estimate",
        "interference": "Interference",
        "machine": "Capability Health Sample Status",
        "metric": "Metric quantile_named",
        "notice": "Code Notice",
        "options": "Options",
        "pace": "Pace",
        "readings": "Delays References Round RoundPlan",
        "run": "RunRecord",
        "segments": "SegmentProfile",
        "selection": "Reason Selection",
        "turn": "Headway Turn",
    },
)
