"""Twelve functions of all kinds, from twenty nanoseconds to three seconds."""

from __future__ import annotations

import hashlib
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

__all__ = ["FUNCTIONS"]

_ROWS = {f"row {number}": [number, 2.5, None] for number in range(20)}
_RANDOM = random.Random(1)
_NUMBERS = [_RANDOM.random() for _ in range(5_000)]
_BYTES = bytes(2_000_000)
_pool: list[ThreadPoolExecutor] = []
_kept: list[bytes] = []
_calls = 0


def nothing() -> None:
    """Return at once: some twenty nanoseconds."""


def dictionary() -> None:
    """Make a small dictionary: some hundred nanoseconds."""
    {"a": 1, "b": 2}  # noqa: B018  # that is the work


def dump() -> None:
    """Write JSON: some ten microseconds."""
    json.dumps(_ROWS)


def sort() -> None:
    """Sort five thousand numbers: a millisecond."""
    sorted(_NUMBERS)


def loop() -> None:
    """Count: some tens of milliseconds."""
    for number in range(1_000_000):
        number * number


def long() -> None:
    """Count for some three seconds."""
    for _ in range(100):
        loop()


def sleep() -> None:
    """Sleep for twenty milliseconds."""
    time.sleep(0.02)


def warm_up() -> None:
    """Take three times as long for the first three hundred calls."""
    global _calls  # noqa: PLW0603
    _calls += 1
    for _ in range(3 if _calls <= 300 else 1):
        sorted(_NUMBERS)


def bimodal() -> None:
    """Take twice as long in every other call."""
    global _calls  # noqa: PLW0603
    _calls += 1
    for _ in range(1 + _calls % 2):
        sorted(_NUMBERS)


def leak() -> None:
    """Keep some kilobytes with each call."""
    _kept.append(bytes(4_096))


def threads() -> None:
    """Compute in two threads at once."""
    if not _pool:
        _pool.append(ThreadPoolExecutor(2))
    list(_pool[0].map(_digest, range(2)))


def hash_() -> None:
    """Compute outside of the interpreter: some milliseconds."""
    _digest(0)


def _digest(_number: int) -> None:
    hashlib.sha256(_BYTES).digest()


FUNCTIONS = (
    *(nothing, dictionary, dump, sort, loop, long),
    *(sleep, warm_up, bimodal, leak, threads, hash_),
)
