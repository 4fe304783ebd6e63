"""Verdicts on files of pyperf of the same code."""

from __future__ import annotations

import tempfile
from pathlib import Path

import coverage_rivals as rivals
import numpy as np
from coverage_tables import Setting, heading, row
from formats_files import suite_of

import benchrigor as br

__all__ = ["false"]

BETWEEN, WITHIN, VALUES = 0.03, 0.01, 3
COUNTS = ((20, 20), (20, 19))
MOST_FALSE = 0.05
CHANGES = (br.Verdict.BETTER, br.Verdict.WORSE, br.Verdict.DIFFERENT)


def false(setting: Setting) -> None:
    """Print how often two files of the same code are told apart."""
    pairs = setting.runs(300, 60)
    print(
        f"{pairs} pairs a row, {BETWEEN:.0%} between processes of {VALUES} values ({WITHIN:.0%}).\n"
    )
    heading(["processes", "margin 0", "bar", "margin 1%", "bar", "pyperf's rule"])
    for number, counts in enumerate(COUNTS):
        sides = [
            {name: _drawn(setting, number, side, name, count) for name in _names(pairs)}
            for side, count in enumerate(counts)
        ]
        significant = sum(
            rivals.pooled_test(list(sides[0][name]), list(sides[1][name])) for name in sides[0]
        )
        cells = [f"{counts[0]} and {counts[1]}"]
        with tempfile.TemporaryDirectory() as folder:
            records = [
                _records(Path(folder, f"{index}.json"), each) for index, each in enumerate(sides)
            ]
        for margin in (0.0, 0.01):
            told = [
                br.compare_runs(*pair, margin=margin).verdict in CHANGES
                for pair in zip(*records, strict=True)
            ]
            name = f"{cells[0]} processes, margin {margin:g}"
            verdict = setting.at_most(name, MOST_FALSE, sum(told), pairs)
            cells += [f"{sum(told)} of {pairs}", f"at most {MOST_FALSE:.0%}: {verdict}"]
        row(*cells, f"{significant} of {pairs}")


def _names(pairs: int) -> list[str]:
    return [f"benchmark {number}" for number in range(pairs)]


def _drawn(setting: Setting, number: int, side: int, name: str, count: int) -> np.ndarray:
    """Return the values of processes, each with a level of its own."""
    rng = np.random.default_rng([setting.seed, 2, number, side, int(name.split()[1])])
    levels = 0.01 * rng.lognormal(0.0, BETWEEN, (count, 1))
    return np.asarray(levels * rng.lognormal(0.0, WITHIN, (count, VALUES)))


def _records(path: Path, made: dict[str, np.ndarray]) -> list[br.RunRecord]:
    path.write_text(suite_of(made))
    return br.read_results(path)
