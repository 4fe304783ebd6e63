"""Queues between the stages of a program: how fast a stage could go if it never had to wait.

Taps (`tapping`) count in cells that other processes see (`counting`). A sampler copies the cells
(`watching`), and a reader makes one table of periods of the copies (`stages.stage_figures`,
`periods`). The estimator (`rates`) turns such a table into rates: `arithmetic.service_rate` has the
formulas. The figures of a stage (`stages`) come from the same table, and so do recordings, which
are written and read in `recording`, and pictures. Names are resolved on first use, so that a
program loads only the parts that it uses.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "counting.cells": "Counts Page",
        "monitor": "Monitor",
        "period_calibrator": "PeriodCalibrator",
        "rates": "ServiceRateEstimator",
        "recording.recorded_rates": "rate_recording",
        "recording.recordings": "Recording RecordingWriter",
        "stages.monitor_report": "MonitorReport WatchedStage",
        "stages.stage": "Stage",
        "tap": "Tap",
    },
)
__all__ = list(__dir__())
