"""Workloads of many kinds, each a function of some microseconds to milliseconds, by name.

Those of `INTERPRETER` are limited by the interpreter, and by short calls of C on its objects; the
others by long calls of C, by arithmetic or by memory.
"""

from __future__ import annotations

import ast
import bz2
import collections
import copy
import csv
import datetime
import decimal
import fractions
import hashlib
import heapq
import io
import itertools
import json
import pickle
import random
import re
import sqlite3
import statistics
import string
import struct
import textwrap
import zlib
from array import array
from collections.abc import Callable

import numpy as np

__all__ = ["INTERPRETER", "WORKLOADS", "make"]

Work = Callable[[], object]


def _objects() -> Work:
    class Point:
        def __init__(self, x: float, y: float) -> None:
            self.x, self.y = x, y

        def moved(self, by: float) -> Point:
            return Point(self.x + by, self.y - by)

    def run() -> float:
        point = Point(0.0, 1.0)
        for _ in range(200):
            point = point.moved(0.5)
        return point.x

    return run


def _json_dumps() -> Work:
    rows = [{"id": each, "name": str(each) * 3, "tags": [each] * 5} for each in range(60)]
    return lambda: json.dumps(rows)


def _json_loads() -> Work:
    rows = [{"id": each, "name": str(each) * 3, "tags": [each] * 5} for each in range(60)]
    text = json.dumps(rows)
    return lambda: json.loads(text)


def _sort() -> Work:
    numbers = [random.Random(each).random() for each in range(2_000)]
    return lambda: sorted(numbers)


def _sort_key() -> Work:
    rng = random.Random(3)
    words = ["".join(rng.choices(string.ascii_letters, k=9)) for _ in range(1_000)]
    return lambda: sorted(words, key=str.lower)


def _sqlite() -> Work:
    base = sqlite3.connect(":memory:")
    base.execute("create table numbers (n integer, name text)")
    base.executemany("insert into numbers values (?, ?)", [(n, str(n)) for n in range(2_000)])
    return lambda: base.execute("select sum(n) from numbers where name like '%7%'").fetchall()


def _regex() -> Work:
    rng = random.Random(4)
    text, pattern = " ".join(str(rng.random()) for _ in range(800)), re.compile(r"\d+\.(\d)7")
    return lambda: pattern.findall(text)


def _regex_sub() -> Work:
    text, pattern = "the quick brown fox " * 100, re.compile(r"(\w+) (\w+)")
    return lambda: pattern.sub(r"\2 \1", text)


def _dict_comprehension() -> Work:
    return lambda: {each: each * 2 for each in range(1_000)}


def _list_append() -> Work:
    def run() -> list[int]:
        numbers: list[int] = []
        for each in range(2_000):
            numbers.append(each)  # noqa: PERF402  # the loop is what is measured
        return numbers

    return run


def _fibonacci() -> Work:
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    return lambda: fibonacci(14)


def _bodies() -> Work:
    def run() -> float:
        x, v = 1.0, 0.0
        for _ in range(1_000):
            v -= x * 0.01
            x += v * 0.01
        return x

    return run


def _generator() -> Work:
    return lambda: sum(each * each for each in range(1_500))


def _deepcopy() -> Work:
    rows = [{"id": each, "tags": [each] * 3} for each in range(20)]
    return lambda: copy.deepcopy(rows)


def _formatting() -> Work:
    return lambda: [f"{each:05d} {each / 3:.3f}" for each in range(300)]


def _split_join() -> Work:
    text = " ".join(str(each) for each in range(1_000))
    return lambda: "-".join(text.split())


def _decimals() -> Work:
    number = decimal.Decimal("1.0001")

    def run() -> decimal.Decimal:
        total = decimal.Decimal(1)
        for _ in range(300):
            total = total * number + 1
        return total

    return run


def _fractions() -> Work:
    return lambda: sum(fractions.Fraction(1, each) for each in range(1, 25))


def _dates() -> Work:
    texts = [f"2024-03-{day:02d}T12:30:{day:02d}" for day in range(1, 29)]
    return lambda: [datetime.datetime.fromisoformat(each).isoformat() for each in texts]


def _strptime() -> Work:
    day = "2024-03-01 +0000"
    return lambda: [datetime.datetime.strptime(day, "%Y-%m-%d %z") for _ in range(20)]


def _csv() -> Work:
    text = "\n".join(",".join(str(k * j) for k in range(8)) for j in range(80))
    return lambda: list(csv.reader(io.StringIO(text)))


def _parse() -> Work:
    source = textwrap.dedent("def f(x):\n    return [y * 2 for y in x if y > 3]\n") * 8
    return lambda: ast.parse(source)


def _heap() -> Work:
    numbers = [random.Random(k).random() for k in range(800)]

    def run() -> float:
        heap: list[float] = []
        for each in numbers:
            heapq.heappush(heap, each)
        return heapq.heappop(heap)

    return run


def _template() -> Work:
    template = string.Template("$name has $count of $thing")
    return lambda: [template.substitute(name="a", count=k, thing="b") for k in range(60)]


def _pickle() -> Work:
    rows = [{"id": each, "name": str(each), "tags": [each] * 5} for each in range(100)]
    return lambda: pickle.loads(pickle.dumps(rows))


def _counter() -> Work:
    words = [str(each % 97) for each in range(2_000)]
    return lambda: collections.Counter(words)


def _permutations() -> Work:
    return lambda: sum(1 for _ in itertools.permutations(range(6)))


def _median() -> Work:
    numbers = [random.Random(k).random() for k in range(300)]
    return lambda: statistics.median(numbers) + statistics.fmean(numbers)


def _sets() -> Work:
    left, right = set(range(0, 3_000, 2)), set(range(0, 3_000, 3))
    return lambda: len(left & right) + len(left | right)


def _struct() -> Work:
    packed = struct.pack("<500d", *map(float, range(500)))
    return lambda: struct.unpack("<500d", packed)


def _big_numbers() -> Work:
    number = 3**2_000
    return lambda: number * number % (number - 7)


def _zlib() -> Work:
    data = " ".join(str(random.Random(k).random()) for k in range(300)).encode()
    return lambda: zlib.compress(data)


def _bz2() -> Work:
    data = " ".join(str(random.Random(k).random()) for k in range(300)).encode()
    return lambda: bz2.compress(data)


def _sha256() -> Work:
    data = bytes(range(256)) * 256
    return lambda: hashlib.sha256(data).digest()


def _translate() -> Work:
    data, table = bytes(range(256)) * 400, bytes(reversed(range(256)))
    return lambda: data.translate(table)


def _find() -> Work:
    text = "abcdefghij" * 20_000 + "needle"
    return lambda: text.find("needle")


def _matmul() -> Work:
    matrix = np.random.default_rng(1).random((100, 100))
    return lambda: matrix @ matrix


def _fft() -> Work:
    signal = np.random.default_rng(1).random(4_096)
    return lambda: np.fft.rfft(signal)


def _numpy_sort() -> Work:
    numbers = np.random.default_rng(1).random(5_000)
    return lambda: np.sort(numbers)


def _numpy_small() -> Work:
    numbers = np.random.default_rng(1).random(50)

    def run() -> float:
        total = 0.0
        for _ in range(30):
            total += float((numbers * 2.0 + 1.0).sum())
        return total

    return run


def _svd() -> Work:
    matrix = np.random.default_rng(1).random((40, 40))
    return lambda: np.linalg.svd(matrix)


def _exp() -> Work:
    numbers = np.random.default_rng(1).random(20_000)
    return lambda: np.exp(numbers)


def _sum_16_mb() -> Work:
    numbers = np.random.default_rng(1).random(2_000_000)
    return numbers.sum


def _copy_8_mb() -> Work:
    data = bytearray(8_000_000)
    return lambda: bytes(data)


def _copy_200_kb() -> Work:
    data = bytearray(200_000)
    return lambda: bytes(data)


def _random_reads() -> Work:
    numbers = array("q", range(4_000_000))
    rng = random.Random(5)
    places = [rng.randrange(4_000_000) for _ in range(2_000)]

    def run() -> int:
        total = 0
        for each in places:
            total += numbers[each]
        return total

    return run


def _many_objects() -> Work:
    rng = random.Random(6)
    objects = [str(each) for each in range(300_000)]
    rng.shuffle(objects)
    state = [0]

    def run() -> int:
        state[0] = start = (state[0] + 3_000) % 290_000
        return sum(map(len, objects[start : start + 3_000]))

    return run


def _large_dict() -> Work:
    rng = random.Random(7)
    known = {each: each for each in range(500_000)}
    places = [rng.randrange(500_000) for _ in range(1_500)]
    return lambda: [known[each] for each in places]


# Chosen by what they do, before anything was measured.
INTERPRETER: dict[str, Callable[[], Work]] = {
    "json dumps": _json_dumps,
    "json loads": _json_loads,
    "sort": _sort,
    "sort by key": _sort_key,
    "sqlite": _sqlite,
    "re": _regex,
    "re sub": _regex_sub,
    "dict": _dict_comprehension,
    "append": _list_append,
    "fibonacci": _fibonacci,
    "floats": _bodies,
    "generator": _generator,
    "objects": _objects,
    "deepcopy": _deepcopy,
    "format": _formatting,
    "split": _split_join,
    "decimal": _decimals,
    "fractions": _fractions,
    "dates": _dates,
    "strptime": _strptime,
    "csv": _csv,
    "parse": _parse,
    "heap": _heap,
    "template": _template,
    "pickle": _pickle,
    "counter": _counter,
    "permutations": _permutations,
    "median": _median,
    "sets": _sets,
    "numpy small": _numpy_small,
}
WORKLOADS = INTERPRETER | {
    "struct": _struct,
    "big numbers": _big_numbers,
    "zlib": _zlib,
    "bz2": _bz2,
    "sha256": _sha256,
    "translate": _translate,
    "find": _find,
    "matmul": _matmul,
    "fft": _fft,
    "numpy sort": _numpy_sort,
    "svd": _svd,
    "exp": _exp,
    "sum 16 MB": _sum_16_mb,
    "copy 8 MB": _copy_8_mb,
    "copy 200 KB": _copy_200_kb,
    "random reads": _random_reads,
    "many objects": _many_objects,
    "large dict": _large_dict,
}


def make(name: str) -> Work:
    """Return a workload, with its data made."""
    return WORKLOADS[name]()
