"""What runs, comparisons and files say of themselves, where no golden record says it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from simulated.paced import paced_round
from tests.stats.told import told as in_pieces
from tests.texts.rendering import of_code, tried

import benchrigor as br
from benchrigor.model import Delays, Metric, Notice, Options, Round, RoundPlan, RunRecord
from benchrigor.protocols import Recorder
from benchrigor.report import explain, render
from benchrigor.report.fact import page_of, page_of_facts
from benchrigor.report.tables import facts_of_runs
from benchrigor.session import Session
from benchrigor.testing import FakeClock, FakeMeter, MemoryStore, SyntheticWorkload
from benchrigor.units import Quantity

MS = 1_000_000
SERIES = np.random.default_rng(1).normal(1.0, 0.05, 200)
STILL_S = 3.0 * (np.arange(40) == 7)
SPEED = Metric(name="speed", unit="req/s")
RATE, SCORE = Metric(name="rate", unit="req/s"), Metric(name="score", unit="points")
SAMPLES = Path(__file__).parents[2] / "formats" / "data"


def units(
    values: np.ndarray, metric: Metric | None = None, *, delays: object = None, **options: Any
) -> RunRecord:
    """Pass readings of units in one round."""
    given = Options(**{"target": 1e-9, "max_rounds": 1, **options})
    session = Session(given, None if metric is None else (metric,), name="job", seed=1)
    series = {"time" if metric is None else metric.name: values}
    asked = session.ask()
    session.tell(Round(plan=asked, elapsed_ns=10**9, unit_readings=series, delays=delays))
    return session.result()


def rounds(metric: Metric, readings: Any, seconds: Any, trials: Any = None) -> RunRecord:
    """Pass one reading a round, with the time that it took."""
    options = Options(target=1e-9, max_rounds=len(readings), budget_s=60.0)
    session = Session(options, (metric,), name="job", seed=1)
    for reading, took_s, trial in zip(readings, seconds, trials or readings, strict=True):
        weights = {} if trials is None else {metric.name: trial}
        told = {metric.name: reading}
        asked, elapsed_ns = session.ask(), round(took_s * 1e9)
        session.tell(Round(plan=asked, elapsed_ns=elapsed_ns, readings=told, weights=weights))
    return session.result()


def disturbed(share: int, *, told: Callable[[RunRecord], object], **options: Any) -> object:
    """Run a function of 4 ms, which waits for 10 ms in some calls."""
    clock, rng = FakeClock(), np.random.default_rng(1)
    meter, calls = FakeMeter(clock), iter(range(100_000))

    def job() -> None:
        clock.advance(int(rng.normal(4 * MS, 0.04 * MS)))
        if next(calls) % share == 0:
            meter.lose(10 * MS)

    given = Options(**{"target": 0.05, "budget_s": 120.0, **options})
    return told(Session(given, seed=1, clock=clock, meter=meter, name="job").run(job))


def seen_in_part(**delays: Any) -> RunRecord:
    """Pass rounds with few fields."""
    options = Options(rounds="restarted", max_rounds=12, target=1e-6, budget_s=60.0)
    engine, rng = Session(options, seed=1, name="lat"), np.random.default_rng(1)
    while (asked := engine.ask()) is not None:
        values = {"lat": rng.normal(9.5, 0.1, 30)}
        lost = Delays(stops=[1], duration_s=[1.09], **delays)
        engine.tell(Round(plan=asked, elapsed_ns=1_100 * MS, unit_readings=values, delays=lost))
    return engine.result()


def lines_with(word: str, text: object) -> str:
    """Return the lines of a text that have a word."""
    return "\n".join(line.strip() for line in str(text).splitlines() if word in line)


def pair(
    second: Callable[[FakeClock, int], object], first: Any = None, **options: Any
) -> br.Comparison:
    """Measure a function of a millisecond and another one in turn."""
    clock, calls = FakeClock(**options.pop("of_clock", {})), [0, 0]
    rng = np.random.default_rng(1)

    def call(side: int) -> None:
        calls[side] += 1
        clock.advance(int(rng.normal(options_ns, 0.03 * options_ns)))
        if side:
            second(clock, calls[1])

    options_ns = options.pop("lasts_ns", MS)
    given = {"clock": clock, "seed": 1, "budget_s": 1.0, **options}
    return br.measure_pair(lambda: call(0), lambda: call(1), **given)


def failing(_: FakeClock, calls: int) -> None:
    """Fail late."""
    if calls == 300:
        raise KeyError("gone")


def jumping(clock: FakeClock, calls: int) -> None:
    """Turn the clock back."""
    if calls == 100:
        clock.advance(-5 * MS)


def broken(progress: br.Progress) -> None:
    """Show nothing."""
    if progress.readings > 100:
        raise OSError("no screen")


def of_work(high: int, lasting: Callable[[float], float], rounds: int = 99) -> RunRecord:
    """Pass rounds of various work with their durations."""
    options = Options(work=(1, high), budget_s=10.0, max_rounds=rounds)
    session = Session(options, seed=1, clock=FakeClock())
    noise = np.random.default_rng(36)
    while (asked := session.ask()) is not None:
        seconds = lasting(asked.work or 0) * noise.normal(1.0, 0.02)
        session.tell(Round(plan=asked, elapsed_ns=int(seconds * 1e9)))
    return session.result()


def of_memory() -> RunRecord:
    """Measure the time and the memory of a call."""
    clock = FakeClock()

    def fill() -> int:
        clock.advance(10 * MS)
        return len(bytearray(3_000_000))

    return br.measure(fill, memory=True, budget_s=0.1, clock=clock, seed=1)


def hit() -> list[Notice]:
    """Pass readings; the longest ones nearly always waited."""
    rng = np.random.default_rng(3)
    own_s = rng.gamma(1.0, 1.0, 2000)
    waited_s = rng.uniform(0.1, 2.0, 2000) * (rng.random(2000) < -np.expm1(-1.5 * own_s))
    return of_code("longest-disturbed", units(own_s + waited_s, delays=waited_s).notices)


class Paced:
    """Readings and references of a machine of two speeds, next to a real clock."""

    name = "work"

    def __init__(self, version: str, seed: int) -> None:
        self.source_files = (Path(__file__), version)
        self._rng = np.random.default_rng(seed)

    def take_turns(self) -> None:
        """Measure a reference in turn."""

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Record a round."""
        made = paced_round(plan, self._rng, slow_share=0.5)
        recorder.unit_readings("time", made.unit_readings["time"])
        recorder.references(made.references)


def keep_run(version: str = "a", seed: int = 1) -> RunRecord:
    """Keep a run of a version, as of a machine without a known full speed."""
    session = Session(Options(max_rounds=1), seed=1, name="work", store="runs.sqlite")
    return session.run(Paced(version, seed))


def beside_others() -> list[Notice]:
    """Compare runs next to which others are stored."""
    old, new, *_ = [keep_run(version, seed) for seed, version in enumerate("abaab")]
    told = br.compare_runs(old, new, store="runs.sqlite").notices
    return [*of_code("at-full-pace", told), *of_code("stored-runs", told)]


def measure_profiled() -> list[Notice]:
    """Measure next to a profiler."""
    sys.setprofile(lambda *_: None)
    try:
        return of_code("full-pace-not-kept", keep_run().notices)
    finally:
        sys.setprofile(None)


def differing(code: str, *others: dict[str, Any]) -> Iterator[list[Notice]]:
    """Yield all that is said with a code in a run of one place, and in several others."""
    run = br.read_results(SAMPLES / "pytest-benchmark-5.3.1.json")[1]

    def of_place(name: str = "m.f", **where: Any) -> RunRecord:
        known = replace(run.provenance, **where)  # type: ignore[type-var]
        return replace(run, provenance=known, subject={"kind": "function", "name": name})

    for other in others:
        found = br.compare_runs(of_place(function="ab"), of_place(**other))
        yield of_code(code, found.notices)


def resume_leaking() -> list[Notice]:
    """Take up a run that loses its number by a leak."""
    clock, store = FakeClock(), MemoryStore()
    short = Options(target=0.0001, budget_readings=300)
    workload = SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock)
    first = Session(short, seed=1, clock=clock, store=store).run(workload)
    slower, more = iter(range(100_000)), replace(short, budget_readings=600)
    session = Session.resume(store, str(first.run_id), options=more, clock=clock)
    record = session.run(lambda: clock.advance(1_000_000 + 3000 * next(slower)))
    return [*of_code("resumed", record.notices), *of_code("earlier-number", record.notices)]


def told_default(**options: Any) -> str:
    """Return the line and the page of a run that ends with its budget, far from its target."""
    clock = FakeClock()
    session = Session(Options(budget_s=0.5, **options), name="job", seed=1, clock=clock)
    record = session.run(SyntheticWorkload(mean=0.01, cv=0.15, seed=1, clock=clock))
    return lines_with("±", page_of(record))


def file(name: str, content: object) -> list[RunRecord]:
    """Read a file of such content."""
    text = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(text, encoding="utf-8")
    return br.read_results(name)


def hyperfine(*results: dict[str, Any]) -> list[RunRecord]:
    """Read results of hyperfine."""
    return file(
        "hyperfine.json", {"results": [{"command": "sort", **result} for result in results]}
    )


def means_alone() -> Iterator[str]:
    """Yield the texts about files that have means alone."""
    for name in (
        "pytest-benchmark-5.3.1-saved.json",
        "hyperfine.csv",
        "k6-summary.json",
        "vegeta-report.json",
    ):
        record = br.read_results(SAMPLES / name)[0]
        yield from tried(br.compare_runs, (record, record))


def in_turn(**lasting_us: int) -> Any:
    """Measure functions in turn."""
    clock = FakeClock()
    functions = {
        name: partial(clock.advance, each_us * 1000) for name, each_us in lasting_us.items()
    }
    return br.measure_many(functions, budget_s=1.0, seed=1, clock=clock)


def sides_of_two() -> Iterator[str]:
    """Yield the texts about sides that were not measured in one comparison."""
    one, other = (units(SERIES) for _ in range(2))
    yield from tried(partial(br.compare_runs, paired=True), (one, other), (one, SERIES))


SHARE = Metric(name="ok", kind=Quantity.SHARE)
OUTCOMES = (np.random.default_rng(3).random(2_000) < 0.98).astype(float)

CAUSES: dict[str, Callable[[], object]] = {
    "a disturbed run": lambda: disturbed(
        10, told=lambda record: [*record.notices, lines_with("waiting", render(record))]
    ),
    "a disturbed run that keeps all": lambda: disturbed(
        10, told=lambda record: record.notices, disturbed="keep"
    ),
    "a run without a round that is not red": lambda: disturbed(
        1,
        told=lambda record: [*record.notices, lines_with("●", render(record))],
        red_rounds="repeat",
        budget_s=2.0,
    ),
    "delay that is known in part": lambda: [
        *(record := seen_in_part(seconds={"run queue": [0.109]}, known=[0.35])).notices,
        lines_with("●", render(record)),
    ],
    "time of other threads": lambda: lines_with(
        "threads", render(seen_in_part(seconds={"run queue": [0.01]}, own=[0.5], known=[0.5]))
    ),
    "a run that was disturbed in its longest readings": hit,
    "a run that was stopped": lambda: of_code(
        "stopped-process",
        units(
            SERIES[:40] + STILL_S, delays=Delays(stops=range(1, 41), seconds={"stopped": STILL_S})
        ).notices,
    ),
    "full speed next to a profiler": measure_profiled,
    "stored runs next to those compared": beside_others,
    "runs of two machines, and after a new start of one": lambda: differing(
        "hosts-differ", {"host": "oak"}, {"environment": {"boot_time": "later"}}
    ),
    "functions that differ, and do not": lambda: differing(
        "functions-differ",
        *({"function": digest} for digest in ("cd", "ab", None)),
        {"function": "cd", "name": "m.g"},
    ),
    "metrics that differ": lambda: of_code(
        "metrics-differ",
        br.compare_runs(*(units(SERIES, record) for record in (RATE, SPEED))).notices,
    ),
    "an interval that is too wide": lambda: units(np.array([0.1, 0.15, 0.87])).notices,
    "few pieces, and enough": lambda: [
        of_code("few-pieces", in_pieces(*[SERIES] * n, pieces=n, budget_s=2.0 * n).notices)
        for n in (2, 3, 4)
    ],
    "a cut as asked": lambda: lines_with("asked", render(units(SERIES, trim=(0.2, 0.1)))),
    "the memory of a call": lambda: lines_with("memory", render(of_memory())),
    "amounts that are too short": lambda: of_work(1000, lambda work: 1e-8 * work),
    "amounts that a budget does not reach": lambda: [
        lines_with("amounts", render(record := of_work(10_000, lambda work: 0.02 + work / 1000))),
        record.notices,
    ],
    "a number that stood before": resume_leaking,
    "a default that is missed": told_default,
    "a target that is missed": lambda: told_default(target=0.02),
    "a rate by the time of rounds": lambda: render(
        rounds(RATE, [100.0, 300.0] * 10, [3.0, 1.0] * 10)
    ),
    "rates that are all equal": lambda: [
        units(np.full(40, 49.0), RATE).notices,
        rounds(RATE, [123456789.123] * 12, [0.1, 0.2, 0.3] * 4).notices,
    ],
    "a share of trials": lambda: render(
        rounds(SHARE, [0.9, 0.99] * 5, [1.0] * 10, [100.0, 10_000.0] * 5)
    ),
    "the target of a share": lambda: lines_with(
        "rarer", render(units(OUTCOMES, Metric(name="ok"), target=0.5))
    ),
    "what goes neither way": lambda: str(
        br.compare_runs(units(SERIES, SCORE), units(1.2 * SERIES, SCORE))
    ),
    "one reading": lambda: [
        str(record := units(np.array([30.0]))),
        page_of_facts(facts_of_runs([record])),
        lines_with("~", explain(record)),
    ],
    "a candidate that leaks": lambda: str(
        pair(lambda clock, calls: clock.advance(1000 * calls), budget_s=1.0)
    ),
    "a candidate that has warmed up just before the end": lambda: (
        pair(
            lambda clock, calls: clock.advance(MS // 2 * (calls < 450)), budget_s=1.2, batch=1
        ).notices
    ),
    "a candidate that fails": lambda: pair(failing),
    "a candidate that turns the clock back": lambda: pair(jumping),
    "a pair of a coarse clock": lambda: pair(
        lambda *_: None,
        lasts_ns=10_000,
        batch=1,
        budget_s=0.01,
        of_clock={"resolution_ns": 1_000, "cost_ns": 300},
    ).notices[-1],
    "a pair that is shown nowhere": lambda: pair(lambda *_: None, progress=broken).notices,
    "one function in turn that fails": lambda: br.measure_many(
        {"a": int, "worn": partial(int, "worn out")},
        budget_s=0.01,
        clock=FakeClock(cost_ns=100_000),
    ),
    "functions in turn": lambda: [str(found := in_turn(slow=30_000, fast=20_000)), repr(found)],
    "runs that cannot be compared": lambda: tried(
        br.compare_runs,
        {"baseline": units(SERIES), "candidate": SERIES, "paired": True},
        {"baseline": SERIES, "candidate": SERIES[:9], "paired": True},
        {"baseline": SERIES, "candidate": SERIES, "paired": True, "margin": -1.0},
        (units(SERIES), units(SERIES, statistic="p10")),
        {"baseline": units(SERIES), "candidate": SERIES, "direction": "up"},
        {"baseline": units(SERIES), "candidate": SERIES, "metric": "rate"},
        (units(SERIES), ["x"]),
        (SERIES, [1.0]),
        (SERIES, np.linspace(1.0, 3.0, 2000)),
    ),
    "sides of two comparisons": sides_of_two,
    "a plan from a run without a number": lambda: tried(
        br.plan, Session(name="empty", seed=1).result(), {"known": units(SERIES), "metric": "speed"}
    ),
    "a file of means alone": means_alone,
    "a file of impossible readings": lambda: hyperfine(
        {"times": [0.1, -0.1]}, {"command": "b", "times": [0.1, -0.1]}
    ),
    "a file of times of zero": lambda: br.compare_runs(*hyperfine({"times": [0.0] * 20}) * 2),
    "a file of no known tool": lambda: file("columns.csv", "time\n1\n2\n"),
}
