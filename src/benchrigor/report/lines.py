"""The lines of a report: labelled rows, and Notices behind the mark of their severity."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from benchrigor.model import Notice, Severity

__all__ = ["WIDTH", "marked", "row"]

WIDTH = 79
_LABEL = 10
_MARKS = {Severity.NOTE: "·", Severity.WARNING: "!", Severity.REFUSAL: "✗"}


def row(label: str, parts: Iterable[str], *, width: int = _LABEL) -> list[str]:
    """Return the lines of one row; none where there is nothing to say."""
    text = "; ".join(part for part in parts if part)
    return _wrapped(f"{label:<{width}}", text) if text else []


def marked(notice: Notice, name: str = "") -> list[str]:
    """Return the lines of a Notice, behind the name of what it is about."""
    return _wrapped(f"{_MARKS[notice.severity]} ", f"{name}{notice}")


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=WIDTH,
        initial_indent=f"  {label}",
        subsequent_indent="  " + " " * len(label),
        break_on_hyphens=False,
    )
