"""The door for readings: only 1-D sequences of finite numbers pass."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.one_line import OneLine
from benchrigor.safe_text import hide_in_text

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST = 1e150  # Beyond this size a sum of squares leaves the range of a double


def as_series(values: object, *, name: str = "values", gaps: bool = False) -> Floats:
    """Check readings and return them as a read-only, contiguous float64 array.

    Parameters
    ----------
    values
        A 1-D sequence of finite numbers: list, tuple, range, array (any integer or float type)
        or anything numpy can view as one.
    name
        What errors call the values.
    gaps
        Whether NaN may stand for unknown values.

    Returns
    -------
    numpy.ndarray
        Shape (n,), n >= 1, float64, not writeable. A caller's array is copied, never frozen; one
        that is frozen already is returned as it is.

    Raises
    ------
    InvalidInput
        Naming the shape, or the index and value of the first reading that is not a finite number.

    Examples
    --------
    >>> as_series([1, 2.5])
    array([1. , 2.5])
    >>> as_series([1.0, float("nan")])
    Traceback (most recent call last):
    ...
    benchrigor.errors.InvalidInput: values[1] is nan, expected a finite number
    """
    series = _array_of_numbers(values, name)
    if series.ndim != 1:
        raise InvalidInput(f"{name} has shape {series.shape}, expected one dimension: (n,)")
    if series.size == 0:
        raise InvalidInput(f"{name} is empty, expected at least one number")
    # One pass over the extremes finds both NaN and inf, without a temporary of n flags.
    known = np.where(np.isnan(series), 0.0, series) if gaps else series
    low, high = float(known.min()), float(known.max())
    if not (low >= -LARGEST and high <= LARGEST):  # false for NaN too
        raise InvalidInput(_first_bad(known, name))
    if series is values and _is_frozen(series):
        return series
    series = np.array(series, dtype=np.float64, order="C")
    series.flags.writeable = False
    return series


def _is_frozen(series: npt.NDArray[Any]) -> bool:
    """Return whether an array is as `as_series` makes it, and shares its memory with no other."""
    flags, is_plain = series.flags, type(series) is np.ndarray and series.dtype == np.float64
    return is_plain and flags.owndata and flags.c_contiguous and not flags.writeable


def as_invocations(invocations: object, *, name: str = "invocations") -> tuple[Floats, ...]:
    """Check the readings of invocations and return them as read-only float64 arrays.

    Parameters
    ----------
    invocations
        A sequence of series (`as_series`), one per invocation; their lengths may differ.
    name
        What errors call them.

    Raises
    ------
    InvalidInput
        When there is no invocation; else naming all series without readings.

    Examples
    --------
    >>> [series.size for series in as_invocations([[1.0, 2.0], [3.0]])]
    [2, 1]
    """
    if isinstance(invocations, str | bytes) or not isinstance(invocations, Sequence | np.ndarray):
        raise InvalidInput(f"{name} is {invocations!r}, expected a sequence of series")
    if len(invocations) == 0:
        raise InvalidInput(f"{name} is empty, expected at least one series")
    checked, problems = list[Floats](), list[str]()
    for index, values in enumerate(invocations):
        try:
            checked.append(as_series(values, name=f"{name}[{index}]"))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return tuple(checked)


def check_items(
    series: Floats, fits: npt.NDArray[np.bool_], expected: str, *, name: str = "values"
) -> None:
    """Raise InvalidInput that names the first item of a series that does not fit."""
    if not fits.all():
        index = int(np.argmin(fits))
        raise InvalidInput(f"{name}[{index}] is {float(series[index])!r}, expected {expected}")


def _array_of_numbers(values: object, name: str) -> npt.NDArray[Any]:
    """Return ``values`` as an array of ints or floats, or raise naming the items that are not."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} is {short(values)}, expected a 1-D sequence of numbers")
    # Without the module, which takes 15 ms to load, no array has a mask.
    masked: Any = sys.modules.get("numpy.ma")
    if masked and isinstance(values, masked.MaskedArray) and masked.getmaskarray(values).any():
        raise InvalidInput(f"{name} has masked entries, expected a number at every index")
    if not hasattr(values, "__array__"):
        values = list(values)
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind is None or kind not in "biuf":
        _check_items(values, name)
        try:
            return np.asarray(values, dtype=np.float64)
        except OverflowError:
            raise InvalidInput(f"{name} holds a number too large for a float") from None
    return np.asarray(values)


def _check_items(items: Iterable[object], name: str) -> None:
    """Raise for the first item that is not a real number, or a row of another dimension."""
    for index, item in enumerate(items):
        if type(item) is float or type(item) is int:
            continue
        if isinstance(item, Sequence | np.ndarray) and not isinstance(item, str | bytes):
            raise InvalidInput(
                f"{name}[{index}] is {short(item)}: {name} has two dimensions, expected one: (n,)"
            )
        if not isinstance(item, numbers.Real | np.number | np.bool_) or isinstance(
            item, np.complexfloating
        ):
            raise InvalidInput(f"{name}[{index}] is {short(item)}, expected a number")


def _first_bad(series: npt.NDArray[Any], name: str) -> str:
    """Say which reading is not a finite number of usable size."""
    index = next(i for i, item in enumerate(series) if not abs(float(item)) <= LARGEST)
    item = float(series[index])
    expected = f"number below {LARGEST:g} in size" if math.isfinite(item) else "finite number"
    return f"{name}[{index}] is {item!r}, expected a {expected}"


def short(item: object) -> str:
    """Return the beginning of a value's representation, for an error that names it."""
    try:
        text = hide_in_text(repr(item)[:1_000])
    except (ValueError, RecursionError):  # a whole number of thousands of digits, deep nesting
        return f"of type {type(item).__name__} and too long to show"
    kind = type(item).__name__
    if isinstance(item, OneLine) and not text.startswith(kind):  # its line does not name its type
        text = f"{kind}({text})"
    return text if len(text) <= 40 else f"{text[:37]}..."
