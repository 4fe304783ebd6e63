"""PUBLIC fakes: one per extension point, each of known truth, for tests that take milliseconds.

Names are resolved when first used, so that a test pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.testing.clock import FakeClock
    from benchrigor.testing.stores import MemoryStore
    from benchrigor.testing.workloads import (
        ExponentialWarmUp,
        StepCoolDown,
        StepWarmUp,
        SyntheticJob,
        SyntheticWorkload,
    )

__all__ = [
    "ExponentialWarmUp",
    "FakeClock",
    "MemoryStore",
    "StepCoolDown",
    "StepWarmUp",
    "SyntheticJob",
    "SyntheticWorkload",
]

_HOMES = {
    "ExponentialWarmUp": "workloads",
    "FakeClock": "clock",
    "MemoryStore": "stores",
    "StepCoolDown": "workloads",
    "StepWarmUp": "workloads",
    "SyntheticJob": "workloads",
    "SyntheticWorkload": "workloads",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
