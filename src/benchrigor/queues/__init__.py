"""Queues between the stages of a program: what each stage could do if it never had to wait.

Taps (`tapping`) count in cells that other processes see (`counting`). A monitor samples the cells
(`watching`), and makes periods of the samples, and rates of the periods (`stages`). Files are read
and written in `recording`; `rates` is the estimator of them all. Names are resolved on first use,
so that a program pays only for what it asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrigor.lazy_names import lazy_names

if TYPE_CHECKING:
    from benchrigor.queues.counting.cells import Counts as Counts
    from benchrigor.queues.counting.ends import End as End
    from benchrigor.queues.counting.pages import Page as Page
    from benchrigor.queues.monitor import Monitor as Monitor
    from benchrigor.queues.period_calibrator import CalibratedPeriod as CalibratedPeriod
    from benchrigor.queues.period_calibrator import PeriodCalibrator as PeriodCalibrator
    from benchrigor.queues.rates import ServiceRateEstimator as ServiceRateEstimator
    from benchrigor.queues.recording.recorded_rates import RecordedEnd as RecordedEnd
    from benchrigor.queues.recording.recorded_rates import rate_recording as rate_recording
    from benchrigor.queues.recording.recordings import Recording as Recording
    from benchrigor.queues.recording.recordings import RecordingWriter as RecordingWriter
    from benchrigor.queues.stages.monitor_report import MonitorReport as MonitorReport
    from benchrigor.queues.stages.monitor_report import QueueGrowth as QueueGrowth
    from benchrigor.queues.stages.stage import Stage as Stage
    from benchrigor.queues.stages.stage_figures import WatchedStage as WatchedStage
    from benchrigor.queues.tap import Tap as Tap

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "counting.cells": "Counts",
        "counting.ends": "End",
        "counting.pages": "Page",
        "monitor": "Monitor",
        "period_calibrator": "CalibratedPeriod PeriodCalibrator",
        "rates": "ServiceRateEstimator",
        "recording.recorded_rates": "RecordedEnd rate_recording",
        "recording.recordings": "Recording RecordingWriter",
        "stages.monitor_report": "MonitorReport QueueGrowth",
        "stages.stage": "Stage",
        "stages.stage_figures": "WatchedStage",
        "tap": "Tap",
    },
)
__all__ = list(__dir__())
