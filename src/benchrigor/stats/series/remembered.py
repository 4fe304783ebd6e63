"""Results of series that are looked at again and again, as the rounds of a session are."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Hashable
from typing import TypeVar

from benchrigor.model.series import Floats

T = TypeVar("T")

_MOST = 1024  # results of one function, the latest


class _Numbers:
    """The numbers of a series as a key; the series itself is there for the computation alone."""

    __slots__ = ("digest", "series")

    def __init__(self, series: Floats) -> None:
        self.digest = hashlib.blake2b(series.tobytes(), digest_size=16).digest()
        self.series: Floats | None = series

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Numbers) and self.digest == other.digest


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function of a series that computes each result once, by the numbers of the series.

    A session looks at all of its rounds whenever one is added; the earlier ones are as they were.
    The result must be immutable. What raises is computed again.
    """

    @functools.lru_cache(_MOST)
    def compute(numbers: _Numbers, *given: Hashable) -> T:
        series, numbers.series = numbers.series, None
        return function(series, *given)

    @functools.wraps(function)
    def recall(series: Floats, *given: Hashable) -> T:
        return compute(_Numbers(series), *given)

    return recall
