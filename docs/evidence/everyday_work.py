"""What the rivals of the everyday script measure too: functions that need no benchrigor."""

from __future__ import annotations

import json
import random
import sqlite3
import zlib

__all__ = ["COMMAND", "FUNCTIONS"]

FUNCTIONS = ("sort_numbers", "dump_json", "insert_rows")
COMMAND = ["python3", "-I", "-S", "-c", "sorted(range(200_000, 0, -1))"]

_NUMBERS = random.Random(1).sample(range(100_000), 10_000)
_TREE = {str(n): {"id": n, "tags": [n] * 5, "name": {"first": str(n)}} for n in range(50)}
_PAIR = (1, 2)
_BYTES = random.Random(2).randbytes(2**19) * 2
_STEPS = random.Random(3).sample(range(30_000), 30_000)
_PATH = dict(zip(_STEPS, [*_STEPS[1:], _STEPS[0]], strict=True))
_LOOP = {0: 0}
_ROWS = [(n, str(n)) for n in range(1_000)]


def sort_numbers() -> None:
    """Sort ten thousand integers."""
    sorted(_NUMBERS)


def dump_json() -> None:
    """Turn a nested dictionary into text."""
    json.dumps(_TREE)


def insert_rows() -> None:
    """Insert a thousand rows into a table in memory."""
    base = sqlite3.connect(":memory:")
    base.execute("create table numbers (n integer, name text)")
    base.executemany("insert into numbers values (?, ?)", _ROWS)
    base.close()


def call_little() -> None:
    """Add two numbers, which takes less than a microsecond."""
    sum(_PAIR)


def compress_much() -> None:
    """Compress a megabyte, which takes some 20 ms."""
    zlib.compress(_BYTES, 1)


def walk_memory() -> None:
    """Follow 500 steps of a path through a megabyte."""
    place = 0
    for _ in range(500):
        place = _PATH[place]


def walk_nowhere() -> None:
    """Do the same at one place."""
    place = 0
    for _ in range(500):
        place = _LOOP[place]
