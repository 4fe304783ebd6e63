"""The machine, and what runs on it: its state and alarms, measured delay, segment profiles.

Names are resolved on first use, so that a program imports only the names it needs.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchrigor.interference.segment_recorder": "Segments process_of segments traced",
        "benchrigor.machine.alarms": "Alarms",
        "benchrigor.machine.host": "capabilities provenance",
        "benchrigor.machine.states.health_checks": "health",
        "benchrigor.machine.states.status_readers": "StatusReader status",
        "benchrigor.machine.thresholds": "read_thresholds",
        "agent": "Agent",
        "hub": "Hub",
        "probe_registry": "PROBES ProbeReader ProbeRegistry probe probe_module",
        "probes": "Probe",
    },
)
__all__ = list(__dir__())
