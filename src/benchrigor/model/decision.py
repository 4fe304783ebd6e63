"""How a session ends: why, and whether it does."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class StopReason(enum.StrEnum):
    """Why a session ended; ``docs/codes.md`` explains each of them."""

    SATISFIED = "satisfied"
    TIME_BUDGET = "time-budget-spent"
    READINGS_BUDGET = "readings-budget-spent"
    ROUND_LIMIT = "round-limit-reached"
    TOO_MANY_REJECTED = "too-many-rejected-rounds"
    STOP_REQUESTED = "stop-requested"
    EXHAUSTED = "workload-exhausted"
    HOOK_FAILED = "hook-failed"
    DETECTOR_FAILED = "detector-failed"
    WORKLOAD_FAILED = "workload-failed"
    WORK_TOO_SHORT = "work-too-short"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to stop, and why; ``reason`` is None while the session goes on."""

    stop: bool
    reason: StopReason | None = None
