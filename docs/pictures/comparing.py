"""The picture of comparisons: ``docs/pictures/comparing.png``, from ``comparing.json``.

Four tools compare a function with itself, and with one that does 15% more, with the defaults of
each. They take turns, in an order that rotates. The recorded ones are of a virtual machine with 2
processors of an AMD EPYC, on which test suites ran meanwhile: each row has the load.

    python docs/pictures/comparing.py                 # draw the recorded ones, print their figures
    python docs/pictures/comparing.py record PYTHON   # take new ones first; PYTHON is one
                                                      # that has pyperf and pytest-benchmark
"""

from __future__ import annotations

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchrigor.report.plots.drawing import CHANGE, DOTS, NUMBER, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).parent
RECORDED = HERE / "comparing.json"
RUNS, NEAR = 10, 0.05
MORE = {"same": 1.0, "slower": 1.15}
COLORS = {
    "same": (NUMBER, "the same code ", "right"),
    "slower": (CHANGE, " 15% more work", "left"),
}
WORK = """
import json

ROW = {{"id": 7, "name": "row 7", "tags": ["a", "b"], "price": 7 / 3}}
FEW, MANY = [ROW] * 200, [ROW] * {many}


def old():
    return json.dumps(FEW)


def new():
    return json.dumps(MANY)
"""
TESTS = """
import work


def test_old(benchmark):
    benchmark(work.old)


def test_new(benchmark):
    benchmark(work.new)
"""


class Compared(NamedTuple):
    """The result of a tool: the change, its interval, and whether it calls it a change."""

    change: float
    low: float | None = None
    high: float | None = None
    called: bool | None = None


def run(folder: Path, *words: object) -> str:
    """Run a tool in the folder of the work, and return its output."""
    argv = [str(word) for word in words]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(  # noqa: S603  # the tools that are compared
        argv, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    return done.stdout


def by_benchrigor(folder: Path, _: str) -> Compared:
    """Compare with `benchrigor ab`, both in turn."""
    words = (sys.executable, "-m", "benchrigor", "ab", "--json", "--no-store")
    found = json.loads(run(folder, *words, "work:old", "work:new"))["comparison"]
    ratio = found["ratio"]
    change, low, high = (ratio[name] - 1.0 for name in ("value", "low", "high"))
    return Compared(change, low, high, called=found["verdict"] in ("worse", "better"))


def by_pyperf(folder: Path, python: str) -> Compared:
    """Compare two runs of pyperf, by its means and its own test."""
    means = {}
    for name in ("old", "new"):
        path = folder / f"{name}.json"
        path.unlink(missing_ok=True)
        setup = f"import sys; sys.path.insert(0, {str(folder)!r}); import work"
        run(
            folder,
            python,
            "-m",
            "pyperf",
            "timeit",
            "-q",
            "-o",
            path,
            "-s",
            setup,
            f"work.{name}()",
        )
        runs = json.loads(path.read_text(encoding="utf-8"))["benchmarks"][0]["runs"]
        means[name] = statistics.mean(value for run in runs for value in run.get("values", ()))
    shown = run(folder, python, "-m", "pyperf", "compare_to", "old.json", "new.json")
    return Compared(means["new"] / means["old"] - 1.0, called="not significant" not in shown)


def by_pytest_benchmark(folder: Path, python: str) -> Compared:
    """Compare the medians of two tests; without a verdict."""
    path = folder / "tests.json"
    run(folder, python, "-m", "pytest", "-q", f"--benchmark-json={path}", "test_work.py")
    tests = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    medians = {test["name"]: test["stats"]["median"] for test in tests}
    return Compared(medians["test_new"] / medians["test_old"] - 1.0)


def by_timeit(folder: Path, python: str) -> Compared:
    """Compare what timeit prints, the best of five; without a verdict."""
    times = []
    for name in ("old", "new"):
        shown = run(
            folder, python, "-m", "timeit", "-u", "usec", "-s", "import work", f"work.{name}()"
        )
        (best,) = re.findall(r"best of 5: ([\d.e+]+) usec", shown)
        times.append(float(best))
    return Compared(times[1] / times[0] - 1.0)


TOOLS: dict[str, Callable[[Path, str], Compared]] = {
    "benchrigor ab": by_benchrigor,
    "pyperf": by_pyperf,
    "pytest-benchmark": by_pytest_benchmark,
    "timeit": by_timeit,
}


def record(python: str) -> None:
    """Let the tools compare, again and again."""
    rows = []
    with TemporaryDirectory() as name:
        for number, (case, more) in itertools.product(range(RUNS), MORE.items()):
            folder = Path(name) / case
            folder.mkdir(exist_ok=True)
            (folder / "work.py").write_text(WORK.format(many=round(200 * more)), encoding="utf-8")
            (folder / "test_work.py").write_text(TESTS, encoding="utf-8")
            for tool in np.roll(list(TOOLS), -number):
                began = time.monotonic()
                found = TOOLS[tool](folder, python)
                took_s, load = time.monotonic() - began, os.getloadavg()[0]
                row = {
                    "tool": str(tool),
                    "case": case,
                    "took_s": round(took_s, 1),
                    "load": round(load, 1),
                }
                rows.append({**row, **found._asdict()})
                sys.stderr.write(f"{rows[-1]}\n")
                text = json.dumps(rows, indent=0)
                RECORDED.write_text(f"{text}\n", encoding="utf-8")


def draw(rows: list[dict[str, Any]]) -> Figure:
    """Draw the changes that each tool finds, a line of dots for each case."""
    figure = Figure(figsize=(8.0, 3.9), dpi=150, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    at = axes.get_xaxis_transform()
    for case, (color, words, side) in COLORS.items():
        true = 100.0 * (MORE[case] - 1.0)
        axes.axvline(true, color=color, linewidth=1.0, alpha=0.6, zorder=0.0)
        axes.annotate(words, (true, 1.0), (0, 4), at, "offset points", color=color, ha=side)
    for line, tool in enumerate(reversed(TOOLS)):
        for case, (color, *_) in COLORS.items():
            found = [row for row in rows if (row["tool"], row["case"]) == (tool, case)]
            draw_changes(axes, found, line + (0.17 if case == "same" else -0.17), color)
    axes.set_yticks(range(len(TOOLS)), list(reversed(TOOLS)))
    name_axes(axes, "change found (%)", "")
    return figure


def draw_changes(axes: Axes, rows: list[dict[str, Any]], line: float, color: str) -> None:
    """Draw comparisons side by side, with their intervals where the tool gives one."""
    lines = line + np.linspace(-0.1, 0.1, len(rows))
    for row, at in zip(rows, lines, strict=True):
        if row["low"] is not None:
            axes.hlines(at, 100.0 * row["low"], 100.0 * row["high"], color=color, linewidth=1.0)
    axes.plot([100.0 * row["change"] for row in rows], lines, color=color, markersize=5.0, **DOTS)


def figures(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the cells of each tool: its verdicts, how near its changes are, and its time."""
    return {tool: cells([row for row in rows if row["tool"] == tool]) for tool in TOOLS}


def cells(rows: list[dict[str, Any]]) -> list[str]:
    """Return the cells of a tool. A change that is called so counts if its direction is right."""

    def share(found: list[bool], otherwise: str) -> str:
        return f"{sum(found)} of {len(found)}" if found else otherwise

    true = [MORE[row["case"]] - 1.0 for row in rows]
    same, slower = (
        [row for row in rows if row["case"] == case and row["called"] is not None] for case in MORE
    )
    bounded = [
        (row, truth) for row, truth in zip(rows, true, strict=True) if row["low"] is not None
    ]
    return [
        share([row["called"] for row in same], "no verdict"),
        share([row["called"] and row["change"] > 0.0 for row in slower], "no verdict"),
        share(
            [abs(row["change"] - truth) < NEAR for row, truth in zip(rows, true, strict=True)], ""
        ),
        share([row["low"] <= truth <= row["high"] for row, truth in bounded], "no interval"),
        f"{statistics.median(row['took_s'] for row in rows):.0f} s",
    ]


def main() -> None:
    """Draw the recorded comparisons, and print their figures."""
    if sys.argv[1:2] == ["record"]:
        record(sys.argv[2])
    rows = json.loads(RECORDED.read_text(encoding="utf-8"))
    draw(rows).savefig(HERE / "comparing.png")
    for tool, row in figures(rows).items():
        sys.stdout.write(f"| {tool} | {' | '.join(row)} |\n")


if __name__ == "__main__":
    main()
