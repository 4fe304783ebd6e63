"""Queues between the stages of a program: what each stage could do if it never had to wait.

Taps (`tapping`) count in cells that other processes see (`counting`); a monitor samples them
(`watching`), and tells the estimator (`rates`), as does who reads a file (`recording`).
Names are resolved when first used, so that a program pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.queues.calibrating import CalibratedPeriod, PeriodCalibrator
    from benchrigor.queues.counting.cells import Cell, Counts
    from benchrigor.queues.counting.ends import End
    from benchrigor.queues.counting.pages import Page
    from benchrigor.queues.monitor import Monitor
    from benchrigor.queues.rates import ServiceRateEstimator
    from benchrigor.queues.recording.recorded_rates import RecordedEnd, rate_recording
    from benchrigor.queues.recording.recordings import Recording, RecordingWriter
    from benchrigor.queues.tap import Tap
    from benchrigor.queues.watching.monitor_report import MonitorReport
    from benchrigor.queues.watching.stage import Stage
    from benchrigor.queues.watching.stage_figures import WatchedStage

__all__ = [
    "CalibratedPeriod",
    "Cell",
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
    "CalibratedPeriod": "calibrating",
    "Cell": "counting.cells",
    "Counts": "counting.cells",
    "End": "counting.ends",
    "Monitor": "monitor",
    "MonitorReport": "watching.monitor_report",
    "Page": "counting.pages",
    "PeriodCalibrator": "calibrating",
    "RecordedEnd": "recording.recorded_rates",
    "Recording": "recording.recordings",
    "RecordingWriter": "recording.recordings",
    "ServiceRateEstimator": "rates",
    "Stage": "watching.stage",
    "Tap": "tap",
    "WatchedStage": "watching.stage_figures",
    "rate_recording": "recording.recorded_rates",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
