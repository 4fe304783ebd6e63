"""Queues between the stages of a program: how fast a stage could go if it never had to wait.

A tap (`tap`, `stand_ins`) counts in cells that other processes see (`counting`). The `monitor` lets
a sampler copy the cells (`watching`), of which `watching.stage_figures` makes one table of periods
(`arithmetic.periods`). An estimator (`estimating`) turns such a table into rates. The figures of a
stage come from the same table, and so do `recordings` and pictures. Names are resolved on first
use, so that a program loads only the parts that it uses.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "counting.cells": "Counts Page",
        "monitor": "Monitor",
        "estimating.rates": "PeriodCalibrator ServiceRateEstimator",
        "recordings": "Recording RecordingWriter rate_recording",
        "stages": "MonitorReport Stage WatchedStage",
        "tap": "Tap",
    },
)
__all__ = list(__dir__())
