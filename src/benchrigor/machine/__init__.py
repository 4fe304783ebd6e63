"""THE MACHINE while it is measured: its delays, state, capabilities and alarms."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "alarms": "Alarms read_thresholds",
        "equipment": "health",
        "host": "capabilities provenance",
        "status_readers": "StatusReader status",
    },
)
__all__ = list(__dir__())
