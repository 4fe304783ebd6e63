"""Queues between the stages of a program: what each stage could do if it never had to wait.

Names are resolved when first used, so that a program pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.queues.cells import Cell, Counts
    from benchrigor.queues.pages import Page
    from benchrigor.queues.rates import ServiceRateEstimator
    from benchrigor.queues.tap import End, Tap

__all__ = ["Cell", "Counts", "End", "Page", "ServiceRateEstimator", "Tap"]

_HOMES = {
    "Cell": "cells",
    "Counts": "cells",
    "End": "tap",
    "Page": "pages",
    "ServiceRateEstimator": "rates",
    "Tap": "tap",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
