"""Refusals of files of other tools, and texts about gaps in such files."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.formats.written_files import DATA, MEANS, TIMES, WRITERS, lines, point, put

import benchrigor as br
from benchrigor.errors import BenchrigorError
from benchrigor.model import Notice

ASV = "asv-0.6.6/host1/1f4885ef-existing-py_tmp_venv_bin_python.json"
HYPERFINE_2 = "hyperfine-2.0.0.json"
GO, NAN = "BenchmarkA 10 3 ns/op\n", float("nan")
K6 = "metric_name,timestamp,metric_value\n"
JMETER = "timeStamp,elapsed,label,success\n"


def said(*contents: Any) -> Iterator[str | Notice]:
    """Yield the refusal of each of some files, or the Notices of its benchmarks.

    A file is a text or JSON; files of a folder are a tuple of pairs of path and content.
    """
    for index, content in enumerate(contents):
        files = dict(content) if isinstance(content, tuple) else {"a": content}
        yield from read(put(files, Path(str(index))))


def read(path: Path | str) -> Iterator[str | Notice]:
    """Yield the texts about one file."""
    try:
        for record in br.read_results(path):
            yield from record.session_notices if record.rounds else record.notices
    except BenchrigorError as error:
        yield str(error)


def changed(name: str, *at: str | int, to: Any) -> Any:
    """Return a sample of JSON in which one value is another."""
    part = whole = json.loads((DATA / name).read_text())
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = to
    return whole


def hyperfine(**result: object) -> dict[str, Any]:
    """Return a file of hyperfine with one result."""
    return {"results": [{"command": "a", **result}]}


def read_copy(name: str, changes: Mapping[str, str]) -> Iterator[str | Notice]:
    """Yield the texts about a copy of a folder in which some files are others."""
    folder = Path(shutil.copytree(DATA / name, name))
    for old, text in changes.items():
        (folder / old).write_text(text)
    return read(folder)


def of_bytes(raw: bytes) -> Iterator[str | Notice]:
    """Yield the texts about a file of these bytes."""
    Path("cut").write_bytes(raw)
    return read("cut")


def measured(**changes: object) -> Any:
    """Return a file of hyperfine 2 in which the first wall time is another."""
    at = ("results", 0, "measurements", 0, "time_wall_clock")
    wall = {"value": 1.0, "unit": "second", **changes}
    return changed(HYPERFINE_2, *at, to=wall)


def google(**changes: object) -> Iterator[Any]:
    """Yield files of google-benchmark in which one field of a repetition is another."""
    for field, value in changes.items():
        yield changed("google-benchmark.json", "benchmarks", 3, field, to=value)


SAMPLE: tuple[Any, ...] = (
    *({"times": [1.0], "iters": [1.0, 2.0]}, {"times": [1.0], "iters": [0.0]}, {"times": [1.0]}),
    *([], "{"),
)
TWO_TOOLS = {"results": [{"command": "a"}], "version": "1.0", "benchmarks": [{"runs": []}]}
ROWS = [{"name": "a", "unit": "s", "value": 1.0}, {"name": "a", "unit": "ms", "value": 1.0}]
FIELDS = {"real_time": NAN, "time_unit": "fortnight", "iterations": 0, "name": None}
CONTENTS: Mapping[str, tuple[Any, ...]] = {
    "readings that are not numbers": tuple(
        tuple(write([*TIMES, wrong], "one").items())
        for tool, write in WRITERS.items()
        for wrong in ("x", -0.5)
        if tool != "pyperf"
    ),
    "means alone": tuple(tuple(mean.items()) for mean in MEANS.values()),
    "no benchmarks": ("", " \n", hyperfine() | {"results": []}, "\ufeff", (("x.txt", "a"),)),
    "keys of two tools": (TWO_TOOLS,),
    "no tool": ("1\n2\n3\n", '{"time": [1, 2]}', f"{json.dumps(hyperfine(times=[1.0]))}\n{{}}\n"),
    "a version that is unknown": (
        *(changed(ASV, "version", to=1), changed(HYPERFINE_2, "schema_version", to=3)),
        {"version": "2.0", "benchmarks": [{"runs": [], "metadata": {"name": "a"}}]},
        {**WRITERS["benchrigor"](TIMES, "one")["a"], "schema": 99},
    ),
    "JSON that is cut": tuple((DATA / file).read_text()[:200] for file in ("jmh.json", ASV)),
    "a last line that is cut": ((DATA / "jmeter.csv").read_text()[:-4],),
    "text above the data": ("# k6\n" + (DATA / "k6.csv").read_text(),),
    "rows with more or fewer cells": (f"{JMETER}1,2\n", f"{K6}a,1,2,3\n"),
    "asv": (changed(ASV, "results", to={"a": 3}),),
    "criterion": tuple((("new/sample.json", file),) for file in SAMPLE),
    "go": (
        *(
            f"{GO}BenchmarkA 10 {rest}\n"
            for rest in ("3 ns/op 4", "ns/op 3", "NaN ns/op", "3 B/op")
        ),
        *(f"BenchmarkA 10 3 ns/op 4 B/op\n{GO}", '{"Action": "start", "Package": "p"}\n' * 2),
        f"{GO}{GO}BenchmarkA   \tpanic\nBenchmarkB   \t--- FAIL: BenchmarkB\nFAIL\n",
    ),
    "google-benchmark": (*google(**FIELDS), *google(error_occurred=True)),
    "hyperfine": (
        *(hyperfine(times=wrong) for wrong in ([], "1", [1.0, "NaN"])),
        hyperfine(times=[1.0, 2.0], memory_usage_byte=[1]),
        hyperfine(times=[1.0], command=3),
        hyperfine(times=[1.0, 2.0, 3.0], exit_codes=[0, 1, None]),
    ),
    "hyperfine 2": (
        *(measured(value="NaN"), measured(unit="fortnight")),
        changed(HYPERFINE_2, "primary_metric", to="instructions"),
        *(changed(HYPERFINE_2, "results", 0, "measurements", to=wrong) for wrong in ([], [1])),
    ),
    "jmh": (
        changed("jmh.json", 0, "primaryMetric", "rawData", 1, 2, to="+INF"),
        changed("jmh.json", 1, "primaryMetric", "scoreUnit", to="furlong"),
    ),
    "pytest-benchmark": tuple(
        changed("pytest-benchmark-5.3.1.json", "benchmarks", 1, "stats", to=wrong)
        for wrong in ({"data": [1.0, NAN], "iterations": 1}, {"data": [1.0], "iterations": 0})
    ),
    "jmeter": (
        *(f"{JMETER}1,{bad},a,true\n" for bad in ("", "x", "NaN", "1e999")),
        *(f'{JMETER}1,2,"a,true\n', f"{JMETER}1,2,a,true\n1,2,a,false\n"),
    ),
    "k6": (
        lines(point("a", 1), point("a", "x"))["a"],
        f"{K6}a,1,x\n",
        lines(*(point("http_req_duration", 1.0, name="a"), point("checks", 0)) * 2)["a"],
    ),
    "vegeta": ('{"code": 200, "timestamp": "t", "latency": "x"}\n' * 2,),
    "JSON lines": (ROWS, [ROWS[0], {**ROWS[0], "value": "x"}]),
}
CAUSES: dict[str, Callable[[], object]] = {
    title: partial(said, *contents) for title, contents in CONTENTS.items()
}
CAUSES |= {
    "asv: runs that failed": lambda: read_copy("asv-0.6.6", {}),
    "asv: a file of a folder that is cut": lambda: read_copy("asv-0.6.6", {ASV[10:]: "{"}),
    "asv: a list for a file": lambda: read_copy("asv-0.6.6", {ASV[10:]: "[1]"}),
    "asv: benchmarks that are cut": lambda: read_copy("asv-0.6.6", {"benchmarks.json": "{"}),
    "a compressed file that is cut, and no text": lambda: [
        *of_bytes(gzip.compress(b"[1, 2, 3]" * 9)[:20]),
        *of_bytes(b"\xff\xd8\xff\xe0\x80"),
    ],
    "a file that is missing, and a device": lambda: [*read("missing"), *read("/dev/zero")],
}
