"""Every door gives the same readings the same analysis: ask and tell, `run`, and a file."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click.testing
import numpy as np
import numpy.typing as npt
import pytest
from simulated.series import autoregressive
from tests.stats.told import told

import benchrigor as br
from benchrigor.cli import main
from benchrigor.protocols import Recorder
from benchrigor.testing import FakeClock

Floats = npt.NDArray[np.float64]
COMPARED = ("kind", "n", "n_kept", "phases", "fits", "estimate", "typical", "floor")


class Printed:
    """A program of which each round is a fresh process, with known units."""

    fresh_process = True

    def __init__(self, rounds: Sequence[Floats], clock: FakeClock) -> None:
        self._rounds, self._clock = rounds, clock

    def run(self, plan: br.RoundPlan, recorder: Recorder) -> None:
        """Give the units of one round."""
        if plan.index == len(self._rounds):
            raise StopIteration
        self._clock.advance(10**9)
        recorder.unit_readings("u", self._rounds[plan.index])


def warm_rounds() -> list[Floats]:
    rng = np.random.default_rng(11)
    warm = 1.0 + 2.0 * np.exp(-np.arange(300) / 20.0)
    return [warm * (1.0 + 0.03 * autoregressive(rng, 300, 0.5)) for _ in range(12)]


OUTCOMES = np.random.default_rng(12).random((12, 200)) < 0.98
ROUNDS: dict[str, tuple[list[Floats], str]] = {
    "times": (warm_rounds(), "ms"),
    "rates": ([1_000.0 / each for each in warm_rounds()], "req/s"),
    "shares": ([*OUTCOMES.astype(float)], ""),
}


def by_running(rounds: Sequence[Floats], unit: str) -> br.RunRecord:
    clock = FakeClock()
    options = br.Options(target=1e-9, max_rounds=len(rounds), budget_s=math.inf)
    session = br.Session(options, (br.Metric(name="u", unit=unit),), seed=1, clock=clock)
    return session.run(Printed(rounds, clock))


def by_file(rounds: Sequence[Floats], unit: str, folder: Path) -> dict[str, Any]:
    path = folder / "rounds.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["start", "u"])
        for index, each in enumerate(rounds):
            rows.writerows((f"start {index}", repr(value)) for value in each.tolist())
    words = ["analyze", str(path), "--column", "u", "--round", "start", "--json"]
    done = click.testing.CliRunner().invoke(main, [*words, *(["--unit", unit] if unit else [])])
    analysis: dict[str, Any] = json.loads(done.stdout)["analyses"][0]
    return analysis


def compared(analysis: dict[str, Any]) -> dict[str, Any]:
    """Leave out the Notices: how a session ended is no matter of its readings."""
    chosen = {name: analysis[name] for name in COMPARED}
    for name in ("estimate", "typical", "floor"):
        if chosen[name] is not None:
            chosen[name] = {k: v for k, v in chosen[name].items() if k != "notices"}
    return chosen


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_of_fresh_processes_are_analysed_alike_at_every_door(
    name: str, tmp_path: Path
) -> None:
    rounds, unit = ROUNDS[name]
    run = by_running(rounds, unit)
    one = compared(run.to_dict()["analyses"][0])
    kept = {"rounds": "restarted", "budget_s": math.inf}
    assert one == compared(told(*rounds, unit=unit, **kept).to_dict())
    assert one == compared(by_file(rounds, unit, tmp_path))
    assert run.options.rounds == "restarted"


def test_one_series_is_analysed_alike_told_and_in_a_file(tmp_path: Path) -> None:
    series = 1.0 + 0.05 * autoregressive(np.random.default_rng(5), 3000, 0.7)
    by_telling = told(*np.array_split(series, 6), unit="ms")
    path = tmp_path / "one.csv"
    path.write_text("u\n" + "".join(f"{value!r}\n" for value in series.tolist()))
    done = click.testing.CliRunner().invoke(main, ["analyze", str(path), "--unit", "ms", "--json"])
    analysis = json.loads(done.stdout)["analyses"][0]
    assert compared(by_telling.to_dict()) == compared(analysis)
