"""The machine, and what runs on it: measured delay, segment profiles, where a run was made.

Names are resolved on first use, so that a program imports only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchrigor.instrument.machine import capabilities as capabilities
    from benchrigor.instrument.machine import load_average as load_average
    from benchrigor.instrument.machine import provenance as provenance
    from benchrigor.instrument.run_delay import RunDelay as RunDelay
    from benchrigor.instrument.segment_profiles.communicator import process_of as process_of
    from benchrigor.instrument.segment_profiles.communicator import traced as traced
    from benchrigor.instrument.segment_profiles.segment_recorder import Segments as Segments
    from benchrigor.instrument.segment_profiles.segment_recorder import segments as segments

_NAMES = {
    "machine": "capabilities load_average provenance",
    "run_delay": "RunDelay",
    "segment_profiles.communicator": "process_of traced",
    "segment_profiles.segment_recorder": "Segments segments",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
