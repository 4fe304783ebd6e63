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
        "decision": "Decision Headway Progress StopReason Turn Width",
        "estimate": "Estimate",
        "machine": "Capability Health Pace Sample Status",
        "metric": "Metric quantile_named",
        "notice": "Code Notice",
        "options": "Options",
        "readings": "Delays Reason References Round RoundPlan Selection",
        "run": "RunRecord",
        "segments": "Interference SegmentProfile",
    },
)
