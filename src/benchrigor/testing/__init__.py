"""PUBLIC fakes: one per extension point, each of known truth, for tests that take milliseconds.

And interference to order: delays of known size, and real busy neighbours.

Names are resolved on first use, so that a test pays only for the names it uses.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchrigor.queues.fakes": "SyntheticStage",
        "benchrigor.workbench.planning.search": "SimulatedServer",
        "benchrigor.workbench.executors": "FakeExecutor",
        "fakes": (
            "ExponentialWarmUp FakeClock FakeMeter FakeSampler MemoryStore StepWarmUp"
            " SyntheticWorkload"
        ),
        "injector": "Injector cpu_hog memory_hog",
    },
)
__all__ = list(__dir__())
