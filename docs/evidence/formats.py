"""Files read from other tools and written for them: how right, how robust.

    python docs/evidence/formats.py [--quick] [--seed N] [--only round-trip,samples]

Files are made with known readings, or are the samples of the tests.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import random
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import cache, partial
from itertools import starmap
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click.testing
import numpy as np
import pyperf  # type: ignore[import-untyped]

import benchrigor as br
from benchrigor.cli import main as command_line
from benchrigor.cli.exits import ExitCode
from benchrigor.formats.fields import in_base_unit
from benchrigor.model import Code, RunRecord
from benchrigor.report.writers import write_records
from shared.running import Bar, Run, Script
from shared.watching import within

script = Script(__doc__)
SEED = 20401127
DATA = Path(__file__).parents[2] / "tests" / "formats" / "data"
FEW = {Code.SHORT_RUN, Code.FEW_READINGS, Code.FEW_EFFECTIVE, Code.FEW_INVOCATIONS, Code.TOO_WIDE}
WITH_FAILURES = {"jmeter.csv", "k6.csv", "k6.ndjson", "vegeta.csv", "vegeta.json"}


def suite_of(levels: dict[str, np.ndarray]) -> str:
    """Return a file of pyperf: each row of an array holds the values of a process."""
    benchmarks = []
    for name, rows in levels.items():
        made = partial(pyperf.Run, metadata={"name": name, "unit": "second"})
        runs = [made(values, collect_metadata=False) for values in rows.tolist()]
        benchmarks.append(pyperf.Benchmark(runs))
    text = io.StringIO()
    pyperf.BenchmarkSuite(benchmarks).dump(text)
    return text.getvalue()


def records_of(text: str) -> list[RunRecord]:
    """Read a file of pyperf."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "suite.json")
        path.write_text(text)
        return br.read_results(path)


def readings_that_count(record: RunRecord) -> list[float]:
    """Return the readings that count by the table, or all without a number."""
    head, *rows = csv.reader(io.StringIO(write_records([record], "csv").text))
    name, value, kept = (head.index(name) for name in ("metric", "value", "kept"))
    main = [row for row in rows if row[name] == record.metrics[0].name]
    found = [float(row[value]) for row in main if row[kept] == "yes"]
    return found if record.estimate() else record.readings().tolist()


def session_of(run: Run, number: int) -> RunRecord:
    """Return the record of a session: of processes, or a single series with a warm-up."""
    rng, restarted = run.rng(1, number), bool(number % 2)
    options = br.Options(rounds="restarted" if restarted else "continuous", max_rounds=12)
    session = br.Session(options, name=f"session {number}", seed=number)
    level = 10.0 ** rng.uniform(-8, 1)
    while (plan := session.ask()) is not None:
        n = int(rng.integers(3, 200))
        values = level * rng.lognormal(0.0, 0.05, n)
        if restarted or plan.index == 0:
            values[: n // 10] *= 2.0
        session.tell(br.Round(plan=plan, elapsed_ns=1000, unit_readings={"time": values}))
    return session.result()


@script.section("Written for pyperf, and read by its own loader", seed=SEED)
def round_trip(run: Run) -> None:
    """Print how far means of pyperf's loader are from the means of the readings written."""
    rng, runs = run.rng(0), run.runs(400, 40)
    shapes = [(int(rng.integers(2, 40)), int(rng.integers(1, 12))) for _ in range(runs)]
    made = {
        f"benchmark {number}": 10.0 ** rng.uniform(-8, 1) * rng.lognormal(0.0, 0.05, shape)
        for number, shape in enumerate(shapes)
    }
    samples_read = [record for path in sorted(DATA.iterdir()) for record in br.read_results(path)]
    groups = {
        "files of pyperf": records_of(suite_of(made)),
        "samples": [r for r in samples_read if r.rounds and r.metrics[0].direction == "lower"],
        "sessions": [session_of(run, number) for number in range(runs)],
    }
    for title, records in groups.items():
        furthest = 0.0
        for record in records:
            (benchmark,) = pyperf.BenchmarkSuite.loads(write_records([record], "pyperf").text)
            factor, kept = in_base_unit(record.metrics[0].unit)[1], readings_that_count(record)
            mean = factor * math.fsum(kept) / len(kept)
            furthest = max(furthest, abs(benchmark.mean() / mean - 1.0))
        verdict = run.bar(f"round trip of {title}", furthest, "<=", 1e-12)
        run.say(f"{len(records)} {title}: off by {furthest:.1g}, {verdict}")


def is_deserved(path: Path, record: RunRecord, code: Code) -> bool:
    """Whether a warning is of a real gap in the file."""
    size = record.readings().size
    return {
        Code.NO_RAW_READINGS: not record.rounds,
        Code.TOO_FEW_READINGS: size < 2,
        Code.FAILED_RUNS: path.name in WITH_FAILURES,
        Code.CONSTANT: len({str(done.unit_readings) for done in record.rounds}) == 1,
    }.get(code, code in FEW and (size < 100 or len(record.rounds) in range(2, 10)))


@script.section("Samples of other tools: warnings", seed=SEED)
def samples(run: Run) -> None:
    """Print the warnings of each sample, and whether it deserves them."""
    run.heading("sample", "benchmarks", "warnings", "undeserved", "bar")
    for path in sorted(DATA.iterdir()):
        records = br.read_results(path)
        told = {
            (f"{notice.code} of {record.name}", is_deserved(path, record, notice.code))
            for record in records
            for notice in record.notices
            if notice.severity != "note"
        }
        undeserved = sorted(what for what, deserved in told if not deserved)
        verdict = run.bar(f"undeserved of {path.name}", len(undeserved), "==", 0)
        run.row(path.name, len(records), len(told), ", ".join(undeserved) or "none", verdict)


# --- damaged files

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.5, float("nan"), float("inf"), 10**400, 1e300, 5e-324),
    *("", "x", "12.5", "-1", "NaN", "1e999", "1.0", "2", "\x00", "\ud800", "\u202e", "a\nb"),
    *([], {}, [[]], [{}], [None], ["x"], [1, "x"], [[1, 2]], {"a": 1}, {"value": "x"}, {"": []}),
)
LINES = (
    *("", "#", "# started on Thu Nov 28 18:54:42 2026", "PASS", "FAIL", "{", "[", "}", "null"),
    *("goos: linux", "cpu: x", "BenchmarkX-8", "BenchmarkX-8 1 x ns/op", "a,b", '"', ",,,,"),
    *("[]", "1", "Warning: a program prints this", "{}", '{"type": "Point"}', "\ufeff", "Unit"),
)
TABLES = {
    "one.txt": "".join(f"{1 + 0.1 * (n % 7):.2f}\n" for n in range(60)),
    "labels.csv": "name,time\n" + "".join(f"sort,{n % 7 + 0.5}\n" for n in range(60)),
    "perf.csv": "# started on Sat Nov 28 18:54:42 2026\n\n"
    + "".join(f"1.2{n % 7},msec,task-clock,126,100.00,0.001,CPUs\n" for n in range(20)),
    "rows.json": json.dumps([{"name": "sort", "time": n % 7 + 0.5} for n in range(60)]),
    "lists.json": json.dumps({"unit": "s", "times": [n % 7 + 0.5 for n in range(60)]}),
    "github.json": json.dumps([{"name": n, "unit": "s", "value": 1.5} for n in "abab"]),
}
CELLS = (*("", "x", "-1", "nan", "inf", "1e999", "12,5", '"', "1.5s", "3/4", "0x10", "9" * 400),)


@cache
def sample_files() -> dict[str, dict[str, bytes]]:
    """Return the bytes of each sample by path; a file's path is its name."""
    record = br.read_results(DATA / "hyperfine.json")[0].to_dict()
    made = {"record.json": json.dumps(record), **TABLES}
    found = {name: {name: held.encode()} for name, held in made.items()}
    for path in sorted(DATA.iterdir()):
        files = [path] if path.is_file() else sorted(filter(Path.is_file, path.rglob("*")))
        found[path.name] = {str(file.relative_to(DATA)): file.read_bytes() for file in files}
    return found


def mutant(seed: int, index: int) -> tuple[str, dict[str, bytes]]:
    """Return the path of a damaged sample, and its files; made again by seed and index alone."""
    rng = random.Random(f"{seed}:{index}")
    names = [*sample_files()]
    name = names[index // 4 % len(names)]  # four doors each
    files = dict(sample_files()[name])
    damaged = rng.choice([*files])
    packed = damaged.endswith(".gz")
    raw = gzip.decompress(files[damaged]) if packed else files[damaged]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        raw = damage_of(rng, raw)
    if rng.random() < 0.02:
        raw = raw.decode("utf-8", "replace").encode(
            rng.choice(("utf-16", "utf-16-le", "latin-1")), "replace"
        )
    raw = gzip.compress(raw, mtime=0) if packed else raw
    files[damaged] = raw[: rng.randrange(len(raw) + 1)] if rng.random() < 0.02 else raw
    return name, files


def damage_of(rng: random.Random, raw: bytes) -> bytes:
    """Damage a file somehow."""
    text = raw.decode("utf-8", "replace")
    kinds: list[Callable[[random.Random, str], str | None]] = [in_lines, in_cells, in_whole]
    done = rng.choice([in_json, in_json, in_json, *kinds])(rng, text)
    done = in_cells(rng, text) if done is None else done
    return done.encode("utf-8", "surrogatepass" if "\ud800" in done else "replace")


def in_json(rng: random.Random, text: str) -> str | None:
    """Change a value at any depth of a document, or of a line; None without JSON."""
    try:
        return json.dumps(changed(rng, json.loads(text)))
    except ValueError:
        pass
    lines = text.splitlines()
    at = rng.randrange(len(lines)) if lines else 0
    try:
        lines[at] = json.dumps(changed(rng, json.loads(lines[at])))
    except (ValueError, IndexError):
        return None
    return "\n".join(lines) + "\n"


def changed(rng: random.Random, whole: Any) -> Any:
    """Change a value at any depth."""
    place = whole
    while isinstance(place, dict | list) and place:
        key = rng.choice([*place]) if isinstance(place, dict) else rng.randrange(len(place))
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.6:
            place = place[key]
            continue
        kind = rng.random()
        if kind < 0.15:
            del place[key]
        elif kind < 0.25 and isinstance(place, dict):
            place[rng.choice(("", "x", "name", "unit", "values", "runs"))] = place.pop(key)
        elif kind < 0.35:
            place[key] = [place[key]]
        elif kind < 0.45:
            place[key] = str(place[key])
        else:
            place[key] = rng.choice(VALUES)
        return whole
    return rng.choice(VALUES)


def in_lines(rng: random.Random, text: str) -> str:
    """Lose, repeat, exchange, cut or add a line."""
    lines = text.splitlines() or [""]
    one, other = (rng.randrange(len(lines)) for _ in range(2))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 3:
        lines[one] = lines[one][: rng.randrange(len(lines[one]) + 1)]
    else:
        lines.insert(one, rng.choice(LINES))
    return "\n".join(lines) + rng.choice(("\n", "\n", ""))


def in_cells(rng: random.Random, text: str) -> str:
    """Change what stands between two marks."""
    marks = [at for at, sign in enumerate(text) if sign in ',;:\t "\n']
    if len(marks) < 2:
        return rng.choice(CELLS)
    at = rng.randrange(len(marks) - 1)
    return text[: marks[at] + 1] + rng.choice(CELLS) + text[marks[at + 1] :]


def in_whole(rng: random.Random, text: str) -> str:
    """Cut a text, repeat it, or join it with another sample."""
    place = rng.randrange(len(text) + 1)
    other = next(iter(sample_files()[rng.choice([*sample_files()])].values())).decode(
        "utf-8", "replace"
    )
    return rng.choice(
        (
            *(text[:place], text[place:], text[:place] + rng.choice(CELLS) + text[place:]),
            *(text + text, text + "\n" + other, other + text, rng.choice(LINES) + "\n" + text),
        )
    )


def fault_of(seed: int, index: int) -> str | None:
    """Read a damaged file by the library or the command line; return how it fails, if it does."""
    name, files = mutant(seed, index)
    with tempfile.TemporaryDirectory() as folder:
        for file, raw in [
            *files.items(),
            *((f"whole/{n}", r) for n, r in sample_files()[name].items()),
        ]:
            path = Path(folder, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        damaged, whole = str(Path(folder, name)), str(Path(folder, "whole", name))
        doors: tuple[Callable[[], None], ...] = (
            lambda: read_or_refused(damaged),
            lambda: call_verb("analyze", damaged),
            lambda: call_verb("compare", whole, damaged),
            lambda: call_verb("analyze", damaged, "--json"),
        )
        try:
            with within(30.0), warnings.catch_warnings():
                warnings.simplefilter("error")
                doors[index % len(doors)]()
        except BaseException:  # noqa: BLE001  # what is looked for
            return f"{index}: {name}\n{traceback.format_exc()}"
    return None


def read_or_refused(path: str) -> None:
    """Read a file; a refusal says why."""
    try:
        br.read_results(path)
    except br.BenchrigorError as error:
        if not str(error):
            raise AssertionError("an error without a message") from error


def call_verb(*words: str) -> None:
    """Call the command line, which ends with an exit code of its own."""
    ran = click.testing.CliRunner().invoke(command_line, words)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    if ran.exit_code not in [*ExitCode] or "Traceback (most recent" in ran.output:
        raise AssertionError(f"exit code {ran.exit_code}: {ran.output}")


def batch(task: tuple[int, int, int]) -> list[str]:
    """Return the faults of the mutants of a seed, from an index on."""
    seed, first, size = task
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ):
        os.environ["BENCHRIGOR_STORE"] = str(Path(folder, "runs.sqlite"))
        found = starmap(fault_of, ((seed, index) for index in range(first, first + size)))
        return [fault for fault in found if fault]


def batch_of(seed: int, number: int) -> list[str]:
    """Return the faults of one of the batches of 250."""
    return batch((seed, 250 * number, 250))


@script.section("Damaged files of all formats, read and compared", seed=SEED)
def mutants(run: Run) -> None:
    """Print how many damaged files made a traceback, and each cause once."""
    count = run.runs(20_000, 500) // 250
    found = run.repeated(partial(batch_of, run.seed), count)
    faults = [fault for several in found for fault in several]
    run.say(f"{250 * count:,} files: {run.bar('tracebacks', len(faults), '==', 0)}")
    for fault in {"".join(fault.splitlines()[-3:]): fault for fault in faults}.values():
        run.say(f"\n{fault}")


# --- the same code, with 3 % between processes

CHANGES = (br.Verdict.BETTER, br.Verdict.WORSE, br.Verdict.DIFFERENT)


def is_told_apart(seed: int, row: int, counts: tuple[int, int], margin: float, pair: int) -> bool:
    """Whether two files of the same code seem different."""
    sides = []
    for side, count in enumerate(counts):
        rng = np.random.default_rng([seed, 2, row, side, pair])
        levels = 0.01 * rng.lognormal(0.0, 0.03, (count, 1))
        values = np.asarray(levels * rng.lognormal(0.0, 0.01, (count, 3)))
        sides += records_of(suite_of({"benchmark": values}))
    return br.compare_runs(*sides, margin=margin).verdict in CHANGES


@script.section("The same code, with 3% between processes of 3 values", seed=SEED)
def false(run: Run) -> None:
    """Print how often two files of the same code seem different."""
    rows = [
        (
            f"{counts[0]} and {counts[1]} processes, margin {margin:g}",
            partial(is_told_apart, run.seed, row, counts, margin),
            Bar(0.0, 0.05),
        )
        for row, counts in enumerate(((20, 20), (20, 19)))
        for margin in (0.0, 0.01)
    ]
    run.shares(rows, run.runs(300, 60), "told apart")


if __name__ == "__main__":
    raise SystemExit(script.main())
