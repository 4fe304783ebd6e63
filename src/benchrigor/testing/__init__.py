"""PUBLIC fakes: one per extension point, each of known truth, for tests that take milliseconds.

And interference to order: delays of known size, and real busy neighbours.

Names are resolved on first use, so that a test pays only for what it asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrigor.lazy_names import lazy_names

if TYPE_CHECKING:
    from benchrigor.testing.clock import FakeClock as FakeClock
    from benchrigor.testing.injector import Injector as Injector
    from benchrigor.testing.injector import cpu_hog as cpu_hog
    from benchrigor.testing.injector import memory_hog as memory_hog
    from benchrigor.testing.meter import FakeMeter as FakeMeter
    from benchrigor.testing.sampler import FakeSampler as FakeSampler
    from benchrigor.testing.servers import SimulatedServer as SimulatedServer
    from benchrigor.testing.stages import StagePeriods as StagePeriods
    from benchrigor.testing.stages import SyntheticStage as SyntheticStage
    from benchrigor.testing.stores import MemoryStore as MemoryStore
    from benchrigor.testing.workloads import ExponentialWarmUp as ExponentialWarmUp
    from benchrigor.testing.workloads import StepWarmUp as StepWarmUp
    from benchrigor.testing.workloads import SyntheticJob as SyntheticJob
    from benchrigor.testing.workloads import SyntheticWorkload as SyntheticWorkload

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "clock": "FakeClock",
        "injector": "Injector cpu_hog memory_hog",
        "meter": "FakeMeter",
        "sampler": "FakeSampler",
        "servers": "SimulatedServer",
        "stages": "StagePeriods SyntheticStage",
        "stores": "MemoryStore",
        "workloads": "ExponentialWarmUp StepWarmUp SyntheticJob SyntheticWorkload",
    },
)
__all__ = list(__dir__())
