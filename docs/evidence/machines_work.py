"""Workloads of equal units, so that a planted difference is one unit more or several."""

from __future__ import annotations

import hashlib
import json
import random
import re
import sqlite3
import time
from collections.abc import Callable

__all__ = [
    "COMMAND",
    "DEFAULTS",
    "FUNCTIONS",
    "INTERPRETER",
    "PLANTED",
    "UNITS",
    "WORKLOADS",
    "pair_of",
    "work",
]

UNITS = 20
PLANTED = {"5 %": 21, "10 %": 22, "20 %": 24, "a factor of 2": 40}
"""How many units the candidate has, by its difference."""


def _sort() -> Callable[[], object]:
    rng = random.Random(1)
    numbers = [rng.random() for _ in range(400)]
    return lambda: sorted(numbers)


def _json() -> Callable[[], object]:
    rows = [{"id": each, "name": str(each) * 3, "tags": [each] * 5} for each in range(5)]
    return lambda: json.dumps(rows)


def _sqlite() -> Callable[[], object]:
    base = sqlite3.connect(":memory:")
    base.execute("create table numbers (n integer, name text)")
    base.executemany("insert into numbers values (?, ?)", [(n, str(n)) for n in range(100)])
    query = "select sum(n) from numbers where name like '%7%'"
    return lambda: base.execute(query).fetchall()


def _re() -> Callable[[], object]:
    rng = random.Random(1)
    text, pattern = " ".join(str(rng.random()) for _ in range(8)), re.compile(r"\d+\.(\d)7")
    return lambda: pattern.findall(text)


def _matmul() -> Callable[[], object]:
    import numpy as np  # noqa: PLC0415  # the other workloads do without

    matrix = np.random.default_rng(1).random((64, 64))
    return lambda: matrix @ matrix


_OF = {"sort": _sort, "json": _json, "sqlite": _sqlite, "re": _re, "matmul": _matmul}
FUNCTIONS = tuple(_OF)
INTERPRETER = FUNCTIONS[:-1]
"""Those that the pace of the interpreter limits."""
COMMAND = "true"
WORKLOADS = (*FUNCTIONS, COMMAND)


_BLOCK = bytes(range(256)) * 64
_NUMBERS = [random.Random(1).random() for _ in range(400)]
_ROWS = [{"id": each, "name": str(each) * 3, "tags": [each] * 5} for each in range(5)]


class _Point:
    __slots__ = ("x", "y")

    def __init__(self, x: int, y: list[int]) -> None:
        self.x, self.y = x, y


def _empty() -> None:
    pass


def _loop() -> int:
    total = 0
    for each in range(300):
        total += each * each % 7
    return total


DEFAULTS: dict[str, Callable[[], object]] = {
    "empty": _empty,
    "loop": _loop,
    "dumps": lambda: json.dumps(_ROWS),
    "sorted": lambda: sorted(_NUMBERS),
    "sha256": lambda: hashlib.sha256(_BLOCK).digest(),
    "objects": lambda: [_Point(each, [each]) for each in range(500)],
    "copy 4 MB": lambda: bytearray(4_000_000)[:],
    "sleep 2 ms": lambda: time.sleep(0.002),
}
"""Functions of default runs: byte code, native code, allocation, and sleep."""


def work(name: str, units: int = UNITS) -> Callable[[], None]:
    """Return a function that does so many units of a workload."""
    return pair_of(name, units, units)[0]


def __getattr__(name: str) -> Callable[[], None]:
    """Give the function of a workload, ``run_json``, by which a fresh interpreter finds it."""
    workload = name.removeprefix("run_")
    if name.startswith("run_") and workload in _OF:
        return work(workload)
    raise AttributeError(name)


def pair_of(name: str, units: int, others: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return two functions that do units of one workload, with the same data in the same place."""
    unit = _OF[name]()

    def first() -> None:
        for _ in range(units):
            unit()

    def second() -> None:
        for _ in range(others):
            unit()

    return first, second
