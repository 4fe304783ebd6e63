"""What a machine lets benchrigor see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing about a machine that matters to measurements.

    Parameters
    ----------
    name
        What it is, in words ("cpu governor", "perf events").
    available
        Whether it can be read or used here.
    value
        What was read; None when it is not available.
    reason
        Why it is not available; empty when it is.
    """

    name: str
    available: bool
    value: str | None = None
    reason: str = ""
