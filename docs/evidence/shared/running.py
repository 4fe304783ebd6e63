"""Sections of a script, bars, tables, and results as data.

A share meets its bar when its Wilson interval reaches it: the 95 % one, or with ``--quick`` the
99.9 % one, which a row that truly meets its bar fails at most four times in a thousand. A trial
without a number is a miss, unless the bar allows refusals.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import operator
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

import benchrigor as br
from benchrigor.machine import provenance
from benchrigor.model import Estimate

__all__ = ["Bar", "Interval", "Run", "Script", "by_turns", "interval", "of", "tally", "wilson"]

RESULTS = Path(__file__).parents[1] / "results"
Z, QUICK_Z = 1.959964, 3.290527
MOST_REFUSED = 0.05
RELATIONS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}

Result = TypeVar("Result")


def wilson(hits: int, trials: int, z: float = Z) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share = hits / trials
    centre = share + z * z / (2 * trials)
    reach = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return (centre - reach) / scale, (centre + reach) / scale


def describe() -> str:
    """Return processor, versions and load in one line."""
    where = provenance()
    packages = ", ".join(f"{name} {version(name)}" for name in ("benchrigor", "numpy", "scipy"))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return f"{where.cores} x {where.cpu}, {where.python}, {packages}, load {load:.2f}"


def by_turns(calls: int, *functions: Callable[[], object]) -> list[float]:
    """Return the least duration of each function in seconds, warm, called by turns."""
    least = [math.inf] * len(functions)
    for _ in range(calls + 1):
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            least[index] = min(least[index], time.perf_counter() - start)
    return least


class Interval(NamedTuple):
    """Figures of one interval; the half-width is relative to the truth."""

    holds: bool
    half_width: float = math.nan
    warned: bool = False
    """Whether any Notice next to it is a warning."""


def interval(low: float, high: float, truth: float, *, warned: bool = False) -> Interval:
    """Compare an interval with the truth."""
    return Interval(low <= truth <= high, (high - low) / 2.0 / abs(truth), warned)


def of(estimate: Estimate | None, truth: float) -> Interval | None:
    """Compare an estimate with the truth."""
    if estimate is None:
        return None
    warned = any(notice.severity == "warning" for notice in estimate.notices)
    return interval(estimate.low, estimate.high, truth, warned=warned)


class Bar(NamedTuple):
    """The shares that a row should reach."""

    least: float = 0.0
    most: float = 1.0
    may_refuse: bool = False

    def __str__(self) -> str:
        span = f">= {self.least:g}" if self.most == 1.0 else f"{self.least:g} to {self.most:g}"
        return f"{span} or refused" if self.may_refuse else span


class Tally(NamedTuple):
    """What came of all trials of a row."""

    hits: int
    refused: int
    trials: int
    half_width: float
    """Mean of the intervals printed; NaN without one."""

    @property
    def share(self) -> float:
        """Share of trials that hit."""
        return self.hits / self.trials

    def __str__(self) -> str:
        low, high = wilson(self.hits, self.trials)
        width = "" if math.isnan(self.half_width) else f" ({self.half_width * 100:.2g}%)"
        refused = f"; {self.refused} refused" if self.refused else ""
        return f"{self.share:.3f} [{low:.3f}, {high:.3f}]{width}{refused}"


def tally(found: Iterable[Interval | bool | None]) -> Tally:
    """Count intervals, or whether something was so; None is a trial without a number."""
    every = [
        interval if isinstance(interval, Interval | None) else Interval(interval)
        for interval in found
    ]
    known = [interval for interval in every if interval is not None]
    return Tally(
        hits=sum(interval.holds for interval in known),
        refused=len(every) - len(known),
        trials=len(every),
        half_width=math.fsum(interval.half_width for interval in known) / len(known)
        if known
        else math.nan,
    )


@dataclass(slots=True, kw_only=True)
class Run:
    """How a section is run, and its results so far."""

    seed: int
    quick: bool = False
    repetitions: int | None = None
    jobs: int = 2
    bars: list[dict[str, Any]] = field(default_factory=list)
    output: list[Any] = field(default_factory=list)
    _rows: list[list[Any]] = field(default_factory=list)
    _pool: ProcessPoolExecutor | None = None

    @property
    def z(self) -> float:
        """Normal quantile of the Wilson intervals that judge."""
        return QUICK_Z if self.quick else Z

    def runs(self, full: int, quick: int) -> int:
        """Return how often a row is repeated."""
        return self.repetitions or (quick if self.quick else full)

    def rng(self, *key: int) -> np.random.Generator:
        """Return the generator of a draw: default_rng([seed, *key])."""
        return np.random.default_rng([self.seed, *key])

    def repeated(self, run: Callable[[int], Result], runs: int) -> list[Result]:
        """Return the results of run 0, 1, ... , from as many processes as there are jobs."""
        if self.jobs == 1:
            return [run(number) for number in range(runs)]
        self._pool = self._pool or ProcessPoolExecutor(self.jobs)
        return list(self._pool.map(run, range(runs), chunksize=max(1, runs // (8 * self.jobs))))

    def say(self, line: str = "") -> None:
        """Print a line, and keep it with the results."""
        print(line, flush=True)
        self.output += filter(str.strip, line.splitlines())

    def heading(self, *columns: str) -> None:
        """Begin a table."""
        self._rows = []
        self.output.append({"columns": columns, "rows": self._rows})
        print(f"\n| {' | '.join(columns)} |\n| {' | '.join('---' for _ in columns)} |")

    def row(self, *cells: object) -> None:
        """Add a row to the table; numbers are kept as such."""
        self._rows.append([cell if isinstance(cell, int | float) else str(cell) for cell in cells])
        print(f"| {' | '.join(map(str, cells))} |", flush=True)

    def verdict(self, name: str, figure: object, limit: str, *, met: bool) -> str:
        """Keep a bar and how it was met; return it as it is printed."""
        self.bars.append({"bar": name, "figure": figure, "limit": limit, "met": bool(met)})
        return f"{limit}: {'met' if met else 'MISSED'}"

    def bar(self, name: str, figure: float, relation: str, limit: float) -> str:
        """Judge a figure."""
        met = RELATIONS[relation](figure, limit)
        return self.verdict(name, float(figure), f"{relation} {limit:g}", met=met)

    def judged(self, name: str, bar: Bar | None, found: Tally) -> str:
        """Judge a share, and its refusals."""
        if bar is None:
            return "none"
        hits = found.hits + found.refused if bar.may_refuse else found.hits
        low, high = wilson(hits, found.trials, self.z)
        few = wilson(found.refused, found.trials, self.z)[0] < MOST_REFUSED
        met = low <= bar.most and high >= bar.least and (bar.may_refuse or few)
        return self.verdict(name, found.share, str(bar), met=met)

    def share(self, name: str, bar: Bar, found: Iterable[Interval | bool | None]) -> None:
        """Print and judge one share."""
        counted = tally(found)
        self.say(f"{name}: {counted}, {self.judged(name, bar, counted)}")

    def shares(
        self,
        rows: Iterable[tuple[str, Callable[[int], Interval | bool | None], Bar | None]],
        runs: int,
        column: str = "held (half-width)",
    ) -> None:
        """Print and judge the share of trials that hold; a row has a name, a trial and a bar."""
        self.say(f"{runs} trials a row.")
        self.heading("row", column, "bar")
        for name, trial, bar in rows:
            found = tally(self.repeated(trial, runs))
            self.row(name, found, self.judged(name, bar, found))


@dataclass(slots=True)
class Script:
    """The sections of a script."""

    description: str | None
    sections: dict[str, tuple[str, int, bool, Callable[[Run], None]]] = field(default_factory=dict)

    def section(
        self, title: str, *, seed: int, quick: bool = True
    ) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
        """Register a function as a section; one without ``quick`` runs there only if asked for."""

        def register(function: Callable[[Run], None]) -> Callable[[Run], None]:
            name = function.__name__.replace("_", "-")
            self.sections[name] = (title, seed, quick, function)
            return function

        return register

    def main(self) -> int:
        """Print the sections asked for, and keep their results; return 1 if a quick one misses."""
        parser = argparse.ArgumentParser(
            description=self.description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--quick", action="store_true", help="as CI does; keeps no results")
        parser.add_argument("--only", help=f"some of {','.join(self.sections)}")
        parser.add_argument("--seed", type=int, help="instead of each section's")
        parser.add_argument("--repetitions", type=int, help="of every row, instead of the usual")
        parser.add_argument("--jobs", type=int, default=2, help="processes")
        options = parser.parse_args()
        usual = [name for name, section in self.sections.items() if section[2] or not options.quick]
        names = options.only.split(",") if options.only else usual
        if unknown := [name for name in names if name not in self.sections]:
            parser.error(f"{unknown[0]!r}, expected some of {', '.join(self.sections)}")
        print(describe())
        missed = [bar for name in names for bar in self._carry_out(name, options)]
        print(f"\n{len(missed)} bars missed{''.join(f'{chr(10)}* {each}' for each in missed)}")
        return 1 if options.quick and missed else 0

    def _carry_out(self, name: str, options: argparse.Namespace) -> Sequence[str]:
        title, seed, _, function = self.sections[name]
        seed = seed if options.seed is None else options.seed
        run = Run(
            seed=seed, quick=options.quick, repetitions=options.repetitions, jobs=options.jobs
        )
        print(f"\n## {title}\n\n{name}, seed {seed}{', quick' if options.quick else ''}\n")
        start = time.perf_counter()
        try:
            function(run)
        except (ImportError, br.InvalidInput) as error:
            run.say(f"Not measured: {error}: {run.verdict(name, None, 'measured', met=False)}")
        run.say(f"\n{name}: {time.perf_counter() - start:.0f} s")
        if not options.quick:
            _keep(name, title, run)
        return [bar["bar"] for bar in run.bars if not bar["met"]]


def _keep(name: str, title: str, run: Run) -> None:
    """Add the findings of a section to the results of its script, in place of an earlier line."""
    script = Path(sys.argv[0])
    path = RESULTS / f"{script.stem}.jsonl"
    its = {"section": name, "seed": run.seed}
    found = its | {
        "title": title,
        "date": str(datetime.datetime.now(tz=datetime.UTC).date()),
        "machine": describe(),
        "command": " ".join(["python", f"docs/evidence/{script.name}", *sys.argv[1:]]),
        "bars": run.bars,
        "output": run.output,
    }
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [line for line in lines if not its.items() <= json.loads(line).items()]
    path.write_text("\n".join([*kept, json.dumps(found, ensure_ascii=False), ""]), encoding="utf-8")
