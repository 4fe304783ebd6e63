"""THE MACHINE while it is measured: its delays, state, capabilities and alarms."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "alarms": "Alarms",
        "host": "capabilities provenance",
        "states.health_checks": "health",
        "states.status_readers": "StatusReader status",
        "thresholds": "read_thresholds",
    },
)
__all__ = list(__dir__())
