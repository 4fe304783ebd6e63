"""What golden cases share with other tests: a workload on a known line, and runs analysed anew."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import benchrigor as br
from benchrigor.model import RoundPlan, RunRecord
from benchrigor.protocols import Recorder
from benchrigor.testing import FakeClock


@dataclass(slots=True, kw_only=True, eq=False)
class SyntheticJob:
    """Takes ``overhead_s + (work / speed) ** growth`` seconds a round, times Gaussian noise.

    The round is drawn from the seed and its index: the same in whatever order rounds come.
    """

    speed: float
    overhead_s: float = 0.0
    cv: float = 0.0
    seed: int = 0
    clock: FakeClock | None = None
    growth: float = 1.0

    def draw(self, plan: RoundPlan) -> float:
        """Return the duration of a round in seconds."""
        assert plan.work is not None
        noise = np.random.default_rng([self.seed, plan.index]).standard_normal()
        duration_s = self.overhead_s + (plan.work / self.speed) ** self.growth
        return float(duration_s * (1.0 + self.cv * noise))

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Record the duration of a round as its reading of "time"."""
        duration_s = self.draw(plan)
        if self.clock is not None:
            self.clock.advance(round(duration_s * 1e9))
        recorder.reading("time", duration_s)


def analysed_again(record: RunRecord) -> RunRecord:
    """Return the analysis of the rounds of a run, saved as one that was cut off."""
    cut_off = replace(record, analyses=(), decision=None, session_notices=())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        cut_off.save(path)
        (again,) = br.read_results(path)
    return again
