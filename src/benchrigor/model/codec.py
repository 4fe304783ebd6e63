"""Model objects to plain data and back, by the types of their fields; schema versions.

A new field with a default needs no line here. Infinite numbers, for which JSON has no word, travel
as the strings "inf" and "-inf".
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.series import as_series, short

SCHEMA = 1  # Version of the layout of a stored record
METHOD = "5"  # Version of the arithmetic that makes its numbers

T = TypeVar("T")


def versions() -> dict[str, Any]:
    """Return the marks that every stored record carries."""
    return {"schema": SCHEMA, "method_version": METHOD}


def value_at(data: Any, path: str) -> Any:
    """Return the item at a dotted path of keys and places; LookupError without one.

    >>> value_at({"results": [{"times": [1.5, 2.5]}]}, "results.0.times")
    [1.5, 2.5]
    """
    try:
        for key in path.split("."):
            data = data[int(key) if isinstance(data, list) else key]
    except (TypeError, ValueError) as error:
        raise LookupError(path) from error
    return data


def without_versions(data: object) -> dict[str, Any]:
    """Take the version marks off stored data, if this version can read them."""
    if not isinstance(data, Mapping) or not isinstance(data.get("schema"), int):
        raise InvalidInput("record has no schema version: this is not a benchrigor record")
    if (version := data["schema"]) < 1:
        raise InvalidInput(f"record has schema {version}, expected 1 to {SCHEMA}")
    if version > SCHEMA:
        raise InvalidInput(
            f"record has schema {version}, this version of benchrigor knows up to {SCHEMA}: "
            "install a newer one"
        )
    return {key: value for key, value in data.items() if key not in versions()}


def encode(item: Any) -> Any:
    """Turn a model object into dicts, lists, strings, numbers, booleans and None."""
    if isinstance(item, enum.Enum):
        return item.value
    if item is None or isinstance(item, str | bool | int):
        return item
    if isinstance(item, float):
        return float(item) if math.isfinite(item) else str(float(item))
    if isinstance(item, np.ndarray):
        return item.tolist()
    if isinstance(item, np.generic):
        return encode(item.item())
    if dataclasses.is_dataclass(item):
        fields = dataclasses.fields(item)
        return {field.name: encode(getattr(item, field.name)) for field in fields}
    if isinstance(item, Mapping):
        return {str(key): encode(value) for key, value in item.items()}
    return [encode(part) for part in item]


def decode(kind: type[T], data: Any, *, where: str = "data") -> T:
    """Rebuild a model object of class ``kind`` from what `encode` made of it."""
    annotation: Any = kind
    return typing.cast("T", _reader(annotation)(data, where))


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """Return what rebuilds a value with an annotation, from its data and where they stand."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        kinds = [option for option in inner if option is not type(None)]
        if len(kinds) > 1:  # Only unions of plain scalars are used, and JSON keeps those apart.
            return lambda data, _: data
        read = _reader(kinds[0])
        return lambda data, where: None if data is None else read(data, where)
    if dataclasses.is_dataclass(kind):
        return partial(_read_dataclass, kind)
    if origin is tuple:
        return partial(_read_tuple, inner[0])
    if _is_array(kind):
        return _read_array
    if origin is not None and issubclass(origin, Mapping):
        return partial(_read_mapping, inner[1])
    return partial(_read_plain, kind)


def _read_tuple(kind: Any, data: Any, where: str) -> tuple[Any, ...]:
    _expect(data, list | tuple, "a list", where)
    read, known = _reader(kind), [part for part in data if _is_known(kind, part)]
    return tuple(read(part, f"{where}[{i}]") for i, part in enumerate(known))


def _read_array(data: Any, where: str) -> Any:
    _expect(data, list | np.ndarray, "a list of numbers", where)
    return as_series(data, name=where) if len(data) else np.zeros(0)


def _read_mapping(kind: Any, data: Any, where: str) -> dict[str, Any]:
    _expect(data, Mapping, "named values", where)
    read = _reader(kind)
    return {key: read(part, f"{where}.{key}") for key, part in data.items()}


def _is_array(kind: Any) -> bool:
    """Whether an annotation means an array, also through an alias such as `NDArray` of numpy 2.5.

    From Python 3.12 on that is a `typing.TypeAliasType`, which hides the class that it means.
    """
    while hasattr(kind, "__value__"):
        kind = kind.__value__
    return (typing.get_origin(kind) or kind) is np.ndarray


def _expect(data: Any, kind: Any, words: str, where: str) -> None:
    if not isinstance(data, kind):
        raise InvalidInput(f"{where} is {short(data)}, expected {words}")


def _is_known(kind: Any, data: Any) -> bool:
    """Whether this version knows the code of a Notice and the like; retired ones are left out."""
    codes: Any = _hints(kind).get("code") if hasattr(kind, "__dataclass_fields__") else None
    if not isinstance(codes, enum.EnumMeta) or not isinstance(data, Mapping):
        return True
    return "code" not in data or data["code"] in list[Any](codes)


def _read_plain(kind: Any, data: Any, where: str) -> Any:
    if kind is Any:
        return data
    try:
        decoded = kind(data)
        if isinstance(decoded, int):
            float(decoded)  # as which reports show it
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{where} is {short(data)}, expected {getattr(kind, '__name__', kind)}"
        ) from error
    return decoded


def _read_dataclass(kind: Any, data: Any, where: str) -> Any:
    _expect(data, Mapping, f"the fields of {kind.__name__}", where)
    hints, retired = _hints(kind), getattr(kind, "_retired", {})
    fields = {
        name: _reader(hints[name])(_current(value, retired.get(name, {})), f"{where}.{name}")
        for name, value in data.items()
        if name in hints
    }
    try:
        return kind(**fields)
    except TypeError as error:
        raise InvalidInput(f"{where} is no {kind.__name__}: {error}") from error


def _current(value: Any, retired: Mapping[str, str]) -> Any:
    """Return what stands for a value that a version before had."""
    return retired.get(value, value) if isinstance(value, str) else value


_hints = cache(typing.get_type_hints)


def is_there(path: Path, check: Callable[[Path], bool] = Path.exists) -> bool:
    """Return whether a path is there, or is a file or folder; no name is too long to ask."""
    try:
        return check(path)
    except OSError:
        return False
