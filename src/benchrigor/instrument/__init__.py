"""The machine, and what runs on it: its state and alarms, measured delay, segment profiles.

Names are resolved on first use, so that a program imports only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrigor.lazy_names import lazy_names

if TYPE_CHECKING:
    from benchrigor.instrument.alarms import Alarms as Alarms
    from benchrigor.instrument.machine import capabilities as capabilities
    from benchrigor.instrument.machine import load_average as load_average
    from benchrigor.instrument.machine import provenance as provenance
    from benchrigor.instrument.nodes.agent import Agent as Agent
    from benchrigor.instrument.nodes.hub import Hub as Hub
    from benchrigor.instrument.probing.module_probes import ModuleProbes as ModuleProbes
    from benchrigor.instrument.probing.module_probes import probe_module as probe_module
    from benchrigor.instrument.probing.probe_registry import PROBES as PROBES
    from benchrigor.instrument.probing.probe_registry import ProbeReader as ProbeReader
    from benchrigor.instrument.probing.probe_registry import ProbeRegistry as ProbeRegistry
    from benchrigor.instrument.probing.probe_registry import probe as probe
    from benchrigor.instrument.probing.probes import Probe as Probe
    from benchrigor.instrument.run_delay import RunDelay as RunDelay
    from benchrigor.instrument.segment_profiles.communicator import process_of as process_of
    from benchrigor.instrument.segment_profiles.communicator import traced as traced
    from benchrigor.instrument.segment_profiles.segment_recorder import Segments as Segments
    from benchrigor.instrument.segment_profiles.segment_recorder import segments as segments
    from benchrigor.instrument.states.health_checks import health as health
    from benchrigor.instrument.states.status_readers import StatusReader as StatusReader
    from benchrigor.instrument.states.status_readers import status as status
    from benchrigor.instrument.thresholds import Condition as Condition
    from benchrigor.instrument.thresholds import Threshold as Threshold
    from benchrigor.instrument.thresholds import read_thresholds as read_thresholds

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "alarms": "Alarms",
        "machine": "capabilities load_average provenance",
        "nodes.agent": "Agent",
        "nodes.hub": "Hub",
        "probing.module_probes": "ModuleProbes probe_module",
        "probing.probe_registry": "PROBES ProbeReader ProbeRegistry probe",
        "probing.probes": "Probe",
        "run_delay": "RunDelay",
        "segment_profiles.communicator": "process_of traced",
        "segment_profiles.segment_recorder": "Segments segments",
        "states.health_checks": "health",
        "states.status_readers": "StatusReader status",
        "thresholds": "Condition Threshold read_thresholds",
    },
)
__all__ = list(__dir__())
