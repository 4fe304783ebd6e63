"""Stored runs that are not series of readings: the modules of side systems that show them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchrigor.model import RunRecord

_MODULES = {
    "choice": "benchrigor.workbench.map_verb",
    "map": "benchrigor.workbench.map_verb",
    "peak": "benchrigor.workbench.peak_verb",
}
"""By the kind in the subject of a record."""


def is_special(record: RunRecord) -> bool:
    """Return whether a run is something else than readings of a workload."""
    return record.subject.get("kind") in _MODULES


def module_for(record: RunRecord) -> Any:
    """Return the module that has `noun_of`, `show`, `draw`, `explain` and `resume` of a run."""
    return import_module(_MODULES[record.subject["kind"]])
