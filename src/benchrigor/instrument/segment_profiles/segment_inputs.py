"""What a program may say of its segments, checked where it says it."""

from __future__ import annotations

import contextlib
import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput

__all__ = ["amount_of", "path_problem", "text_of"]

_LARGEST = 1e150
"""Beyond it a profile takes no number."""


def amount_of(value: Any, name: str) -> int | float:
    """Return a finite number as Python's own, or raise saying what it is instead."""
    number: int | float | None = None
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # a fraction may be too large
            number = int(value) if isinstance(value, Integral) else float(value)
    if number is not None and abs(number) <= _LARGEST:
        return number
    told = "a whole number beyond 1e150" if isinstance(number, int) else repr(value)
    raise InvalidInput(f"{name} is {told}, expected a finite number of at most 1e150")


def text_of(value: object, name: str) -> str:
    """Return a string as Python's own, or raise saying why no file can hold it."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {value!r}, expected a string")
    text = str.__str__(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{name} is {text!r}, which has half of a character (a surrogate), expected text "
                "that UTF-8 can write"
            ) from error
    return text


def path_problem(path: object) -> str:
    """Return why no file can be written there; empty where it can, as far as one knows."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        return f"path is {path!r}, expected a str or Path that names a file"
    if os.path.isdir(path):  # noqa: PTH112  # never raises, unlike pathlib's
        return f"path is {path}, which is a folder, expected a file in it"
    folder = os.path.dirname(path) or "."  # noqa: PTH120
    if not os.path.isdir(folder):  # noqa: PTH112
        return f"path is {path}, expected one in a folder that exists"
    if not os.access(folder, os.W_OK):
        return f"path is {path}, expected one in a folder that can be written to"
    return ""
