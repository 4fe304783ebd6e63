"""What measuring and sessions refuse, and the lines of a session under way."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import ruptures
from tests.texts.causes.stats_phases import Unable
from tests.texts.rendering import tried

import benchrigor as br
from benchrigor.model import ChangePoints, Code, Metric, Notice, Options, Round, RoundPlan
from benchrigor.session import Session, examine, plan
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, MemoryStore, SyntheticWorkload
from benchrigor.units import Quantity

READINGS = np.random.default_rng(1).normal(1.0, 0.05, 100)


def nothing() -> None:
    """Do nothing."""


def of_amount(amount: float) -> float:
    """Do nothing with an amount."""
    return amount


def generator() -> Iterator[None]:
    """Yield once."""
    yield


async def awaited(amount: float = 0.0) -> None:
    """Do nothing, when it is awaited."""


async def awaited_amount(amount: float) -> None:
    """Do nothing, when it is awaited."""


async def stepped(amount: float = 0.0) -> AsyncIterator[None]:
    """Do nothing, when it is stepped through."""
    yield


class Pending:
    """Does nothing, when it is awaited."""

    def __await__(self) -> Iterator[None]:
        yield


async def broken() -> None:
    """Fail."""
    raise KeyError("x")


def measured(func: object = nothing, **options: Any) -> br.RunRecord:
    """Measure a function, in fake time."""
    return br.measure(func, **{"clock": FakeClock(cost_ns=10), "seed": 1, **options})  # type: ignore[arg-type]


def telling(*given: dict[str, Any], **begun: Any) -> Iterator[object]:
    """Return the answers of a session to rounds of its first plan."""

    def tell(**told: Any) -> None:
        session = Session(**{"seed": 1, **begun})
        session.tell(Round(plan=session.ask(), **{"elapsed_ns": 1, **told}))

    return tried(tell, *given)


def telling_work(**options: Any) -> br.RunRecord:
    """Pass a session rounds of various work until it ends."""
    session = Session(Options(work=(10, 1000), **options), seed=1)
    while (asked := session.ask()) is not None:
        session.tell(Round(plan=asked, elapsed_ns=int(1e9 * (0.3 + (asked.work or 0) / 50))))
    return session.result()


def detect(detector: Callable[[Any], Any]) -> None:
    """Have a detector fail on 600 readings."""
    session, values = Session(seed=1, detector=detector), np.random.default_rng(1).random(600)
    session.tell(Round(plan=session.ask(), elapsed_ns=10**9, unit_readings={"time": values}))


def raising(_: object) -> ChangePoints:
    """Find nothing."""
    raise RuntimeError("out of ideas")


def finding(*indices: int, n: int = 600) -> Callable[[Any], ChangePoints]:
    """Return a detector that always finds the same."""

    def found(_: object) -> ChangePoints:
        return ChangePoints(indices=indices, n=n, level=None, inflation=1.0)

    return found


class Failing:
    """Gives ten readings a round, and fails in the fourth."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def run(self, plan: RoundPlan, recorder: Any) -> None:
        """Give readings."""
        if plan.index == 3 and self._error is not None:
            raise self._error
        recorder.unit_readings("time", [1.0 + 0.01 * (i % 3) for i in range(10)])


class Fresh:
    """Starts a process for each round."""

    fresh_process = True

    def run(self, plan: RoundPlan, recorder: Any) -> None:
        """Give nothing."""


def failing_hook(hook: str) -> list[Notice]:
    """Run a session with a hook that fails at its third call."""
    calls: list[object] = []

    def failing(argument: object) -> None:
        calls.append(argument)
        if len(calls) == 3:
            raise RuntimeError("disk of the hook is full")

    options: dict[str, Any] = {hook: failing}
    record = Session(Options(target=1e-6), seed=1, clock=FakeClock(), **options).run(Failing())
    return [notice for notice in record.notices if notice.code is Code.HOOK_FAILED]


def next_work(*returned: Any) -> Iterator[str]:
    """Yield the texts about hooks that return no amount."""
    for wrong in returned:
        session = Session(Options(work=(10, 5000)), seed=1, next_work=lambda _, wrong=wrong: wrong)
        session.ask()
        yield next(x.sentence for x in session.result().notices if x.code is Code.HOOK_FAILED)


def finished() -> None:
    """Take up a run that is finished."""
    clock, store = FakeClock(), MemoryStore()
    options = Options(target=0.5, max_rounds=9)
    workload = SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock)
    record = Session(options, seed=1, clock=clock, store=store).run(workload)
    Session.resume(store, str(record.run_id))


def log_of(level: int, act: Callable[[], object]) -> list[str]:
    """Return the log."""
    lines: list[str] = []
    handler, log = logging.Handler(), logging.getLogger("benchrigor.session")
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    before = log.level
    log.addHandler(handler)
    log.setLevel(level)
    try:
        act()
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
    return lines


def decided() -> None:
    """Run a session of a few decisions."""
    clock = FakeClock()
    options = Options(target=0.01, budget_s=60.0)
    workload = SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock)
    Session(options, name="nap", seed=1, clock=clock).run(workload)


def noted() -> None:
    """Pass a session a round and a Notice."""
    session = Session(Options(work=(1, None)), seed=1, clock=FakeClock())
    asked = session.ask()
    session.note(Notice.of(Code.RESUMED, rounds_before=3))
    session.tell(Round(plan=asked, elapsed_ns=20_000_000))


def inside_a_loop(call: Callable[[Any], object]) -> None:
    """Measure where a loop runs already."""

    async def within() -> None:
        call(awaited)

    asyncio.run(within())


def in_pieces(pieces: int, over_s: float) -> object:
    """Spread a session."""
    session = Session(Options(pieces=pieces, budget_s=12.0), clock=FakeClock())
    return session.run(Failing(), over_s=over_s)


def unloadable(store: object) -> object:
    """Take up a run of a store that is not valid."""
    return Session.resume(store, "3f2a")  # type: ignore[arg-type]


CAUSES: dict[str, Callable[[], object]] = {
    "no function": lambda: measured("len"),
    "options out of range": lambda: tried(
        measured,
        {"target": 0.0},
        {"target": "2"},
        {"confidence": 1.0},
        {"budget_s": -1.0},
        {"statistic": "mode"},
        {"batch": 0},
        {"batch": 5, "teardown": list},
        {"batch": 5, "setup": nothing},
        {"setup": "x", "gc": []},
        {"gc": "sometimes"},
        {"detector": "best"},
    ),
    "all bad options at once": lambda: Options(target=-1.0, confidence=2.0, analysis="line"),
    "merging for a median": lambda: Options(method="subsessions", statistic="median"),
    "a generator function": lambda: measured(generator),
    "what does not go with work": lambda: tried(
        lambda **wrong: measured(**{"func": of_amount, "work": (0, 100), **wrong}),
        {"statistic": "median"},
        {"batch": 3},
        {"work": 1000},
        {"work": (5, 1)},
        {"work": None},
        {"func": list, "batch": 0, "statistic": "p10"},
        {"func": nothing},
        {"detector": "edm"},
        {"items": 3},
        {"memory": True},
        {"instructions": True},
    ),
    "what nothing awaits": lambda: tried(
        measured,
        lambda: awaited(2.0),
        Pending,
        lambda: stepped(1.0),
        {"func": awaited_amount, "work": (1, 10)},
    ),
    "what measure_async does not take": lambda: tried(
        lambda func, **options: asyncio.run(br.measure_async(func, **options)),
        nothing,
        {"func": awaited, "work": (1, 2)},
        {"func": awaited, "target": -1.0},
    ),
    "a coroutine that raises": lambda: measured(broken),
    "a setup that returns something else": lambda: tried(
        lambda given: measured(setup=lambda: given), 3, ((1, 2),), "ab"
    ),
    "no amount of items": lambda: tried(
        lambda given: measured(items=given), 0, -1.0, math.inf, "10 MB", ((1, 2),), ((1,),)
    ),
    "a loop that runs already": lambda: tried(
        inside_a_loop,
        br.measure,
        lambda func: br.measure_pair(func, func),
        lambda f: br.measure_many({"f": f}),
    ),
    "a function that lacks arguments": lambda: tried(measured, max, lambda one, _: one, sum),
    "workloads that are timed as functions are": lambda: br.measure_pair(
        SyntheticWorkload(restarted=True), SyntheticWorkload(restarted=True), batch=5, gc="off"
    ),
    "all that is wrong with a pair": lambda: br.measure_pair(
        "old",  # type: ignore[arg-type]
        generator,
        margin=-1.0,
        target=0.0,
        statistic="mode",
        seed=-1,
        batch=0,
        gc="sometimes",
        budget_s=-1.0,
        confidence=1.0,
        preset="lax",
    ),
    "functions in turn that are not valid": lambda: tried(
        br.measure_many,
        ({},),
        ([dict],),
        ({"a": 3},),
        {"functions": {"a": dict}, "name": "b"},
        {"functions": {"a": dict}, "budgets": 3},
        {"functions": {"a": dict, "b": dict}, "target": -1},
        {"functions": {}, "seed": -1, "budgets": 3, "confidence": 0},
    ),
    "all problems of a comparison": lambda: tried(
        br.compare_runs, {"baseline": 1, "candidate": [], "confidence": 0, "margin": -1}
    ),
    "more rounds at least than at most": lambda: Options(min_rounds=5, max_rounds=2, confidence=0),
    "what cannot be run": lambda: Session().run(3),  # type: ignore[arg-type]
    "a seed that is not a whole number": lambda: tried(
        lambda seed: Session(seed=seed), -1, 1.5, True, "x"
    ),
    "a store that is not valid": lambda: tried(unloadable, 3, Journal, [1.0]),
    "a store that is not valid to measure": lambda: measured(store=object),
    "a run that is finished": finished,
    "arguments that a session has not": lambda: tried(
        lambda options, func: Session(options, seed=1).run(func),
        (Options(), of_amount),
        (Options(), lambda work: (yield work)),
        (Options(work=(0, 100)), nothing),
        (Options(analysis="wps"), generator),
    ),
    "a workload that raises": lambda: Session(seed=1).run(Failing(KeyError("x"))),
    "a clock that goes backwards": lambda: Session(
        seed=1, clock=FakeClock(script=[100, 200, 150])
    ).run(Failing()),
    "hooks that fail": lambda: map(failing_hook, ("before_round", "after_round", "progress")),
    "a hook that is not valid": lambda: Session(Options(work=(10, 5000)), next_work=5),  # type: ignore[arg-type]
    "a hook that returns no amount": lambda: next_work(0, -5, math.nan, "many", (1, 2)),
    "decisions that are logged": lambda: log_of(logging.INFO, decided),
    "plans and Notices that are logged": lambda: log_of(logging.DEBUG, noted),
    "rounds of no work": lambda: telling(
        {"readings": {"time": -1.0}},
        {"readings": {"speed": 1.0}},
        options=Options(analysis="wps", work=(10, 1000)),
    ),
    "a speed that is lower": lambda: Session(
        Options(analysis="wps"),
        (Metric(name="speed", unit="B/s", direction="lower"),),  # type: ignore[arg-type]
    ),
    "a speed of another statistic": lambda: telling_work(statistic="median", max_rounds=15),
    "metrics that are not valid": lambda: tried(
        lambda *names, **more: Session(metrics=[Metric(name=name, **more) for name in names]),
        ("time", "time"),
        {"must_satisfy": False},
    ),
    "readings of no time": lambda: telling(
        {"unit_readings": {"time": [1.0, -2.0]}},
        {"readings": {"speed": 1.0}},
        {"unit_readings": {"time": [1.0]}, "readings": {"time": 1.0}},
        metrics=(Metric(name="time", unit="s"),),
    ),
    "readings of no rate": lambda: telling(
        {"unit_readings": {"rate": [3.0, 0.0, 2.0]}},
        {"readings": {"rate": -1.0}},
        metrics=(Metric(name="rate", averaging="harmonic", direction="higher"),),  # type: ignore[arg-type]
    ),
    "readings of no share": lambda: telling(
        {"readings": {"ok": 97.0}}, metrics=(Metric(name="ok", kind=Quantity.SHARE),)
    ),
    "a reading of a round that was cut": lambda: telling({"readings": {"x": 1.0}, "cut": True}),
    "a plan that was never asked for": lambda: Session().tell(
        Round(plan=RoundPlan(index=0), elapsed_ns=1)
    ),
    "a detector next to a cut": lambda: Session(Options(trim=0.1), detector=raising),
    "detectors that are not valid": lambda: tried(
        lambda given: Session(detector=given), "pelt", ruptures.Pelt, [], ruptures.Dynp()
    ),
    "detectors that fail": lambda: tried(
        detect,
        raising,
        lambda _: None,
        lambda _: [5],
        finding(n=7),
        finding(50, 20),
        Unable(),
    ),
    "what makes no sense in pieces": lambda: tried(
        lambda **wrong: Options(**{"pieces": 4, **wrong}),
        {"rounds": "restarted"},
        {"work": (1, 10)},
        {"method": "subsessions"},
        {"budget_s": 0.19},
        {"budget_s": math.inf},
        {"pieces": 1.5},
        {"pieces": 0},
    ),
    "what cannot be spread": lambda: tried(in_pieces, (4, 11.0), (1, 60.0), (4, math.inf)),
    "a reading of a whole round in pieces": lambda: telling(
        {"readings": {"time": 1.0}}, options=Options(pieces=4)
    ),
    "a command in pieces": lambda: Session(Options(pieces=4)).run(Fresh()),
    "seconds of an examination": lambda: tried(
        lambda seconds: examine(seconds=seconds), 0, -1, math.nan, "1"
    ),
    "a plan without a run": lambda: tried(plan, None, 3.0, "3f2a", [1.0] * 1000),
}
