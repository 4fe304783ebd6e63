"""Looking at the machine and at what runs on it: what a run lost to others, and where it was made.

Names are resolved when first used, so that a program pays only for what it asks for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.instrument.machine import capabilities, load_average, provenance
    from benchrigor.instrument.run_delay import RunDelay
    from benchrigor.instrument.segment_profiles.boundaries import Segments, segments
    from benchrigor.instrument.segment_profiles.communicator import process_of, traced

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
    "Segments": "segment_profiles.boundaries",
    "capabilities": "machine",
    "load_average": "machine",
    "process_of": "segment_profiles.communicator",
    "provenance": "machine",
    "segments": "segment_profiles.boundaries",
    "traced": "segment_profiles.communicator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
