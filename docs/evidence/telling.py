"""How much of a session's time benchrigor itself takes.

The sum of the time inside `ask`, `tell` and `result`, journal on disk included, for sessions of
30 s in 30 rounds with 1e3, 1e5 and 1e6 readings, looking as often as the quick preset does. The
readings are made beforehand and the 30 s are not waited for: only what is added to them is
measured. The last `tell` describes and stores the whole run.

    python docs/evidence/telling.py

Bar: at most 2 % of 30 s, that is 600 ms, with at least 5 analyses each.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from machine import describe

import benchrigor as br
from benchrigor.model import Progress

ROUNDS, SECONDS = 30, 30.0


def measured(n: int, folder: Path) -> tuple[float, float, int]:
    """Return the seconds inside, those of the longest `tell`, and the number of analyses."""
    rng = np.random.default_rng(n)
    series = rng.lognormal(0.0, 0.3, n) * SECONDS / n
    series[: n // 10] *= 1.0 + 2.0 * np.exp(-np.arange(n // 10) / (n / 40))
    chunks = iter(np.array_split(series, ROUNDS))
    options = br.Options(target=1e-9, preset="quick", budget_s=float("inf"), max_rounds=ROUNDS)
    session = br.Session(options, seed=1, store=folder / f"{n}.sqlite")
    told, looks = [], 0
    start = time.perf_counter()
    while (plan := session.ask()) is not None:
        finished = br.Round(plan=plan, elapsed_ns=int(1e9), unit_readings={"time": next(chunks)})
        before = time.perf_counter()
        session.tell(finished)
        told.append(time.perf_counter() - before)
        progress: Progress | None = session.progress
        looks += progress is not None and progress.fresh
    session.result()
    return time.perf_counter() - start, max(told), looks


def main() -> None:
    """Print the table."""
    print(describe())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        measured(400, Path(folder))
        print(
            f"warming imports and the first journal, apart: {time.perf_counter() - start:.2f} s\n"
        )
        print("| readings | analyses | inside, of 30 s | longest tell | bar 2 % |")
        print("| --- | --- | --- | --- | --- |")
        for n in (1_000, 100_000, 1_000_000):
            total, longest, looks = measured(n, Path(folder))
            share = total / SECONDS
            met = "met" if share <= 0.02 and looks >= 5 else "MISSED"
            print(
                f"| {n:,} | {looks} | {total * 1e3:.0f} ms ({share:.2%}) "
                f"| {longest * 1e3:.0f} ms | {met} |"
            )


if __name__ == "__main__":
    main()
