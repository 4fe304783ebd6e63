"""Stores that are damaged: is anything that they tell another thing than before, without an error.

A store of finished runs, one that was cut off, a comparison and a search for a peak is copied, and
damaged at random. All of it is listed and loaded then. What is told is the same, or an error.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from coverage_tables import Setting, heading, row
from trust_trials import done_trials

import benchrigor as br
from benchrigor.errors import BenchrigorError
from benchrigor.model import codec
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SyntheticWorkload
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.fakes import SimulatedServer

PAGE = 4096
KINDS = ("a bit", "eight bits", "a page of zeros", "a page of noise", "a page of another", "an end")


def damage(setting: Setting) -> None:
    """Print what damaged stores tell."""
    per_kind = 10 if setting.quick else -(-(setting.repetitions or 1000) // len(KINDS))
    names = [f"{kind}/{index}" for index in range(per_kind) for kind in KINDS]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole = _store(folder / "whole.sqlite")
        told = _told(folder / "whole.sqlite")

        def run(name: str) -> dict[str, Any]:
            path = folder / f"{name.replace('/', ' ')}.sqlite"
            path.write_bytes(_damaged(whole, name, setting.seed))
            found = _compared(told, path)
            for each in folder.glob(f"{path.name}*"):
                each.unlink()
            return found

        found = done_trials(setting, "damage", names, run)
    heading(["damage", "stores", "runs unchanged", "errors", "silently different", "tracebacks"])
    for kind in (*KINDS, "all"):
        rows = [trial for name, trial in found.items() if kind in {name.partition("/")[0], "all"}]
        total: Counter[str] = Counter()
        for trial in rows:
            total.update({key: value for key, value in trial.items() if isinstance(value, int)})
        met = setting.verdict(f"damage by {kind}", not (total["different"] or total["raised"]))
        row(
            kind, len(rows), *(total[key] for key in ("same", "errors", "different", "raised")), met
        )
    for name, trial in found.items():
        if trial["why"]:
            print(f"\n{name}: {trial['why']}")


def _store(path: Path) -> bytes:
    """Make a store of runs of several kinds, and return its bytes."""
    with Journal(path) as journal:
        for seed in range(6):
            clock = FakeClock()
            options = br.Options(target=0.01, max_rounds=30, readings_per_round=20)
            session = br.Session(options, name=f"run {seed}", seed=seed, store=journal, clock=clock)
            session.run(SyntheticWorkload(mean=1e-3, cv=0.05, seed=seed, clock=clock))
        clock = FakeClock()
        slow, fast = (lambda step=step: clock.advance(step) for step in (1_000_000, 1_100_000))
        br.measure_pair(slow, fast, store=journal, clock=clock, budget_s=0.5, seed=1)
        limit = br.Limit(metric="mean", at_most=0.04)
        search = PeakSearch(limits=[limit], setup_s=5.0)
        kept = {"limits": codec.encode([limit]), "setup_s": 5.0}
        PeakRun(search, name="a peak", options=kept, store=journal).carry_out(
            SimulatedServer(200.0)
        )
    return path.read_bytes()


def _told(path: Path) -> dict[str, Any]:
    """Return all that a store tells: the list, and each run."""
    with Journal(path) as journal:
        listed = journal.runs()
        told: dict[str, Any] = {f"list {run['run_id']}": run for run in listed}
        for run in listed:
            told[run["run_id"]] = codec.encode(journal.load(run["run_id"]))
        return told


def _damaged(whole: bytes, name: str, seed: int) -> bytes:
    kind, _, index = name.partition("/")
    rng = np.random.default_rng([seed, KINDS.index(kind), int(index)])
    data = bytearray(whole)
    if kind == "an end":
        return bytes(data[: int(rng.integers(1, len(data)))])
    if kind in {"a bit", "eight bits"}:
        for at in rng.integers(len(data), size=1 if kind == "a bit" else 8):
            data[at] ^= 1 << int(rng.integers(8))
        return bytes(data)
    pages = len(data) // PAGE
    at, other = (PAGE * int(page) for page in rng.integers(pages, size=2))
    noise = rng.bytes(PAGE)
    data[at : at + PAGE] = {
        "a page of zeros": bytes(PAGE),
        "a page of noise": noise,
        "a page of another": data[other : other + PAGE],
    }[kind]
    return bytes(data)


def _compared(told: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return how much of a damaged store is the same, is refused, or differs without an error."""
    found: Counter[str] = Counter()
    why = ""
    listed: list[dict[str, Any]] | None = None
    with suppress(BenchrigorError), Journal(path) as journal:
        for key, before in told.items():
            try:
                if not key.startswith("list "):
                    now = codec.encode(journal.load(key))
                else:
                    listed = journal.runs() if listed is None else listed
                    now = next((run for run in listed if run["run_id"] == key[5:]), None)
                    if now is not None and "damage" in now:
                        found["errors"] += 1
                        continue
            except BenchrigorError:
                found["errors"] += 1
                continue
            except Exception as error:  # noqa: BLE001  # which is what is looked for
                found["raised"] += 1
                why += f" {key}: {type(error).__name__}: {error}"
                continue
            found["same" if now == before else "different"] += 1
            if now != before:
                why += f" {key} differs: {before!s:.200} is now {now!s:.200}"
    return {**found, "why": why}
