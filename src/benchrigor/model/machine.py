"""What a machine lets benchrigor see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing about a machine that matters to measurements, such as its "cpu governor".

    ``value`` is None where it is not available, for a ``reason``.
    """

    name: str
    available: bool
    value: str | None = None
    reason: str = ""
