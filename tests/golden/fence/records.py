"""The records: one JSON file for each case, named like it."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

from fence.cases import CASES
from fence.comparing import differences
from fence.plain import plain

__all__ = ["RECORDS", "changes_of", "forget", "found", "names", "read", "write"]

RECORDS = Path(__file__).parents[1] / "records"
MOST = 20
"""Differences of a case that are told."""


def names() -> set[str]:
    """Return the names of all records that there are."""
    return {path.stem for path in RECORDS.glob("*.json")}


def found(name: str) -> Any:
    """Carry a case out, and return its result as plain data."""
    return plain(CASES[name]())


def read(name: str) -> Any:
    """Return what was recorded of a case."""
    return json.loads(_path(name).read_text(encoding="utf-8"))


def write(name: str, result: Any) -> None:
    """Record the result of a case."""
    _path(name).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def forget(name: str) -> None:
    """Delete a record."""
    _path(name).unlink()


def changes_of(name: str, result: Any) -> list[str]:
    """Return in which places a result is no longer what was recorded, the first of them."""
    return list(islice(differences(read(name), result), MOST))


def _path(name: str) -> Path:
    return RECORDS / f"{name}.json"
