"""Texts about files from which no readings are read, and of columns and rows to choose."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import click.testing
from tests.texts.causes.cli import typed
from tests.texts.rendering import run

UNREADABLE: Mapping[str, tuple[str, str | None]] = {
    "nothing": ("", None),
    "blanks": (" \n\n", None),
    "a header alone": ("time\n", None),
    "a word among numbers": ("1\n2\nthree\n", None),
    "a missing cell": ("a,b\n1,2\n3\n", "b"),
    "a NaN": ("1\nnan\n2\n", None),
    "an infinity": ("1\n2\ninf\n", None),
    "an infinity by overflow": ("[1, 1e999]", None),
    "several columns and none named": ("a,b\n1,2\n", None),
    "a column that is not there": ("a,b\n1,2\n", "c"),
    "a column number that is not there": ("1,2\n3,4.5\n", "2"),
    "thousands apart": ("1\n1_000\n", None),
    "thousands apart at first": ("1_000\n2\n", None),
    "decimal commas below a header": ("time\n1,5\n2,5\n", None),
    "decimal commas, and the only name": ("time\n1,5\n2,5\n", "time"),
    "decimal commas without a header": ("1,5\n2,5\n", None),
    "decimal commas, and the number of a column": ("\n12,5\n2,05\n", "0"),
    "decimal commas and exponents": ("-1,5e-3\n2,25E4\n", "1"),
    "thousands by commas in all lines": ("1,234,567\n2,345,678\n", "2"),
    "decimal commas in quotes": ('time\n"1,5"\n"2,5"\n', None),
    "decimal commas in quotes at first": ('"1,5"\n2\n3\n', None),
    "decimal commas and semicolons": ("1,234;5,6\n2,3;5,7\n", "0"),
    "a decimal comma and semicolons": ("run;time\na;1\nb;2,5\n", "time"),
    "a decimal comma and tabs": ("run\ttime\na\t1,5\n", "time"),
    "a decimal comma late": ("time\n1\n2\n3,5\n", None),
    "thousands by commas": ("time\n999\n1,001\n", None),
    "thousands by commas at first": ("1,001\n999\n", "0"),
    "thousands by spaces": ("999\n1 001\n", None),
    "thousands by other signs": ("1'001\n999\n", None),
    "thousands by hard spaces": ("1\xa0001\n999\n", None),
    "an empty cell": ("a,b\n1,2\n3,\n", "b"),
    "an extra cell": ("a,b\n1,2\n3,4,5\n", "a"),
    "an extra cell without header": ("1;2\n3;4;5\n", "0"),
    "a header with a cell too many": ("a,b,c\n1,2\n", "a"),
    "a delimiter that no name has": ("time\n1,\n2,\n", None),
    "two names that are equal": ("t,t\n1,2\n", "t"),
    "names that are numbers": (",0\n0,1.5\n1,2.5\n", "1"),
    "a unit after the first number": ("12ms\n13\n", None),
    "a unit after the second": ("t\n12\n13ms\n", None),
    "a unit of no time": ("t\n12ms\n13kB\n", None),
    "counts after a time": ("t\n12ms\n9/10\n", None),
    "times and numbers in JSON": ('["12ms", 3]', None),
    "a path that leads nowhere": ('{"a": [1]}', "a.b"),
    "a path that not all have": ('[{"a": {"t": 1}}, {"a": 2}]', "a.t"),
    "different units": ("950 ms\n1.2 s\n", "0"),
    "a sign that is not a minus": ("−5\n3\n", None),
    "a NUL byte at first": ("1\x00\n2\n", None),
    "a NUL byte": ("1\n2\x00\n", None),
    "a quote that is never closed": ('time\n5\n6\n5.5\n"1\n2\n3\n', None),
    "a quoted cell over two lines": ('a,t\n"x\ny",1\nz,2\n', "t"),
    "digits after a quoted cell": ('t\n"1"2\n3\n', None),
    "half a JSON list": ("[1, 2,", None),
    "a string in a JSON list": ('[1, "x"]', None),
    "a null in a JSON list": ("[1, null]", None),
    "a truth in a JSON list": ("[12.5, 12.6, true]", None),
    "a truth in JSON objects": ('[{"t": 1}, {"t": false}]', "t"),
    "a 2-D JSON list": ("[[1, 2], [3, 4]]", None),
    "an empty JSON list": ("[]", None),
    "a JSON object without a list": ('{"time": 3}', None),
    "several lists and none named": ('{"a": [1], "b": [2]}', None),
    "an object without the key": ('[{"t": 1}, {"u": 2}]', "t"),
    "a key for a plain list": ("[1, 2]", "t"),
    "deeply nested JSON": ("[" * 100_000, None),
}
TWO = [("sort", 1.0), ("copy", 9.0), ("sort", 1.1), ("copy", 9.1)]


def table(rows: list[tuple[str, float]], head: str = "name,time\n", mark: str = ",") -> str:
    """Return a table of names and times."""
    return head.replace(",", mark) + "".join(f"{name}{mark}{time}\n" for name, time in rows)


UNLIKE: Mapping[str, tuple[str, str | None]] = {
    "rows of two things": (table(TWO), "time"),
    "rows of two things, no header": (table(TWO, head=""), "1"),
    "rows of two things, tabs": (table(TWO, mark="\t"), "time"),
    "rows of two things, a long table": (table(TWO * 4_000), "time"),
    "labels after the head": (table(TWO[:1] * 9_000 + TWO), "time"),
    "objects of two things": (json.dumps([{"name": n, "t": t} for n, t in TWO]), "t"),
    "two things, an object per line": (
        "".join(json.dumps({"name": n, "t": t}) + "\n" for n, t in TWO * 3_000),
        "t",
    ),
    "truths": (json.dumps([{"ok": n == "sort", "t": t} for n, t in TWO]), "t"),
    "units in blocks": (table([("s", 1.0)] * 3 + [("MB", 5.0)] * 3, "unit,v\n"), "v"),
    "perf stat": (
        "# started on Sat Nov 28 18:54:42 2026\n\n"
        + "1.26,msec,task-clock,1260000,100.00,0.001,CPUs utilized\n4,,faults,5060,100.00,,\n" * 3,
        "0",
    ),
    "one line of text above a table": ("Benchmark of today\nn,time\n1,2.5\n2,2.6\n", None),
    "lines of text above a table": ("Starting, at noon\nready\nn,time\n1,2.5\n2,2.6\n", None),
    "a reading that is missing": ("who,t\na,1\nb,2\na,N/A\n", "t"),
    "wrk": (
        "Running 30s test @ http://127.0.0.1:8080/\n  12 threads and 400 connections\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
        "    Latency   635.91us    0.89ms  12.92ms   93.69%\n"
        "Requests/sec: 748868.53\nTransfer/sec:    606.33MB\n",
        None,
    ),
    "a part of wrk": ("Requests/sec: 1234.5\nTransfer/sec: 1MB\nLatency 10ms 2ms\n", None),
    "time of a shell": ("\nreal\t0m1.234s\nuser\t0m0.100s\nsys\t0m0.020s\n", None),
    "POSIX time": ("real 1.23\nuser 0.10\nsys 0.02\n", None),
    "time of a shell with blanks": ("real    0m1.234s\nuser    0m0.100s\n", None),
    "GNU time": ("1.20user 0.03system 0:01.24elapsed 99%CPU (0avgtext+0avgdata 1max)k\n", None),
    "dd": ("1000+0 records in\n1000+0 records out\n1048576000 bytes (1.0 GB) copied\n", None),
    "XML in a line": ("<a><b/></a>\n", None),
    "XML": ('<?xml version="1.0"?>\n<testsuites>\n<testsuite name="a b" tests="2">\n', None),
    "other JSON": ('{"took": 5, "ok": true, "hits": {"n": 3}}', None),
    "a word": ("hello\n", None),
}


def read(text: str, column: str | None) -> click.testing.Result:
    """Return the texts about a file."""
    chosen = [] if column is None else ["--column", column]
    return run("analyze", "file", *chosen, files={"file": text})


def of_bytes(content: bytes, *words: str) -> click.testing.Result:
    """Return the texts about a file of these bytes."""
    Path("file").write_bytes(content)
    return run("analyze", "file", *words)


CAUSES: dict[str, Callable[[], object]] = {
    name: partial(read, *content) for name, content in {**UNREADABLE, **UNLIKE}.items()
}
CAUSES |= {
    "no text": lambda: of_bytes(b"\xff\x00\x80" * 10),
    "standard input": lambda: typed("1\n2\nx\n", "analyze"),
    "lines that are left out count": lambda: typed(
        "a\n\nb\ntime\n1.0\nthree\n", "analyze", "--ignore-lines", "3"
    ),
    "times, and bytes are asked for": lambda: of_bytes(b"time\n12ms\n", "--unit", "kB"),
    "a last line that was cut": lambda: of_bytes(b"1.25\n2.5\n1."),
    "a last line that may be cut": lambda: of_bytes(b"1.25\n2.5\n1.3"),
    "a unit of the project and one of the table": lambda: run(
        *("analyze", "f.csv", "--column", "size"),
        files={
            "pyproject.toml": '[tool.benchrigor.metrics]\nsize = "MB"\n',
            "f.csv": "size,unit\n3,kB\n4,kB\n",
        },
    ),
}
