"""Queues between the stages of a program: how fast a stage could go if it never had to wait.

A tap (`tap`, `stand_ins`) counts in `cells` that other processes see. The `monitor` lets a
`sampler` copy the cells, of which `stage_figures` makes one table of `periods`. An estimator turns
such a table into service rates: `busy_time` by default, `nonblocking` as published. The figures of
a stage come from the same table, and so do `recordings` and pictures. Names are resolved on first
use, so that a program loads only the parts that it uses.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "cells": "Counts Page",
        "estimator": "ServiceRateEstimator",
        "monitor": "Monitor",
        "recordings": "Recording RecordingWriter rate_recording",
        "sampler": "PeriodCalibrator",
        "stages": "MonitorReport Stage WatchedStage",
        "tap": "Tap",
    },
)
__all__ = list(__dir__())
