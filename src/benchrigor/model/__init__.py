"""MODEL: frozen data that all other parts exchange; no computation beyond properties."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "analysis": (
            "Analysis ChangePoints Disturbed Kind LevelFit Mode Observed Phase PhaseLabel "
            "PhaseReason StablePhase Subsessions VarianceSplit WpsFit"
        ),
        "benchrigor.instrument.data.batches": "BatchAdvice Kernel KernelPartition NodeLoad",
        "benchrigor.instrument.data.probe_reading": "ProbeReading ProbeReadings ProbeRow",
        "benchrigor.queues.data.pipeline": (
            "Bottleneck BufferSize PipelineAdvice PipelineStage ReplicaCount StageAdvice StageLoad"
        ),
        "benchrigor.queues.data.service": "RateReason ServiceMoments ServiceProcess ServiceRate",
        "benchrigor.workbench.data": "Limit LoadResult LoadTrial PeakRate PeakStatus Trial",
        "comparison": "Comparison Family Ranked Verdict",
        "decision": "Decision Progress StopReason",
        "estimate": "Estimate",
        "finding": "Finding Fitness",
        "interference": "Composite CompositeGroup Interference Light SegmentGroup",
        "machine": "Alarm Capability Health Sample Status",
        "metric": "Metric quantile_named",
        "notice": "Code Notice Severity",
        "options": "Options check_work",
        "pace": "Pace",
        "readings": "Delays References Round RoundPlan",
        "run": "Provenance RunRecord",
        "sample_size": "Plan Price",
        "segments": "SegmentProfile",
        "series": "Floats as_invocations as_series",
        "track_record": "RunPair Standing Tally TrackRecord",
    },
)
