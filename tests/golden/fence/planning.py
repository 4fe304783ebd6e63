"""Plans for a run to come, and the track record of runs that were."""

from __future__ import annotations

from dataclasses import replace

from benchrigor.machine import provenance
from benchrigor.model import Estimate, RunRecord
from benchrigor.session import plan
from benchrigor.stats import estimate_invocations, estimate_mean
from benchrigor.stats.planning import pair_runs, track_record, track_records
from fence.cases import case
from fence.plain import attempted
from fence.readings import correlated, invocations, warming
from fence.rounds import restarted
from fence.telling import Tape, record_of


def mean(seed: int) -> Estimate:
    """Estimate the mean of a run of its own."""
    return estimate_mean(correlated(300, seed=seed, phi=0.3))


def pilot() -> RunRecord:
    """Return a short run, with a warm-up."""
    return record_of(Tape(time=warming(700, seed=250)), target=1e-3, budget_readings=700)


@case
def plans_from_estimates() -> object:
    ways = (
        {"change": 0.02},
        {"change": 0.05, "power": 0.95, "margin": 0.02},
        {"change": 0.02, "confidence": 0.99, "half_widths": (0.1, 0.001)},
    )
    known = {"readings": mean(251), "invocations": estimate_invocations(invocations("baseline"))}
    return {name: [plan(each, **how) for how in ways] for name, each in known.items()}


@case
def plans_from_runs() -> object:
    several = record_of(restarted, rounds="restarted", max_rounds=10, target=1e-4)
    nothing = record_of(Tape(time=[1.0]))
    return {
        "readings": plan(pilot(), change=0.01),
        "invocations": plan(several, change=0.01),
        "nothing": attempted(plan, nothing),
    }


@case
def track_record_of_intervals() -> object:
    """Holds 30 intervals against later runs, some of which lie elsewhere."""
    pairs = [(mean(260 + each), mean(300 + each)) for each in range(30)]
    moved = [(early, mean(350)) for early, _ in pairs[:3]]
    names = [f"job {each % 2}" for each in range(30)]
    return {
        "pairs": track_record(pairs, names=names),
        "two": track_record(pairs[:2]),
        "with others": track_record([*pairs[:20], *moved]),
    }


def on_a_machine(record: RunRecord, started_at: str) -> RunRecord:
    """Return a run as if it had been made on a machine, at a time."""
    machine = replace(provenance(), host="machine", cpu="any", cores=2, started_at=started_at)
    return replace(record, provenance=machine)


@case
def track_records_of_runs() -> object:
    """Pairs runs of the same thing on one machine, in the order of their times."""
    runs = [
        on_a_machine(
            record_of(Tape(time=correlated(5000, seed=360 + day))), f"2026-01-{day:02}T00:00:00Z"
        )
        for day in range(1, 6)
    ]
    pairs = pair_runs(runs)
    return {"pairs": pairs, "records": track_records(pairs)}
