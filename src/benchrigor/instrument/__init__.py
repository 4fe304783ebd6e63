"""The machine, and what runs on it: its state and alarms, measured delay, segment profiles.

Names are resolved on first use, so that a program imports only the names it needs.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchrigor.interference.segment_recorder": "Segments process_of segments traced",
        "benchrigor.machine.alarms": "Alarms read_thresholds",
        "benchrigor.machine.host": "capabilities provenance",
        "benchrigor.machine.equipment": "health",
        "benchrigor.machine.status_readers": "StatusReader status",
        "agent": "Agent",
        "hub": "Hub",
        "probe_registry": "PROBES ProbeReader ProbeRegistry probe probe_module",
        "probes": "Probe",
    },
)
__all__ = list(__dir__())
