"""How often a session over a command holds the truth, and a file of the same readings."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from click.testing import CliRunner
from coverage_tables import Bar, Interval, Setting, heading, of, row, tally

import benchrigor as br
from benchrigor.cli import main
from benchrigor.protocols import Recorder
from benchrigor.testing import FakeClock

__all__ = ["commands"]

COMMANDS = 60
LEVEL_MS, BETWEEN, WITHIN, AUTOREGRESSION = 1.0, 0.005, 0.03, 0.5

Floats = npt.NDArray[np.floating]

# Time of each unit of a round of n units, less 1, in units of the level.
SHAPES: dict[str, Callable[[Floats, int], Floats]] = {
    "3 times, decaying with n/15": lambda at, n: 2.0 * np.exp(-at * 15.0 / n),
    "2 times for n/6": lambda at, n: 1.0 * (at < n / 6),
    "falling from 2.5 times over n/5": lambda at, n: 1.5 * np.maximum(1.0 - at * 5.0 / n, 0.0),
}
SIZES = ((50, 30), (300, 20), (1_000, 10))


class Program:
    """A program that prints how long each of its units took; every round is a fresh process."""

    fresh_process = True

    def __init__(self, rng: np.random.Generator, shape: str, n: int, clock: FakeClock) -> None:
        self._rng, self._shape, self._n, self._clock = rng, SHAPES[shape], n, clock

    def run(self, _plan: br.RoundPlan, recorder: Recorder) -> None:
        """Print the units of one round."""
        at, rng = np.arange(self._n, dtype=np.float64), self._rng
        noise = np.empty(self._n)
        noise[0] = rng.normal()
        for index, innovation in enumerate(rng.normal(size=self._n - 1), start=1):
            noise[index] = AUTOREGRESSION * noise[index - 1] + innovation
        level = LEVEL_MS * (1.0 + BETWEEN * rng.normal())
        units = level * (1.0 + self._shape(at, self._n)) * (1.0 + WITHIN * noise)
        self._clock.advance(int(units.sum() * 1e6))
        recorder.unit_readings("u", units)


def session_and_file(
    seed: int, number: int, shape: str, size: tuple[int, int], repetition: int
) -> tuple[Interval | None, Interval | None]:
    """Return the intervals of a session with default rounds, and of a file of its readings."""
    units, rounds = size
    rng = np.random.default_rng([seed, COMMANDS, number, repetition])
    clock = FakeClock()
    options = br.Options(target=1e-9, max_rounds=rounds, budget_s=float("inf"))
    session = br.Session(options, (br.Metric(name="u", unit="ms"),), seed=1, clock=clock)
    record = session.run(Program(rng, shape, units, clock))
    estimate = record.estimate()
    return (None if estimate is None else of(estimate, LEVEL_MS)), _by_file(record)


def _by_file(record: br.RunRecord) -> Interval | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.csv"
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["start", "u"])
            rows.writerows(_rows(record))
        words = [
            "analyze",
            str(path),
            "--column",
            "u",
            "--round",
            "start",
            "--unit",
            "ms",
            "--json",
        ]
        document = json.loads(CliRunner().invoke(main, words).stdout)
    estimate = document["analyses"][0]["estimate"]
    if estimate is None:
        return None
    return Interval(
        estimate["low"] <= LEVEL_MS <= estimate["high"],
        (estimate["high"] - estimate["low"]) / 2.0 / LEVEL_MS,
    )


def _rows(record: br.RunRecord) -> Iterator[tuple[int, str]]:
    for each in record.rounds:
        for value in each.unit_readings["u"].tolist():
            yield each.plan.index, repr(value)


def commands(setting: Setting) -> None:
    """Print the coverage of sessions over commands, and whether files give the same."""
    runs = setting.runs(200, 40)
    print(
        f"{runs} sessions a row with default options but for their number of rounds; levels of "
        f"rounds differ by {BETWEEN:.1%}, units by {WITHIN:.0%}, AR(1) {AUTOREGRESSION:g}. In "
        "brackets the half-width in % of the truth.\n"
    )
    heading(["warm-up", "rounds x units", "session", "bar", "file with --round"])
    for number, (shape, size) in enumerate(product(SHAPES, SIZES)):
        found = setting.repeated(partial(session_and_file, setting.seed, number, shape, size), runs)
        ours, files = (tally(each) for each in zip(*found, strict=True))
        name = f"{shape}, {size[1]} x {size[0]}"
        same = all(_alike(one, two) for one, two in found)
        equal = setting.verdict(f"{name}: file", same)
        bar = setting.judged(name, Bar(0.92), ours)
        row(shape, f"{size[1]} x {size[0]}", ours.cell(), bar, f"{files.cell()}, equal: {equal}")


def _alike(one: Interval | None, two: Interval | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.holds == two.holds and abs(one.half_width / two.half_width - 1.0) < 1e-9
