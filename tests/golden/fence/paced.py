"""Runs beside references in turn, on machines that change their pace: figures at full pace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.model import Delays, Options, References, Round, RoundPlan, RunRecord
from benchrigor.session import Session
from fence.cases import case

FULL_S, WORK_S = 4e-6, 1e-4  # of a reference, and of a reading, at full pace
GROUP, SPELL, N = 5, 100, 2_000  # readings between two references, at one pace, and in a round
COMMAND = {"command": 0.0102, "command cpu": 0.01, "command rest": 0.0002}


def paced(
    seed: int,
    *,
    slow: float = 1.5,
    share: float = 0.5,
    sensitivity: float = 1.0,
    rest_s: float = 0.0,
    waits: float = 0.0,
    n: int = N,
    known: bool = False,
    without: int = 0,
    **options: Any,
) -> RunRecord:
    """Tell readings that meet a machine which is slow for a share of the time.

    They follow the pace by a power of it, sleep as well, and some wait for others. The first
    rounds are ``without`` references.
    """
    rng = np.random.default_rng(seed)
    session = Session(
        Options(**{"target": 1e-4, "max_rounds": 3, "budget_s": 20.0, **options}),
        seed=1,
        name="work",
    )
    if known:
        session.subject.kept_levels = {"interpreter": [(FULL_S, 0.9)] * 9}
    while (plan := session.ask()) is not None:
        pace = np.where(np.repeat(rng.random(-(-n // SPELL)) < share, SPELL)[:n], slow, 1.0)
        work = WORK_S * pace**sensitivity * rng.normal(1.0, 0.02, n)
        waited = np.where(rng.random(n) < waits, 3.0 * WORK_S, 0.0)
        stops = np.arange(GROUP, n + 1, GROUP)
        readings = work + rest_s + waited
        seconds = FULL_S * pace[stops - 1] * rng.normal(1.0, 0.01, stops.size)
        busy = np.add.reduceat(work, stops - GROUP) if rest_s else None
        references = References(stops=stops, seconds={"interpreter": seconds}, busy=busy)
        session.tell(
            Round(
                plan=plan,
                elapsed_ns=round(1e9 * readings.sum()),
                unit_readings={"time": readings},
                delays=Delays(
                    stops=stops,
                    seconds={"run queue": np.add.reduceat(waited, stops - GROUP)},
                    duration_s=np.add.reduceat(readings, stops - GROUP),
                )
                if waits
                else None,
                references=None if plan.index < without else references,
            )
        )
    return session.result()


RUNS: Mapping[str, Mapping[str, Any]] = {
    "usual": {},
    "known": {"known": True, "share": 0.9},
    "hardly fast": {"share": 0.97},
    "never slow": {"share": 0.0},
    "unlike": {"sensitivity": 0.1},
    "more than the reference": {"sensitivity": 1.3, "slow": 1.2},
    "sleeping": {"rest_s": 1e-4, "known": True},
    "resting": {"rest_s": 1e-2},
    "waiting": {"waits": 0.3, "known": True},
    "few": {"n": 40, "known": True},
    "some": {"n": 100, "known": True, "max_rounds": 2},
    "median": {"statistic": "median", "share": 0.3},
    "p95 of what waits": {"statistic": "p95", "waits": 0.02},
    "restarted": {"rounds": "restarted", "max_rounds": 8},
    "most of restarted": {"rounds": "restarted", "max_rounds": 8, "without": 2},
    "some of restarted": {"rounds": "restarted", "max_rounds": 8, "without": 3},
    "median that waits": {"statistic": "median", "waits": 0.002},
    "fast for a moment": {"share": 0.98, "known": True},
    "settled": {"target": None, "max_rounds": None, "known": True, "n": 500, "slow": 6.0},
    "pieces": {"pieces": 6, "max_rounds": 6, "budget_s": 1.0},
}


def told(record: RunRecord) -> object:
    """Return a run, and its figures."""
    return {"record": record, "at full pace": record.at_full_pace(), "headline": record.headline()}


@case
def figures_at_full_pace() -> object:
    """Beside the time here, with an interval for what is not known of the pace."""
    return {name: told(paced(40, **given)) for name, given in RUNS.items()}


@case
def runs_at_different_paces() -> object:
    """Are compared at full pace."""
    slow, fast = paced(41, share=0.9), paced(42, share=0.1)
    more, other = paced(43, share=0.2, sensitivity=0.7), paced(44, share=0.4, rest_s=1e-3)
    pairs = {"alike": (slow, fast), "less": (slow, more), "sleeping": (fast, other)}
    return {name: br.compare_runs(*pair) for name, pair in pairs.items()}


def commands(
    seed: int,
    *,
    known: bool = True,
    rounds: int = 40,
    statistic: str = "mean",
    **spent: float,
) -> RunRecord:
    """Tell a command of 20 ms beside bare starts of the interpreter in each third round."""
    rng = np.random.default_rng(seed)
    given = Options(
        target=None,
        rounds="restarted",
        statistic=statistic,
        max_rounds=rounds,
        min_rounds=rounds,
    )
    engine = Session(given, seed=1, subject={"kind": "command"})
    if known:
        engine.subject.kept_levels = {kind: [(seconds, 1.0)] for kind, seconds in COMMAND.items()}
    while (plan := engine.ask()) is not None:
        engine.tell(of_command(plan, rng, **spent))
    return engine.result()


def of_command(
    plan: RoundPlan,
    rng: np.random.Generator,
    *,
    slower: float,
    rest_s: float = 0.002,
    sleep_s: float = 0.0,
    threads: float = 1.0,
) -> Round:
    """Return one run of the command."""
    cpu_s, start_s = slower * np.array([0.02, 0.01]) * rng.normal(1.0, 0.03, 2)
    rests = rng.exponential(rest_s, 2) + 0.0002
    times = (start_s + rests[1], start_s, rests[1])
    seconds = {kind: [each] for kind, each in zip(COMMAND, times, strict=True)}
    wall_s = float(cpu_s + rests[0] + sleep_s)
    return Round(
        plan=plan,
        elapsed_ns=50_000_000,
        readings={"time": wall_s},
        facts={"cpu_s": float(threads * cpu_s), "voluntary_switches": 2 if sleep_s else 1},
        delays=Delays(stops=[1], seconds={"run queue": [float(rests[0])]}, duration_s=[wall_s]),
        references=References(stops=[1], seconds=seconds) if plan.index % 3 == 0 else None,
    )


@case
def commands_at_full_pace() -> object:
    """On a slow machine, waiting, sleeping, in several threads, and where nothing is known."""
    runs: Mapping[str, Mapping[str, Any]] = {
        "slow": {"slower": 1.4},
        "fast": {"slower": 1.0},
        "waiting": {"slower": 1.2, "rest_s": 0.02},
        "sleeping": {"slower": 1.3, "sleep_s": 0.1},
        "median": {"slower": 1.3, "sleep_s": 0.01, "statistic": "median"},
        "threads": {"slower": 1.2, "threads": 2},
        "unknown": {"slower": 1.2, "known": False},
        "few": {"slower": 1.2, "rounds": 8},
    }
    found = {name: commands(45, **given) for name, given in runs.items()}
    compared = br.compare_runs(found["slow"], commands(46, slower=1.1))
    return {**{name: told(record) for name, record in found.items()}, "compared": compared}
