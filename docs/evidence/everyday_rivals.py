"""How far apart figures of the same code are, measured again and again with each tool's defaults.

The tools take turns in an order that rotates: ``benchrigor run --fresh`` (its figure at full pace),
pyperf, pytest-benchmark and asv for functions, hyperfine for a command (their medians). The
interpreter of the others is named by the variable EVERYDAY_RIVALS.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from coverage_tables import Setting
from everyday_work import COMMAND, FUNCTIONS

import benchrigor as br
from benchrigor.storage import Journal
from benchrigor.testing import cpu_hog

__all__ = ["rivals"]

RIVALS = "EVERYDAY_RIVALS"
OURS = "benchrigor"
MOST_SPREAD = 1 / 3  # of the best rival's
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


class Row(NamedTuple):
    """A figure in seconds, and how long it took to find."""

    tool: str
    workload: str
    value: float
    took_s: float


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
    with TemporaryDirectory(dir=folder) as made:
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


def rivals(setting: Setting) -> None:
    """Let each tool measure each workload again and again, idle and beside a hog; print spreads."""
    python = os.environ.get(RIVALS)
    if python is None:
        raise br.InvalidInput(
            f"{RIVALS} is not set, expected an interpreter with pyperf, pytest-benchmark and asv"
        )
    with TemporaryDirectory() as name:
        for beside, made in BESIDE.items():
            folder = Path(name) / beside.replace(" ", "-")
            folder.mkdir()
            with made():
                rows = _recorded(folder, python, setting.runs(8, 2))
            _show(rows, beside, setting)
            _show_changes(folder / "runs.sqlite", beside, setting)


def _recorded(folder: Path, python: str, runs: int) -> list[Row]:
    rows = []
    for number, workload in itertools.product(range(runs), (*FUNCTIONS, COMMAND_NAME)):
        tools = _tools_of(workload)
        at = number % len(tools)
        for tool in (*tools[at:], *tools[:at]):
            began = time.monotonic()
            value = TOOLS[tool](workload, folder, python)
            rows.append(Row(tool, workload, value, time.monotonic() - began))
    return rows


def _show(rows: list[Row], beside: str, setting: Setting) -> None:
    """Print how far apart figures are, and what they took."""
    print(f"{beside}: (max - min) / median of the figures")
    took_s = {tool: sum(each.took_s for each in rows if each.tool == tool) for tool in TOOLS}
    for workload in (*FUNCTIONS, COMMAND_NAME):
        spreads, cells = {}, []
        for tool in _tools_of(workload):
            values = [each.value for each in rows if (each.tool, each.workload) == (tool, workload)]
            spreads[tool] = (max(values) - min(values)) / statistics.median(values)
            cells.append(f"{tool} {spreads[tool]:.1%} of {len(values)}")
        share = spreads.pop(OURS) / min(spreads.values())
        verdict = setting.verdict(f"{workload}, {beside}", share <= MOST_SPREAD)
        print(f"  {workload}: {', '.join(cells)}; {share:.2f} of the best, at most 0.33: {verdict}")
    functions = sum(
        each.took_s for each in rows if each.tool == OURS and each.workload in FUNCTIONS
    )
    verdict = setting.verdict(f"time, {beside}", functions <= took_s["pyperf"])
    print(f"  functions took {functions:.0f} s, at most pyperf's {took_s['pyperf']:.0f}: {verdict}")


def _show_changes(path: Path, beside: str, setting: Setting) -> None:
    """Compare all pairs of runs of the same function, each with all that the store knows."""
    journal, changed, pairs = Journal(path), 0, 0
    by_name: dict[str, list[br.RunRecord]] = {}
    for run in journal.runs():
        if run["name"].startswith("everyday_work:"):
            by_name.setdefault(run["name"], []).append(journal.load(run["run_id"]))
    for records in by_name.values():
        for one, other in itertools.combinations(records, 2):
            verdict = br.compare_runs(one, other, store=journal).verdict
            pairs += 1
            changed += verdict in (br.Verdict.BETTER, br.Verdict.WORSE)
    met = setting.verdict(f"pairs, {beside}", changed <= pairs / 84)
    print(f"  the same code called a change: {changed} of {pairs} pairs: {met}")
