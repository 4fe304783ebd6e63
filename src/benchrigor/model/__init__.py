"""WHAT IS TRUE: frozen data that every other part speaks in; no computation beyond properties."""

from __future__ import annotations

from benchrigor.model.analysis import (
    Analysis,
    ChangePoints,
    Estimate,
    Kind,
    LevelFit,
    Mode,
    Phase,
    PhaseLabel,
    PhaseReason,
    StablePhase,
    Subsessions,
)
from benchrigor.model.machine import Capability
from benchrigor.model.metric import Metric
from benchrigor.model.notice import Code, Notice, Severity
from benchrigor.model.progress import Progress
from benchrigor.model.readings import Round, RoundPlan
from benchrigor.model.run import Decision, Options, Provenance, RunRecord, StopReason
from benchrigor.model.series import Floats, as_series

__all__ = [
    "Analysis",
    "Capability",
    "ChangePoints",
    "Code",
    "Decision",
    "Estimate",
    "Floats",
    "Kind",
    "LevelFit",
    "Metric",
    "Mode",
    "Notice",
    "Options",
    "Phase",
    "PhaseLabel",
    "PhaseReason",
    "Progress",
    "Provenance",
    "Round",
    "RoundPlan",
    "RunRecord",
    "Severity",
    "StablePhase",
    "StopReason",
    "Subsessions",
    "as_series",
]
