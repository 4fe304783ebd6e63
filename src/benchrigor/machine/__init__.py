"""THE MACHINE while it is measured: its delays, state, capabilities and alarms."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "alarms": "Alarms",
        "host": "capabilities load_average provenance",
        "run_delay": "RunDelay",
        "states.health_checks": "health",
        "states.status_readers": "StatusReader status",
        "thresholds": "Condition Threshold read_thresholds",
    },
)
__all__ = list(__dir__())
