"""Queues between the stages of a program: what each stage could do if it never had to wait.

Taps (`tapping`) count in cells that other processes see (`counting`). A monitor samples the cells
(`watching`), makes periods of the samples and rates of the periods (`stages`); whoever reads a file
(`recording`) tells the same estimator (`rates`). Names are resolved when first used, so that a
program pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.queues.counting.cells import Counts
    from benchrigor.queues.counting.ends import End
    from benchrigor.queues.counting.pages import Page
    from benchrigor.queues.monitor import Monitor
    from benchrigor.queues.period_calibrator import CalibratedPeriod, PeriodCalibrator
    from benchrigor.queues.rates import ServiceRateEstimator
    from benchrigor.queues.recording.recorded_rates import RecordedEnd, rate_recording
    from benchrigor.queues.recording.recordings import Recording, RecordingWriter
    from benchrigor.queues.stages.monitor_report import MonitorReport
    from benchrigor.queues.stages.stage import Stage
    from benchrigor.queues.stages.stage_figures import WatchedStage
    from benchrigor.queues.tap import Tap

__all__ = [
    "CalibratedPeriod",
    "Counts",
    "End",
    "Monitor",
    "MonitorReport",
    "Page",
    "PeriodCalibrator",
    "RecordedEnd",
    "Recording",
    "RecordingWriter",
    "ServiceRateEstimator",
    "Stage",
    "Tap",
    "WatchedStage",
    "rate_recording",
]

_HOMES = {
    "CalibratedPeriod": "period_calibrator",
    "Counts": "counting.cells",
    "End": "counting.ends",
    "Monitor": "monitor",
    "MonitorReport": "stages.monitor_report",
    "Page": "counting.pages",
    "PeriodCalibrator": "period_calibrator",
    "RecordedEnd": "recording.recorded_rates",
    "Recording": "recording.recordings",
    "RecordingWriter": "recording.recordings",
    "ServiceRateEstimator": "rates",
    "Stage": "stages.stage",
    "Tap": "tap",
    "WatchedStage": "stages.stage_figures",
    "rate_recording": "recording.recorded_rates",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
