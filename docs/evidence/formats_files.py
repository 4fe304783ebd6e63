"""Whether files mean the same to benchrigor and to the tool that wrote them, or reads them."""

from __future__ import annotations

import csv
import io
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyperf  # type: ignore[import-untyped]
from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.formats.fields import in_base_unit
from benchrigor.model import Code, RunRecord, Severity
from benchrigor.report.writers.formats import write_records

__all__ = ["round_trip", "samples", "suite_of"]

DATA = Path(__file__).parents[2] / "tests" / "formats" / "data"
EXACT = 1e-12
FEW = {
    *(Code.SHORT_RUN, Code.FEW_READINGS, Code.FEW_EFFECTIVE, Code.FEW_INVOCATIONS),
}
FEWER = 100
"""Readings of a series, below which such a warning is deserved."""
WITH_FAILURES = {"jmeter.csv", "k6.csv", "k6.ndjson", "vegeta.csv", "vegeta.json"}


def suite_of(levels: dict[str, np.ndarray]) -> str:
    """Return a file of pyperf: each row of an array holds the values of a process."""
    benchmarks = [
        pyperf.Benchmark(
            [
                pyperf.Run(
                    values, metadata={"name": name, "unit": "second"}, collect_metadata=False
                )
                for values in rows.tolist()
            ]
        )
        for name, rows in levels.items()
    ]
    text = io.StringIO()
    pyperf.BenchmarkSuite(benchmarks).dump(text)
    return text.getvalue()


def _read(text: str) -> list[RunRecord]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "suite.json")
        path.write_text(text)
        return br.read_results(path)


def _kept(record: RunRecord) -> list[float]:
    """Return the readings that count by the table, or all where there is no number."""
    head, *rows = csv.reader(io.StringIO(write_records([record], "csv").text))
    name, value, kept = (head.index(each) for each in ("metric", "value", "kept"))
    main = [each for each in rows if each[name] == record.metrics[0].name]
    counted = [float(each[value]) for each in main if each[kept] == "yes"]
    return counted if record.estimate() else record.readings().tolist()


def _sessions(setting: Setting, runs: int) -> Iterator[RunRecord]:
    """Yield records of sessions: processes, and single series with a warm-up."""
    for number in range(runs):
        rng = np.random.default_rng([setting.seed, 1, number])
        restarted = bool(number % 2)
        options = br.Options(rounds="restarted" if restarted else "continuous", max_rounds=12)
        session = br.Session(options, name=f"session {number}", seed=number)
        level = 10.0 ** rng.uniform(-8, 1)
        while (plan := session.ask()) is not None:
            n = int(rng.integers(3, 200))
            values = level * rng.lognormal(0.0, 0.05, n)
            if restarted or plan.index == 0:
                values[: n // 10] *= 2.0
            session.tell(br.Round(plan=plan, elapsed_ns=1000, unit_readings={"time": values}))
        yield session.result()


def round_trip(setting: Setting) -> None:
    """Print how far means of pyperf's loader are from those of what was written."""
    runs = setting.runs(400, 40)
    rng = np.random.default_rng([setting.seed, 0])
    shapes = [(int(rng.integers(2, 40)), int(rng.integers(1, 12))) for _ in range(runs)]
    made = {
        f"benchmark {number}": 10.0 ** rng.uniform(-8, 1) * rng.lognormal(0.0, 0.05, shape)
        for number, shape in enumerate(shapes)
    }
    samples_of_pyperf = [each for each in DATA.iterdir() if each.name.startswith("pyperf")]
    groups = {
        "files of pyperf": _read(suite_of(made)),
        "samples of pyperf": [r for each in samples_of_pyperf for r in br.read_results(each)],
        "samples of other tools": list(_others()),
        "sessions": list(_sessions(setting, runs)),
    }
    heading(["written", "benchmarks", "runs", "values", "warm-up", "largest difference of means"])
    for title, records in groups.items():
        taken, furthest = list[pyperf.Run](), 0.0
        for record in records:
            (benchmark,) = pyperf.BenchmarkSuite.loads(write_records([record], "pyperf").text)
            factor = in_base_unit(record.metrics[0].unit)[1]
            mean = factor * math.fsum(kept := _kept(record)) / len(kept)
            furthest = max(furthest, abs(benchmark.mean() / mean - 1.0))
            taken += benchmark.get_runs()
        values, warm_up = (sum(len(getattr(r, n)) for r in taken) for n in ("values", "warmups"))
        verdict = setting.verdict(f"round trip of {title}", furthest <= EXACT)
        row(title, len(records), len(taken), values, warm_up, f"{furthest:.1g}: {verdict}")
    kept = [
        np.mean(made[record.name]) == np.mean(record.readings()) and len(_kept(record)) == n * m
        for record, (n, m) in zip(groups["files of pyperf"], shapes, strict=True)
    ]
    print(f"\nOf the files of pyperf, {sum(kept)} of {len(kept)} keep every value as a value.")


def _others() -> Iterator[RunRecord]:
    """Yield the benchmarks of the samples that pyperf can hold, one at a time."""
    for path in sorted(DATA.iterdir()):
        if path.name.startswith("pyperf"):
            continue
        try:
            records = br.read_results(path)
        except br.InvalidInput:
            continue
        for record in records:
            lower = record.metrics and record.metrics[0].direction == "lower"
            if record.rounds and lower:
                yield record


def samples(setting: Setting) -> None:
    """Print the warnings of each sample, and whether it deserves them."""
    heading(["sample", "benchmarks", "readings", "warnings", "undeserved"])
    for path in sorted(DATA.iterdir()):
        try:
            records = br.read_results(path)
        except br.InvalidInput as error:
            row(path.name, "-", "-", error.problems[0].replace(str(path), path.name), "")
            setting.verdict(f"{path.name} is read", met=False)
            continue
        told = {
            (record.name, notice.code, _is_deserved(path, record, notice.code))
            for record in records
            for notice in record.notices
            if notice.severity is not Severity.NOTE
        }
        undeserved = sorted(f"{code} of {name}" for name, code, deserved in told if not deserved)
        setting.verdict(path.name, not undeserved)
        codes = ", ".join(sorted({str(code) for _, code, _ in told})) or "none"
        readings = sum(record.readings().size for record in records)
        row(path.name, len(records), readings, codes, ", ".join(undeserved) or "none")


def _is_deserved(path: Path, record: RunRecord, code: Code) -> bool:
    """Whether a warning is of what the file really lacks."""
    if code is Code.NO_RAW_READINGS:
        return not record.rounds
    if code is Code.TOO_FEW_READINGS:
        return record.readings().size < 2
    if code is Code.FAILED_RUNS:
        return path.name in WITH_FAILURES
    few = record.readings().size < FEWER or len(record.rounds) in range(2, 10)
    return code in FEW and few
