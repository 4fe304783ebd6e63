"""Files as each tool writes them: with these times, or with means alone."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import benchrigor as br

DATA = Path(__file__).parent / "data"
TIMES = [0.101, 0.099, 0.102, 0.1, 0.098, 0.103, 0.1, 0.101, 0.099, 0.1, 0.102, 0.097]
Files = dict[str, Any]  # by their paths in a folder; one without a folder is a file


def put(files: Mapping[str, Any], folder: Path) -> Path:
    """Write files below a folder, and return the one without a name of its own, or the folder."""
    for name, held in files.items():
        path = folder / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
    return folder / "results" / ("a" if "a" in files else "")


def asv(times: list[Any], *names: str) -> Files:
    row = [[0.1], [], "1", 0, 0, [None], [None], [None], [None], [1], [len(times)], [times]]
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a"]
    columns += ["stats_ci_99_b"]
    columns += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples"]
    held = {"commit_hash": "0" * 40, "env_name": "a", "result_columns": columns, "version": 2}
    held["results"] = {f"time_{name}": row[: 12 if times else 11] for name in names}
    return {"host/1.json": held, "benchmarks.json": {}}


def criterion(times: list[Any], *names: str) -> Files:
    sample = {"times": times, "iters": [1] * len(times)}
    each = enumerate(names)
    return {
        f"{index}/new/{file}": held
        for index, name in each
        for file, held in (("sample.json", sample), ("benchmark.json", {"full_id": name}))
    }


def google(times: list[Any], *names: str) -> Files:
    row = {"run_type": "iteration", "iterations": 1, "time_unit": "s"}
    rows = [{**row, "name": name, "real_time": time} for name, time in rows_of(times, names)]
    return {"a": {"context": {}, "benchmarks": rows}}


def hyperfine_2(times: list[Any], *names: str) -> Files:
    runs = [{"time_wall_clock": {"value": each, "unit": "second"}} for each in times]
    results = [{"command": name, "measurements": runs} for name in names]
    return {"a": {"schema_version": 2, "results": results}}


def jmh(times: list[Any], *names: str) -> Files:
    score = {"scoreUnit": "s/op", "rawData": [times]}
    return {"a": [{"benchmark": name, "mode": "avgt", "primaryMetric": score} for name in names]}


def pyperf(times: list[Any], *names: str) -> Files:
    named = [{"runs": [{"values": [t]} for t in times], "metadata": {"name": n}} for n in names]
    return {"a": {"version": "1.0", "benchmarks": named}}


def pytest_benchmark(times: list[Any], *names: str) -> Files:
    stats = {"data": times, "iterations": 1}
    return {"a": {"machine_info": {}, "benchmarks": [{"name": n, "stats": stats} for n in names]}}


def record(times: list[Any], *names: str) -> Files:
    told = br.read_results(DATA / "hyperfine.json")[0].to_dict()
    told["rounds"] = [{**told["rounds"][0], "readings": {"time": t}} for t in times]
    told |= {"analyses": [], "name": names[0]}
    return {"a": told}


def lines(*objects: Any) -> Files:
    return {"a": "".join(f"{json.dumps(each)}\n" for each in objects)}


def table(header: list[str] | None, rows: Any) -> Files:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*([header] if header else []), *rows])
    return {"a": text.getvalue()}


def rows_of(times: list[Any], names: tuple[str, ...]) -> Any:
    return itertools.product(names, times)


def scaled(time: Any, factor: float) -> Any:
    return int(time * factor) if isinstance(time, float) and math.isfinite(time) else time


def go(times: list[Any], *names: str) -> Files:
    kept = ((re.sub(r"\s", "_", name), time) for name, time in rows_of(times, names))
    return {"a": "".join(f"Benchmark{name} 1 {time} ns/op\n" for name, time in kept) + "PASS\n"}


def point(metric: str, value: Any, **tags: str) -> dict[str, Any]:
    """Return a point as k6 writes it."""
    return {"type": "Point", "metric": metric, "data": {"value": value, "tags": tags}}


WRITERS: dict[str, Callable[..., Files]] = {
    "asv": asv,
    "criterion": criterion,
    "google-benchmark": google,
    "hyperfine": lambda times, *names: {
        "a": {"results": [{"command": name, "times": times} for name in names]}
    },
    "hyperfine 2": hyperfine_2,
    "jmh": jmh,
    "pyperf": pyperf,
    "pytest-benchmark": pytest_benchmark,
    "benchrigor": record,
    "go": go,
    "jmeter": lambda times, *names: table(
        ["elapsed", "label", "success"], ((t, n, "true") for n, t in rows_of(times, names))
    ),
    "k6": lambda times, *names: lines(
        *(point("http_req_duration", t, name=n) for n, t in rows_of(times, names))
    ),
    "k6 csv": lambda times, *names: table(
        ["metric_name", "timestamp", "metric_value", "name"],
        (("http_req_duration", 1, t, n) for n, t in rows_of(times, names)),
    ),
    "vegeta": lambda times, *names: lines(
        *(
            {"attack": n, "latency": scaled(t, 1e9), "timestamp": "", "code": 200, "seq": index}
            for index, (n, t) in enumerate(rows_of(times, names))
        )
    ),
    "vegeta csv": lambda times, *names: table(
        None,
        (
            [10**18, 200, scaled(t, 1e9), 0, 0, "", "", n, index]
            for index, (n, t) in enumerate(rows_of(times, names))
        ),
    ),
    "JSON lines": lambda times, *names: lines(
        *({"name": n, "unit": "s", "value": t} for n, t in rows_of(times, names))
    ),
}
AGGREGATE = {"run_type": "aggregate", "run_name": "one", "aggregate_name": "mean"}
MEANS: dict[str, Files] = {
    "asv": asv([], "one"),
    "criterion": {"a/new/estimates.json": {"mean": {"point_estimate": 0.1}}},
    "google-benchmark": {
        "a": {"context": {}, "benchmarks": [{**AGGREGATE, "name": "one_mean", "real_time": 0.1}]}
    },
    "hyperfine": {"a": {"results": [{"command": "one", "mean": 0.1}]}},
    "hyperfine 2": {
        "a": {"results": [{"command": "one", "summary": {"time_wall_clock": {"mean": 0.1}}}]}
    },
    "jmh": {
        "a": [
            {"benchmark": "a", "mode": "avgt", "primaryMetric": {"score": 0.1, "scoreUnit": "s/op"}}
        ]
    },
    "k6": {"a": {"root_group": {}, "metrics": {"http_req_duration": {"avg": 0.1}}}},
    "pytest-benchmark": {
        "a": {"machine_info": {}, "benchmarks": [{"name": "one", "stats": {"mean": 0.1}}]}
    },
    "vegeta": {"a": {"status_codes": {}, "latencies": {"mean": 0.1}}},
}
NASTY = [
    "<script>alert(1)</script>",
    "a|b`*_",
    "quo\"t'e,",
    "two\nlines",
    "\u202egnp.exe\u200f",
    "\x1b[31m",
]
