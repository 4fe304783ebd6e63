"""Records that benchrigor saved itself: as `RunRecord.save` and ``show --json`` write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import are_objects
from benchrigor.model import RunRecord

TOOL = "benchrigor"


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return are_objects([data], "schema", "rounds", "options")


def read(data: Any, _: str, place: str) -> Iterator[RunRecord]:
    """Read the record."""
    try:
        yield RunRecord.from_dict(data)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {problem}" for problem in error.problems) from error
