"""How far apart figures of the same code are, measured again and again with each tool's defaults.

The tools take turns in an order that rotates: ``benchrigor run --fresh`` (its figure at full pace),
pyperf, pytest-benchmark and asv for functions, hyperfine for a command (their medians).
"""

from __future__ import annotations

import itertools
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from everyday_work import COMMAND, FUNCTIONS

import benchrigor as br
from benchrigor.storage import Journal
from benchrigor.testing import cpu_hog

__all__ = ["record_rivals", "show_rivals"]

OURS = "benchrigor"
COMMAND_NAME = "command"
BESIDE: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "idle": nullcontext,
    "CPU hog": cpu_hog,
}
_HERE = Path(__file__).parent
_TEST = """
import sys
sys.path.insert(0, {here!r})
from everyday_work import {name}

def test_it(benchmark):
    benchmark({name})
"""
_ASV = {
    "version": 1,
    "project": "everyday",
    "repo": ".",
    "branches": ["HEAD"],
    "environment_type": "existing",
    "benchmark_dir": "benchmarks",
}


def _run(*argv: object, cwd: Path = _HERE) -> str:
    words = [str(each) for each in argv]
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd=cwd).stdout


def _benchrigor(name: str, folder: Path, _rivals: str) -> float:
    words = shlex.split(f"-m benchrigor run --json --store {folder / 'runs.sqlite'}")
    target = COMMAND if name == COMMAND_NAME else ["--fresh", f"everyday_work:{name}"]
    argv = [sys.executable, *words, *target]
    found = subprocess.run(argv, capture_output=True, text=True, cwd=_HERE, check=False)
    (analysis,) = (
        each for each in json.loads(found.stdout)["analyses"] if each["metric"]["name"] == "time"
    )
    return float((analysis["at_full_pace"] or analysis["estimate"])["value"])


def _pyperf(name: str, folder: Path, rivals: str) -> float:
    found = folder / "pyperf.json"
    found.unlink(missing_ok=True)
    setup = f"import sys; sys.path.insert(0, {str(_HERE)!r}); from everyday_work import {name}"
    _run(rivals, "-m", "pyperf", "timeit", "-q", "-o", found, "-s", setup, f"{name}()")
    runs = json.loads(found.read_text())["benchmarks"][0]["runs"]
    return float(statistics.median(each for run in runs for each in run.get("values", ())))


def _pytest_benchmark(name: str, folder: Path, rivals: str) -> float:
    test, found = folder / "test_it.py", folder / "found.json"
    test.write_text(_TEST.format(here=str(_HERE), name=name))
    _run(rivals, "-m", "pytest", "-q", f"--benchmark-json={found}", test, cwd=folder)
    return float(json.loads(found.read_text())["benchmarks"][0]["stats"]["median"])


def _asv(name: str, folder: Path, rivals: str) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        place = Path(made)
        (place / "benchmarks").mkdir()
        for file in ("__init__.py", "everyday_work.py"):
            text = (_HERE / file).read_text() if file != "__init__.py" else ""
            (place / "benchmarks" / file).write_text(text)
        suite = f"from .everyday_work import {name}\ndef time_it():\n    {name}()\n"
        (place / "benchmarks" / "suite.py").write_text(suite)
        (place / "asv.conf.json").write_text(json.dumps(_ASV))
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "a")):
            _run(*git, *words, cwd=place)
        _run(rivals, "-m", "asv", "machine", "--yes", cwd=place)
        asv = (rivals, "-m", "asv", "run", "--python=same", "--set-commit-hash", "HEAD")
        _run(*asv, cwd=place)
        (found,) = place.glob("results/*/*-existing*.json")
        ((value,), *_) = json.loads(found.read_text())["results"]["suite.time_it"]
    return float(value)


def _hyperfine(_name: str, folder: Path, _rivals: str) -> float:
    found = folder / "hyperfine.json"
    _run("hyperfine", "-N", "--export-json", found, shlex.join(COMMAND))
    return float(json.loads(found.read_text())["results"][0]["median"])


TOOLS: dict[str, Callable[[str, Path, str], float]] = {
    OURS: _benchrigor,
    "pyperf": _pyperf,
    "pytest-benchmark": _pytest_benchmark,
    "asv": _asv,
    "hyperfine": _hyperfine,
}


def _tools_of(workload: str) -> list[str]:
    if workload == COMMAND_NAME:
        return [OURS, "hyperfine"]
    return [each for each in TOOLS if each != "hyperfine"]


def record_rivals(folder: Path, *, rivals: str, runs: int, beside: str) -> None:
    """Let each tool measure each workload so many times; append to the folder's file."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.absolute()
    with BESIDE[beside](), (folder / "rivals.jsonl").open("a") as kept:
        for number, workload in itertools.product(range(runs), (*FUNCTIONS, COMMAND_NAME)):
            tools = _tools_of(workload)
            at = number % len(tools)
            for tool in (*tools[at:], *tools[:at]):
                place = folder / beside.replace(" ", "-")
                place.mkdir(exist_ok=True)
                began = time.monotonic()
                value = TOOLS[tool](workload, place, rivals)
                took_s = time.monotonic() - began
                row = {"tool": tool, "workload": workload, "number": number, "beside": beside}
                print(json.dumps(row | {"value": value, "took_s": took_s}), file=kept, flush=True)


def show_rivals(folder: Path) -> None:
    """Print how far apart figures are, what they took, and which pairs are called a change."""
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (folder / "rivals.jsonl").read_text().splitlines()
    ]
    for beside in dict.fromkeys(row["beside"] for row in rows):
        print(f"{beside}: (max - min) / median of the figures; seconds in all")
        for workload in (*FUNCTIONS, COMMAND_NAME):
            cells = []
            spreads = {}
            for tool in _tools_of(workload):
                own = [
                    row
                    for row in rows
                    if (row["beside"], row["workload"], row["tool"]) == (beside, workload, tool)
                ]
                if own:
                    values = [row["value"] for row in own]
                    spreads[tool] = (max(values) - min(values)) / statistics.median(values)
                    took_s = sum(row["took_s"] for row in own)
                    cells.append(f"{tool} {spreads[tool]:.3f} ({len(own)} in {took_s:.0f} s)")
            others = [each for tool, each in spreads.items() if tool != OURS]
            ratio = f"; {spreads[OURS] / min(others):.2f} of the best" if others else ""
            print(f"  {workload}: {', '.join(cells)}{ratio}")
        _show_changes(folder / beside.replace(" ", "-") / "runs.sqlite")


def _show_changes(path: Path) -> None:
    """Compare all pairs of runs of the same code, each with all that the store knows."""
    journal, changed, pairs = Journal(path), 0, 0
    by_name: dict[str, list[br.RunRecord]] = {}
    for run in journal.runs():
        by_name.setdefault(run["name"], []).append(journal.load(run["run_id"]))
    for records in by_name.values():
        for one, other in itertools.combinations(records, 2):
            verdict = br.compare_runs(one, other, store=journal).verdict
            pairs += 1
            changed += verdict in (br.Verdict.BETTER, br.Verdict.WORSE)
    print(f"  pairs of the same code that are called a change: {changed} of {pairs}")
