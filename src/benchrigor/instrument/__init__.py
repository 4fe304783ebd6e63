"""Looking at the machine: what it lets a benchmark see, and where a run was made."""

from __future__ import annotations

from benchrigor.instrument.machine import capabilities, load_average, provenance

__all__ = ["capabilities", "load_average", "provenance"]
