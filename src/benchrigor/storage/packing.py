"""Records to rows and back: JSON, and one BLOB for all readings.

A million readings cost most of a second as JSON, and a few milliseconds as little-endian float64.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchrigor.model import codec
from benchrigor.model.series import Floats

# Replaces an array in the JSON: {"float64-le": [start, stop]} counts items of 8 bytes in the BLOB,
# which are floats or whole numbers.
_MARKS = {"float64": "float64-le", "int64": "int64-le"}


def pack(record: object) -> tuple[str, memoryview]:
    """Turn a record, or a mapping with some of its fields, into JSON and a block of floats."""
    arrays: list[Floats] = []
    plain = {**codec.versions(), **codec.encode(_without_arrays(record, arrays))}
    floats = np.concatenate([np.empty(0), *arrays]).astype("<f8", copy=False)
    return json.dumps(plain, allow_nan=False), floats.data


def unpack(text: str, floats: bytes | memoryview) -> dict[str, Any]:
    """Rebuild the plain data that `pack` wrote, arrays in their places.

    Raises ValueError when the text is not JSON or the block does not hold whole floats.
    """
    numbers = np.frombuffer(floats, dtype="<f8")

    def restore(item: dict[str, Any]) -> object:
        for kind, mark in _MARKS.items():
            if isinstance(place := item.get(mark), list):
                return numbers[slice(*place)].view(f"<{kind[0]}8")
        return item

    plain: dict[str, Any] = json.loads(text, object_hook=restore)
    return plain


def _without_arrays(item: object, arrays: list[Floats]) -> object:
    """Move the arrays of ``item`` to ``arrays`` and leave marks in their places."""
    if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype.name in _MARKS:
        start = sum(array.size for array in arrays)
        arrays.append(item.view(np.float64))
        return {_MARKS[item.dtype.name]: [start, start + item.size]}
    if dataclasses.is_dataclass(item):
        item = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    if isinstance(item, Mapping):
        return {key: _without_arrays(value, arrays) for key, value in item.items()}
    if isinstance(item, tuple | list):
        return [_without_arrays(part, arrays) for part in item]
    return item
