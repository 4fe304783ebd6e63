"""What readings say that were recorded long ago.

``recorded_inserts.csv`` holds the seconds that 3000 successive steps of ``sqlite_insert.py`` took
on one machine. Any file of numbers will do; the command line does the same:

    python examples/analyse_recording.py
    benchrigor analyze examples/recorded_inserts.csv --column seconds --unit s
"""

from __future__ import annotations

import csv
from pathlib import Path

from benchrigor import stats
from benchrigor.model import Estimate, StablePhase

RECORDING = Path(__file__).with_name("recorded_inserts.csv")


def main() -> tuple[StablePhase, Estimate]:
    """Return the stable phase of the recording and its mean."""
    with RECORDING.open(newline="", encoding="utf-8") as lines:
        seconds = [float(row["seconds"]) for row in csv.DictReader(lines)]
    return stats.find_stable_phase(seconds), stats.estimate_mean(seconds, trim=True)


if __name__ == "__main__":
    stable, estimate = main()
    for phase in stable.phases:
        print(f"{phase.label:<9} {phase.start:>5} to {phase.stop:>5}  median {phase.median:.3g} s")
    print(f"mean {estimate.value:.4g} s, {estimate.confidence:.0%} interval", end=" ")
    print(f"[{estimate.low:.4g}, {estimate.high:.4g}], {estimate.n_effective:.0f} effective")
    for notice in estimate.notices:
        print(notice)
