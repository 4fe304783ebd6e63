"""ARITHMETIC: pure functions, arrays in, model objects out; no clock, no disk, no global random."""

from __future__ import annotations

from benchrigor.stats.adapters import RupturesDetector
from benchrigor.stats.changepoints import ChangeDetector, detect_changes
from benchrigor.stats.hierarchy import (
    combine_levels,
    estimate_invocations,
    rejected_notices,
)
from benchrigor.stats.intervals import estimate_level, required_readings
from benchrigor.stats.levels import fit_level
from benchrigor.stats.means import estimate_mean
from benchrigor.stats.merging import autocorrelation, merge_subsessions
from benchrigor.stats.phases import find_stable_phase
from benchrigor.stats.trimming import trimmed

__all__ = [
    "ChangeDetector",
    "RupturesDetector",
    "autocorrelation",
    "combine_levels",
    "detect_changes",
    "estimate_invocations",
    "estimate_level",
    "estimate_mean",
    "find_stable_phase",
    "fit_level",
    "merge_subsessions",
    "rejected_notices",
    "required_readings",
    "trimmed",
]
