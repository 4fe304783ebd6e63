"""Queues between the stages of a program: how fast a stage could go if it never had to wait.

Taps (`tapping`) count in cells that other processes see (`counting`). A monitor samples the cells
(`watching`), and makes periods of the samples, and rates of the periods (`stages`). Files are read
and written in `recording`; `rates` is the estimator of them all. Names are resolved on first use,
so that a program loads only the parts that it uses.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "counting.cells": "Counts",
        "counting.pages": "Page",
        "monitor": "Monitor",
        "period_calibrator": "PeriodCalibrator",
        "rates": "ServiceRateEstimator",
        "recording.recorded_rates": "rate_recording",
        "recording.recordings": "Recording RecordingWriter",
        "stages.monitor_report": "MonitorReport",
        "stages.stage": "Stage",
        "stages.stage_figures": "WatchedStage",
        "tap": "Tap",
    },
)
__all__ = list(__dir__())
