"""Looking at the machine and at what runs on it: what a run lost to others, and where it was made.

Names are resolved when first used, so that a program pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.instrument.boundaries import Segments, segments
    from benchrigor.instrument.communicator import process_of, traced
    from benchrigor.instrument.machine import capabilities, load_average, provenance
    from benchrigor.instrument.run_delay import RunDelay

__all__ = [
    "RunDelay",
    "Segments",
    "capabilities",
    "load_average",
    "process_of",
    "provenance",
    "segments",
    "traced",
]

_HOMES = {
    "RunDelay": "run_delay",
    "Segments": "boundaries",
    "capabilities": "machine",
    "load_average": "machine",
    "process_of": "communicator",
    "provenance": "machine",
    "segments": "boundaries",
    "traced": "communicator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
