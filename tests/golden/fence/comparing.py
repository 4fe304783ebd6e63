"""What differs between a recorded result and one found now."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from benchrigor.model import Options
from fence.plain import plain

__all__ = ["differences"]

RELATIVE = 1e-9
"""Floats that differ by less are the same: sums may be added up in another order."""
ABSOLUTE = 1e-14
"""Likewise around zero (processors round differently: the bend of an exact line is 1.5e-15 on one
and -.5e-15 on another); far below a variance of microseconds, which is no rounding."""
DEFAULTS = plain(Options())
RETIRED = {"state": False, "on_alarm": None, "max_rejected": 100, "readings_per_round": None}
"""Options that are no more, with the defaults that records hold."""


def differences(recorded: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each place where a result is no longer what was recorded.

    Everything counts but rounding, new keys that hold nothing (None, 0, False, empty), and new or
    retired options at their defaults.
    """
    if isinstance(recorded, dict) and isinstance(found, dict):
        yield from _between_dicts(recorded, found, path)
    elif isinstance(recorded, list) and isinstance(found, list):
        yield from _between_lists(recorded, found, path)
    elif not _same(recorded, found):
        yield f"{path or 'the result'}: {_short(recorded)} is now {_short(found)}"


def _between_dicts(recorded: dict[str, Any], found: dict[str, Any], path: str) -> Iterator[str]:
    are_options = path.rpartition(".")[2] == "options"
    for key, value in recorded.items():
        below = f"{path}.{key}" if path else key
        if key in found:
            yield from differences(value, found[key], below)
        elif not (are_options and key in RETIRED and value == RETIRED[key]):
            yield f"{below}: {_short(value)} is gone"
    usual = DEFAULTS if are_options else {}
    for key, value in found.items():
        if key not in recorded and value and value != usual.get(key):
            yield f"{path}.{key}: {_short(value)} is new".removeprefix(".")


def _between_lists(recorded: list[Any], found: list[Any], path: str) -> Iterator[str]:
    if len(recorded) != len(found):
        yield f"{path or 'the result'}: {len(recorded)} items are now {len(found)}"
    for index, (before, now) in enumerate(zip(recorded, found, strict=False)):
        yield from differences(before, now, f"{path}[{index}]")


def _same(recorded: Any, found: Any) -> bool:
    if not (_is_number(recorded) and _is_number(found)):
        return type(recorded) is type(found) and bool(recorded == found)
    if isinstance(recorded, int) and isinstance(found, int):
        return recorded == found
    if math.isnan(recorded) or math.isnan(found):
        return math.isnan(recorded) and math.isnan(found)
    return math.isclose(recorded, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
