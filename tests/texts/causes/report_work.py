"""Texts about speeds, of two sides, of tables of commands, of machines, and of pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import click.testing
import numpy as np
from shared_cases import SyntheticJob
from simulated.estimates import estimated
from simulated.paced_commands import run_of
from tests.texts.causes.report import RECORDS, all_of, synthetic
from tests.texts.rendering import run

import benchrigor as br
from benchrigor.model import Code, Comparison, Notice, RunRecord, Verdict
from benchrigor.model.comparison import Ranked
from benchrigor.model.notice import Finding, Fitness
from benchrigor.report import plot_trace, plot_work, render
from benchrigor.report.fact import page_of, page_of_facts
from benchrigor.report.facts.machine_facts import render_findings
from benchrigor.report.tables import facts_of_commands
from benchrigor.report.writers import write_records
from benchrigor.session.pairs.ranking import Ranking
from benchrigor.testing import FakeClock
from benchrigor.units import Direction

DATA = Path(__file__).parents[2] / "formats" / "data"
NO_SPEED = Notice.of(Code.NO_SPEED)
FINDINGS = [
    Finding(name="clock", found="tsc", verdict=Fitness.OK),
    Finding(name="hot", found="no sensor", verdict=Fitness.UNKNOWN),
    Finding(
        name="turbo",
        found="on",
        verdict=Fitness.DOUBTFUL,
        advice="turn it off, " * 9,
        code=Code.CHANGING_PACE,
    ),
    Finding(name="waiting", found="run delay 50%", verdict=Fitness.UNFIT, advice="wait"),
    Finding(name="n" * 90, found="on", verdict=Fitness.OK),
]


@cache
def ran(max_rounds: int, unit: str) -> RunRecord:
    """Return a run of various work; as many rows want the same one."""
    clock = FakeClock()
    job = SyntheticJob(speed=2e7, overhead_s=0.1, cv=0.02, seed=1, clock=clock)
    options = br.Options(work=(0, 10**8), target=0.001, short_round_s=0.01, max_rounds=max_rounds)
    speed = br.Metric(name="speed", unit=unit, direction="higher")  # type: ignore[arg-type]
    record = br.Session(options, (speed,), name="gzip", seed=1, clock=clock).run(job)
    return replace(record, provenance=None)


def work(max_rounds: int = 30, unit: str = "B/s", **changes: object) -> RunRecord:
    """Return a run of various work, with changes to its line."""
    record = ran(max_rounds, unit)
    (analysis,) = record.analyses
    if analysis.wps is not None:
        fit = replace(analysis.wps, **changes)  # type: ignore[arg-type]
        notices = analysis.notices if fit.speed else (NO_SPEED,)
        analysis = replace(analysis, wps=fit, estimate=fit.speed, notices=notices)
    return replace(record, analyses=(analysis,))


def rows(**changes: object) -> str:
    """Return all that is known of such a run."""
    return render(work(**changes))  # type: ignore[arg-type]


def compared(verdict: Verdict, *notices: Notice, names: tuple[str, str]) -> Comparison:
    """Return a comparison of two sides."""
    side = estimated(1.0e-3, 0.9e-3, 1.1e-3)
    return Comparison(
        statistic="mean",
        direction=Direction.LOWER,
        margin=0.01,
        confidence=0.95,
        paired=True,
        unit="pair",
        baseline=side,
        candidate=side,
        ratio=estimated(1.2, 1.1, 1.3),
        difference=side,
        p_value=0.01,
        p_beyond=0.01,
        verdict=verdict,
        required=20,
        notices=notices,
        elapsed_s=3.0,
        readings_in="s",
        names=names,
    )


def two_sides(verdict: Verdict) -> Iterator[str]:
    """Yield the texts about two sides."""
    notices = (
        Notice.of(Code.CHANGING_PACE, over_="9 s", how_="changed"),
        Notice.of(Code.NO_DIRECTION),
    )
    found = compared(verdict, *notices, names=("old", "new"))
    yield from (str(found), page_of(found))


def drifting() -> Iterator[str]:
    """Yield the texts about sides that slow down together, so that their ratio alone is stable."""
    rng = np.random.default_rng(12)
    drift = 1.0 + np.arange(3000) / 6_000 + np.abs(np.cumsum(rng.normal(0.0, 0.002, 3000)))
    old, new = (level * drift * rng.normal(1.0, 0.05, 3000) for level in (1e-5, 1.2e-5))
    found = br.compare_runs(old, new, paired=True, direction="lower")
    yield from (str(found), page_of(replace(found, readings_in="s")))


def commands(references: bool = True, **options: object) -> str:
    """Return the table of two commands; one met a busy machine."""
    made = {
        "quiet": run_of(slower=1.0, rest_s=0.0001, seed=2),
        "busy": run_of(slower=1.3, rest_s=0.01, seed=2, references=references),
    }
    named = {
        name: replace(record, name=name, options=replace(record.options, **options))  # type: ignore[arg-type]
        for name, record in made.items()
    }
    estimates = {name: record.estimate() for name, record in named.items()}
    places = tuple(
        Ranked(name=name, estimate=estimate, place=place)
        for place, (name, estimate) in enumerate(estimates.items(), 1)
        if estimate is not None
    )
    return page_of_facts(facts_of_commands(named, Ranking(places=places)))


def remarks_of_writing(to: str, *names: str, metric: str | None = None) -> Iterator[str]:
    """Yield the remarks next to files for other tools."""
    records = [record for name in names for record in br.read_results(DATA / name)]
    yield from write_records(records, to, metric).remarks


def drawn(draw: Callable[..., object], *given: object) -> object:
    """Return the words in a picture."""
    axes = draw(*given)
    return [label.get_text() for label in (*axes.texts, axes.title, axes.xaxis.label)]  # type: ignore[attr-defined]


def far_above() -> RunRecord:
    """Return a run of work with two rounds of a minute."""
    record, minute = work(outliers=(10, 13)), {"time": 60.0}
    taken = {24: minute, 27: minute}
    rounds = (
        replace(done, readings=taken.get(done.plan.index, done.readings)) for done in record.rounds
    )
    return replace(record, rounds=tuple(rounds))


def under_pressure() -> click.testing.Result:
    """Return the texts about the profile of a program that waited for memory."""
    facts = {"wall_s": 8.0, "pressure_memory_s": 2.0, "pressure_memory_full_s": 0.8}
    br.SegmentProfile(duration_s=[0.1, 0.2] * 40, facts=facts).save("profile.json")
    return run("interference", "profile.json", "--details")


CAUSES: dict[str, Callable[[], object]] = {
    "a speed": lambda: all_of(work()),
    "a speed of lines": lambda: rows(unit="lines/s"),
    "a speed wanted more narrowly": lambda: rows(max_rounds=12),
    "two rounds of work": lambda: all_of(work(max_rounds=2)),
    "no round of work": lambda: all_of(replace(work(max_rounds=2), rounds=(), analyses=())),
    "no speed": lambda: all_of(work(speed=None)),
    "a line with few checks": lambda: rows(
        bend=None, growth=None, shape=None, outliers=(), inflation=1.0
    ),
    "a line without error": lambda: rows(
        prediction_error=2e-16, bend=estimated(-2e-16, -3e-16, -1e-16)
    ),
    "a naive speed that is higher": lambda: rows(naive_speed=3e7),
    "a naive speed that is the same": lambda: rows(naive_speed=work().estimate().value),  # type: ignore[union-attr]
    "growth with a name": lambda: rows(shape="n log n", growth=estimated(1.1, 1.05, 1.15)),
    "growth without a name": lambda: rows(shape="other", growth=estimated(1.4, 1.3, 1.5)),
    "growth that is vague": lambda: rows(shape=None, growth=estimated(1.0, 0.3, 1.7)),
    "rounds far from the line": lambda: all_of(work(outliers=(0, 4))),
    "many rounds far from the line": lambda: rows(outliers=tuple(range(9))),
    "autocorrelated rounds": lambda: all_of(work(inflation=1.8)),
    "an overhead that no clock has seen": lambda: rows(overhead=estimated(1e-17, -1e-16, 1e-16)),
    "sides that slow down together": drifting,
    "commands": lambda: commands(target=None),
    "two commands, one without references": lambda: commands(references=False, target=None),
    "commands and a target missed": lambda: commands(target=0.02, target_given=True),
    "commands and a target reached": lambda: commands(target=0.5, target_given=True),
    "commands and a target that was not given": lambda: commands(target=0.02, target_given=False),
    "a machine": lambda: render_findings(FINDINGS),
    "a machine that shows little of its state": lambda: render_findings(FINDINGS[:2]),
    "a machine with one doubt": lambda: render_findings(FINDINGS[:3]),
    "a picture of readings": lambda: drawn(plot_trace, synthetic()),
    "a picture of rounds": lambda: drawn(plot_trace, RECORDS["invocations"]()),
    "a picture of work": lambda: drawn(plot_work, work()),
    "a picture of no speed": lambda: drawn(plot_work, work(speed=None)),
    "a picture of growth": lambda: drawn(
        plot_work, work(shape="quadratic", growth=estimated(1.98, 1.9, 2.06))
    ),
    "a picture of rounds far above": lambda: drawn(plot_work, far_above()),
    "a picture of readings left out": lambda: drawn(plot_trace, RECORDS["waiting"]()),
    "a profile with pressure": under_pressure,
    "a picture of a metric that is not there": lambda: plot_trace(synthetic(), "tme"),
    "a picture of nothing": lambda: plot_trace(RECORDS["nothing measured"]()),
    "a picture of a list": lambda: plot_trace([1.0, 2.0]),  # type: ignore[arg-type]
    "a picture of work that is not valid": lambda: plot_work(RECORDS["nothing measured"]()),
    "a picture of work of a list": lambda: plot_work([1.0]),  # type: ignore[arg-type]
    "benchmarks of one name": lambda: remarks_of_writing(
        "pyperf", "hyperfine.json", "hyperfine.json"
    ),
    "benchmarks and a metric that they lack": lambda: remarks_of_writing(
        "pyperf", "hyperfine.json", "hyperfine.json", metric="speed"
    ),
    "benchmarks that failed": lambda: remarks_of_writing("csv", "google-benchmark.json"),
    "benchmarks without readings": lambda: remarks_of_writing("csv", "hyperfine.csv"),
    "benchmarks for github": lambda: remarks_of_writing("github", "hyperfine.json"),
}
CAUSES["two sides without a ratio"] = lambda: page_of(
    replace(compared(Verdict.UNDECIDED, NO_SPEED, names=("old", "new")), ratio=None)
)
CAUSES |= {f"two sides, {verdict}": partial(two_sides, verdict) for verdict in Verdict}
