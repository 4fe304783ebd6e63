"""The machine, and what runs on it: measured delay, segment profiles, where a run was made.

Names are resolved when first used, so that a program imports only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.instrument.machine import capabilities, load_average, provenance
    from benchrigor.instrument.run_delay import RunDelay
    from benchrigor.instrument.segment_profiles.communicator import process_of, traced
    from benchrigor.instrument.segment_profiles.segment_recorder import Segments, segments

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
    "Segments": "segment_profiles.segment_recorder",
    "capabilities": "machine",
    "load_average": "machine",
    "process_of": "segment_profiles.communicator",
    "provenance": "machine",
    "segments": "segment_profiles.segment_recorder",
    "traced": "segment_profiles.communicator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
