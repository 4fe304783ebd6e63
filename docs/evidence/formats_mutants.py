"""Files of other tools with something wrong in them: does any end in a traceback."""

from __future__ import annotations

import gzip
import json
import os
import random
import tempfile
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click.testing
from coverage_tables import Setting, heading, row
from formats_files import DATA
from trust_inputs import within

import benchrigor as br
from benchrigor.cli import main as command_line
from benchrigor.cli.exits import ExitCode

__all__ = ["batch", "mutant", "mutants", "samples"]

BATCH, LONGEST_S = 250, 30.0
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
def samples() -> dict[str, dict[str, bytes]]:
    """Return the bytes of each sample by path; that of a file is its name."""
    record = br.read_results(DATA / "hyperfine.json")[0].to_dict()
    made = {"record.json": json.dumps(record), **TABLES}
    found = {name: {name: held.encode()} for name, held in made.items()}
    for path in sorted(DATA.iterdir()):
        files = [path] if path.is_file() else sorted(filter(Path.is_file, path.rglob("*")))
        found[path.name] = {str(file.relative_to(DATA)): file.read_bytes() for file in files}
    return found


def mutant(seed: int, index: int) -> tuple[str, dict[str, bytes]]:
    """Return the path of a damaged sample, and its files; made anew by seed and index alone."""
    rng = random.Random(f"{seed}:{index}")
    names = [*samples()]
    name = names[index // 4 % len(names)]  # four doors each
    files = dict(samples()[name])
    damaged = rng.choice([*files])
    packed = damaged.endswith(".gz")
    raw = gzip.decompress(files[damaged]) if packed else files[damaged]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        raw = _damaged(rng, raw)
    if rng.random() < 0.02:
        raw = raw.decode("utf-8", "replace").encode(
            rng.choice(("utf-16", "utf-16-le", "latin-1")), "replace"
        )
    raw = gzip.compress(raw, mtime=0) if packed else raw
    files[damaged] = raw[: rng.randrange(len(raw) + 1)] if rng.random() < 0.02 else raw
    return name, files


def _damaged(rng: random.Random, raw: bytes) -> bytes:
    text = raw.decode("utf-8", "replace")
    kinds: list[Callable[[random.Random, str], str | None]] = [_in_json, _in_json, _in_json]
    damage = rng.choice([*kinds, _in_lines, _in_cells, _in_whole])
    done = damage(rng, text)
    done = _in_cells(rng, text) if done is None else done
    return done.encode("utf-8", "surrogatepass" if "\ud800" in done else "replace")


def _in_json(rng: random.Random, text: str) -> str | None:
    """Change a value at any depth of a document, or of a line; None if there is no JSON."""
    try:
        return json.dumps(_changed(rng, json.loads(text)))
    except ValueError:
        pass
    lines = text.splitlines()
    at = rng.randrange(len(lines)) if lines else 0
    try:
        lines[at] = json.dumps(_changed(rng, json.loads(lines[at])))
    except (ValueError, IndexError):
        return None
    return "\n".join(lines) + "\n"


def _changed(rng: random.Random, whole: Any) -> Any:
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


def _in_lines(rng: random.Random, text: str) -> str:
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


def _in_cells(rng: random.Random, text: str) -> str:
    """Change what stands between two marks."""
    marks = [at for at, sign in enumerate(text) if sign in ',;:\t "\n']
    if len(marks) < 2:
        return rng.choice(CELLS)
    at = rng.randrange(len(marks) - 1)
    return text[: marks[at] + 1] + rng.choice(CELLS) + text[marks[at + 1] :]


def _in_whole(rng: random.Random, text: str) -> str:
    """Cut a text, repeat it, or join it with another sample."""
    place = rng.randrange(len(text) + 1)
    other = next(iter(samples()[rng.choice([*samples()])].values())).decode("utf-8", "replace")
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
        for each, raw in [*files.items(), *((f"whole/{n}", r) for n, r in samples()[name].items())]:
            path = Path(folder, each)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        damaged, whole = str(Path(folder, name)), str(Path(folder, "whole", name))
        doors: tuple[Callable[[], None], ...] = (
            lambda: _read(damaged),
            lambda: _call("analyze", damaged),
            lambda: _call("compare", whole, damaged),
            lambda: _call("analyze", damaged, "--json"),
        )
        try:
            with within(LONGEST_S), warnings.catch_warnings():
                warnings.simplefilter("error")
                doors[index % len(doors)]()
        except BaseException:  # noqa: BLE001  # what is looked for
            return f"{index}: {name}\n{traceback.format_exc()}"
    return None


def _read(path: str) -> None:
    try:
        br.read_results(path)
    except br.BenchrigorError as error:
        if not str(error):
            raise AssertionError("an error without a message") from error


def _call(*words: str) -> None:
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


def mutants(setting: Setting) -> None:
    """Print how many damaged files made a traceback, and each cause once."""
    count = setting.runs(10_000, 500)
    tasks = [(setting.seed, first, min(BATCH, count - first)) for first in range(0, count, BATCH)]
    with ProcessPoolExecutor(setting.jobs) as pool:
        faults = [fault for found in pool.map(batch, tasks) for fault in found]
    heading(["files", "samples", "tracebacks", "bar"])
    row(
        f"{count:,}",
        len(samples()),
        len(faults),
        f"none: {setting.verdict('mutants', not faults)}",
    )
    causes = {"".join(fault.splitlines()[-3:]): fault for fault in faults}
    for fault in causes.values():
        print(f"\n{fault}")
