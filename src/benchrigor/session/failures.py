"""What a result says of a workload or a hook that failed."""

from __future__ import annotations

from benchrigor.errors import BenchrigorError
from benchrigor.model import Code, Notice, Severity

__all__ = ["failed_hook", "failed_workload", "too_short"]


def failed_workload(error: BenchrigorError) -> Notice:
    """Say what ended the measuring, in its first line."""
    return Notice(
        code=Code.WORKLOAD_FAILED,
        severity=Severity.WARNING,
        sentence=str(error).splitlines()[0],
        evidence={"error": type(error).__name__},
    )


def failed_hook(name: str, error: Exception) -> Notice:
    """Say which hook raised what."""
    return Notice(
        code=Code.HOOK_FAILED,
        severity=Severity.WARNING,
        sentence=f"The hook {name} raised {type(error).__name__}: {error}",
        evidence={"hook": name, "error": type(error).__name__},
    )


def too_short(error: BenchrigorError) -> Notice:
    """Say that no amount of work makes a round long enough."""
    return Notice(code=Code.WORK_TOO_SHORT, severity=Severity.REFUSAL, sentence=str(error))
