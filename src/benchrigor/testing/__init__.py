"""PUBLIC fakes: one per extension point, each of known truth, for tests that take milliseconds.

And interference to order: delays of known size, and real busy neighbours.

Names are resolved when first used, so that a test pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.testing.clock import FakeClock
    from benchrigor.testing.injector import Injector, cpu_hog
    from benchrigor.testing.meter import FakeMeter
    from benchrigor.testing.stages import StagePeriods, SyntheticStage
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
    "FakeMeter",
    "Injector",
    "MemoryStore",
    "StagePeriods",
    "StepCoolDown",
    "StepWarmUp",
    "SyntheticJob",
    "SyntheticStage",
    "SyntheticWorkload",
    "cpu_hog",
]

_HOMES = {
    "ExponentialWarmUp": "workloads",
    "FakeClock": "clock",
    "FakeMeter": "meter",
    "Injector": "injector",
    "MemoryStore": "stores",
    "StagePeriods": "stages",
    "StepCoolDown": "workloads",
    "StepWarmUp": "workloads",
    "SyntheticJob": "workloads",
    "SyntheticStage": "stages",
    "SyntheticWorkload": "workloads",
    "cpu_hog": "injector",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
