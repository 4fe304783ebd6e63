"""Results of series that are looked at again and again, as the rounds of a session are."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

from benchrigor.model import Floats

T = TypeVar("T")

_MOST = 1024  # results of one function, the latest


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function of a series that computes each result once, by the numbers of the series.

    A session looks at all of its rounds whenever one is added; the earlier ones are as they were.
    The result must be immutable. What raises is computed again.
    """
    known: dict[Hashable, T] = {}
    lock = threading.Lock()

    @functools.wraps(function)
    def recall(series: Floats, *given: Hashable) -> T:
        key = (hashlib.blake2b(series.tobytes(), digest_size=16).digest(), given)
        with lock:
            if key in known:
                return known[key]
        result = function(series, *given)
        with lock:
            if len(known) >= _MOST:
                known.pop(next(iter(known)))
            known[key] = result
        return result

    return recall
