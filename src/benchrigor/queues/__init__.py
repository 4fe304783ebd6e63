"""Queues between the stages of a program: what each stage could do if it never had to wait.

Names are resolved when first used, so that a program pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.queues.calibrating import CalibratedPeriod, PeriodCalibrator
    from benchrigor.queues.cells import Cell, Counts
    from benchrigor.queues.monitor import Monitor
    from benchrigor.queues.monitor_report import MonitorReport
    from benchrigor.queues.pages import Page
    from benchrigor.queues.rates import ServiceRateEstimator
    from benchrigor.queues.stage import Stage
    from benchrigor.queues.stage_figures import WatchedStage
    from benchrigor.queues.tap import End, Tap

__all__ = [
    "CalibratedPeriod",
    "Cell",
    "Counts",
    "End",
    "Monitor",
    "MonitorReport",
    "Page",
    "PeriodCalibrator",
    "ServiceRateEstimator",
    "Stage",
    "Tap",
    "WatchedStage",
]

_HOMES = {
    "CalibratedPeriod": "calibrating",
    "Cell": "cells",
    "Counts": "cells",
    "End": "tap",
    "Monitor": "monitor",
    "MonitorReport": "monitor_report",
    "Page": "pages",
    "PeriodCalibrator": "calibrating",
    "ServiceRateEstimator": "rates",
    "Stage": "stage",
    "Tap": "tap",
    "WatchedStage": "stage_figures",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
