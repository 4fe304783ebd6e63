"""How functions, statements, commands and interpreters fail, and refusals of them."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from simulated.rounds import run
from tests.texts import rendering
from tests.texts.rendering import tried

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.model import References
from benchrigor.testing import FakeClock
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    CommandWorkload,
    InterpreterWorkload,
    Pick,
    RoundRecorder,
    StatementWorkload,
    StepwiseWorkload,
)

NAN, INF = float("nan"), float("inf")


def failing_at(call: int, error: BaseException) -> Callable[..., None]:
    """Return a function that raises in one call, counted from 0."""
    calls = iter(range(10**9))

    def func(*_: object) -> None:
        if next(calls) == call:
            raise error

    return func


def steps(work: int) -> Iterator[None]:
    """Step a number of times, and fail."""
    for _ in range(work):
        yield
    raise ValueError("boom")


def stubborn() -> Iterator[None]:
    """Step, and do not close."""
    while True:
        try:
            yield
        except GeneratorExit:
            raise ValueError("no") from None


def taking(clock: FakeClock, *durations_ns: int) -> Callable[[], None]:
    """Return a function that takes these durations, the last of them from then on."""
    left = [*durations_ns]
    return lambda: clock.advance(left.pop(0) if len(left) > 1 else left[0])


def timed(func: Any, kind: Any = CallableWorkload, readings: int = 20, **given: Any) -> br.Round:
    """Measure a round of something."""
    plan = {name: given.pop(name) for name in ("work",) if name in given}
    return run(kind(func, **{"clock": FakeClock(), **given}), readings, **plan)


def backwards(*durations_ns: int, kind: Any = CallableWorkload, **given: Any) -> br.Round:
    """Measure by a clock that goes backwards."""
    clock = FakeClock()
    taken = taking(clock, *durations_ns)
    stepwise = kind is StepwiseWorkload
    func = (lambda: iter(taken, 1)) if stepwise else (lambda *_: taken())
    return timed(func, kind, clock=clock, **given)


def coarse(duration_ns: int, **of_clock: int) -> object:
    """Return the texts about a clock."""
    clock = FakeClock(**of_clock)
    return timed(taking(clock, duration_ns), clock=clock, inner=1).notices


def failures(*calls: Callable[[], object]) -> Iterator[str]:
    """Yield how each of several calls fails, without lines of code and the marks below them."""
    for text in tried(lambda call: call(), *((call,) for call in calls)):
        yield from (line for line in str(text).splitlines() if not line.startswith("  |     "))


def ran(*argv: str, picks: Iterable[str] = (), **given: Any) -> br.Round:
    """Run a command."""
    plan = {name: given.pop(name) for name in ("work", "seconds") if name in given}
    chosen = [Pick.parse(pick, unit_readings=pick[0] == "u") for pick in picks]
    workload = CommandWorkload(argv, picks=chosen, **{"clock": FakeClock(cost_ns=5), **given})
    return run(workload, **plan)


def shell(script: str, **given: Any) -> Callable[[], br.Round]:
    """Return a script that is still to be run."""
    return partial(ran, "sh", "-c", script, **given)


def printed(output: str, pick: str) -> Callable[[], br.Round]:
    """Return a command that prints something, of which something is picked."""
    return partial(ran, "printf", "%s", output, picks=[pick])


def fresh(source: str, target: str = "job:work", **given: Any) -> Callable[[], br.Round]:
    """Return a function of a module that is still to be measured, in a fresh interpreter."""

    def measure() -> br.Round:
        Path("job.py").write_text(source, encoding="utf-8")
        return run(InterpreterWorkload(target, cwd=Path().absolute(), **given), 5)

    return measure


def nowhere(module: str) -> Callable[[], None]:
    """Return a function that is not to be found in its module."""

    def main() -> None: ...

    main.__module__, main.__qualname__ = module, "main"
    return main


def twice(what: str, value: object) -> None:
    """Record two of what there is one of."""
    recorder = RoundRecorder()
    for _ in range(2):
        recorder.reading("rate", 2.0) if what == "reading" else recorder.references(
            References(stops=[1], seconds={"interpreter": value})
        )


def revisions() -> Iterator[object]:
    """Yield the texts about revisions that are not there."""
    yield rendering.run("ab", "--rev", "old", "--rev", "new", "m:f")
    subprocess.run(["git", "init", "-q"], check=True)
    yield rendering.run("ab", "--rev", "old", "--rev", "new", "m:f")


def in_thread(call: Callable[[], object]) -> Iterator[str]:
    """Yield how a call fails in another thread."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(failures(call)), name="helper")
    thread.start()
    thread.join()
    yield from found


BOOM, GONE = ValueError("boom"), OSError("gone")
TICKS = {"clock": FakeClock(cost_ns=1_000)}
LIMIT = {"clock": WallClock(), "timeout_s": 0.05}
NAP = partial(time.sleep, 60)
CAUSES: dict[str, Callable[[], object]] = {
    "recordings that are refused": lambda: [
        *tried(
            partial(RoundRecorder().unit_readings, "time"),
            *([1.0, NAN], [INF], [], [[1.0], [2.0]], "12"),
        ),
        *tried(partial(RoundRecorder().reading, "rate"), NAN, INF, "3", None),
        *tried(twice, ("reading", 2.0), ("references", [1e-6])),
    ],
    "revisions of no repository, and of one that lacks them": revisions,
    "no functions": lambda: tried(
        lambda func=list, **given: CallableWorkload(func, clock=FakeClock(), **given),
        *({"func": wrong} for wrong in (3, None)),
        {"setup": "x"},
        {"teardown": 0},
        *({"inner": wrong} for wrong in (0, 1.5, True)),
        {"inner": 2, "teardown": list},
        {"gc": "never"},
        *({"timeout_s": wrong} for wrong in (0, -1.0, NAN, INF, "5", True)),
        {"func": 3, "inner": 0, "gc": "x"},
    ),
    "no functions of amounts and no generators": lambda: failures(
        partial(AmountWorkload, 3, clock=FakeClock(), setup=4, gc="maybe"),
        partial(StepwiseWorkload, iter([1]), clock=FakeClock()),
        partial(StepwiseWorkload, steps, clock=FakeClock(), timeout_s=0),
        partial(timed, lambda: 3, StepwiseWorkload),
    ),
    "rounds without an amount": lambda: failures(
        *(partial(timed, steps, kind) for kind in (StepwiseWorkload, AmountWorkload))
    ),
    "a clock that stands still": lambda: failures(
        partial(timed, int, clock=FakeClock(cost_ns=3)),
        partial(timed, lambda _: None, AmountWorkload, work=9),
    ),
    "a clock that goes backwards": lambda: failures(
        *(partial(backwards, *[10**5] * 9, -(10**6), 10**5, inner=n) for n in (1, 2, None)),
        partial(backwards, 10, -40),
        partial(backwards, 100, 100, -5, kind=StepwiseWorkload),
        partial(backwards, -5, kind=AmountWorkload, work=1),
    ),
    "clocks that are coarse, and that cost time": lambda: [
        coarse(5_000, resolution_ns=100),
        coarse(24_700, cost_ns=300),
    ],
    "functions that raise": lambda: failures(
        *(
            partial(timed, failing_at(1 + 3 * inner, error), inner=inner)
            for inner in (1, 2)
            for error in (BOOM, StopIteration("boom"), SystemExit("boom"))
        ),
        partial(timed, failing_at(0, GONE)),
        partial(timed, failing_at(66_000, GONE), inner=1, readings=70_000),
        partial(timed, int, setup=failing_at(3, KeyError("key")), **TICKS),
        partial(timed, int, teardown=failing_at(3, KeyError("key")), **TICKS),
        partial(timed, failing_at(0, BOOM), AmountWorkload, work=64),
        partial(timed, int, AmountWorkload, work=64, setup=failing_at(0, BOOM)),
        partial(timed, int, AmountWorkload, work=64, teardown=failing_at(0, BOOM), **TICKS),
    ),
    "generators that raise": lambda: failures(
        partial(timed, partial(steps, 2), StepwiseWorkload, **TICKS),
        partial(timed, steps, StepwiseWorkload, work=6, **TICKS),
        partial(timed, stubborn, StepwiseWorkload, readings=2, fresh=True),
    ),
    "calls that last too long": lambda: failures(
        partial(timed, NAP, **LIMIT),
        partial(timed, NAP, inner=3, **LIMIT),
        partial(timed, lambda: iter(NAP, 1), StepwiseWorkload, **LIMIT),
        partial(timed, lambda _: NAP(), AmountWorkload, work=1, **LIMIT),
    ),
    "a limit in another thread": lambda: in_thread(lambda: br.measure(int, timeout_s=5.0)),
    "statements that are not valid": lambda: tried(
        lambda **given: StatementWorkload(clock=FakeClock(), **{"statement": "1", **given}),
        *(
            {place: wrong}
            for place in ("statement", "setup")
            for wrong in ("x = 1\nreturn x", "yield 1", "break", "await f()", "x = (1")
        ),
        {"setup": "from math import *"},
    ),
    "statements that raise": lambda: failures(
        *(
            partial(timed, statement, StatementWorkload, inner=3)
            for statement in (
                *("1 / 0", "next(iter(()))", "raise RuntimeError('mine')", "raise SystemExit(3)"),
                "unknown_name",
            )
        ),
        partial(StatementWorkload, "1", setup="1 / 0", clock=FakeClock()),
    ),
    "no commands": lambda: tried(
        lambda argv=("a",), **given: CommandWorkload(argv, clock=FakeClock(), **given),
        *({"argv": wrong} for wrong in ("gzip -k", [], ["a", 3], ["a\0b"])),
        *({"timeout_s": wrong} for wrong in (0, NAN, INF)),
        {"warm_up": -1},
        *({"accept_exit": wrong} for wrong in ((), 0, ["0"])),
        *({"grace_s": wrong} for wrong in (-1.0, NAN, INF, "2")),
        {"picks": [Pick.parse("x=column:0"), Pick.parse("x=column:1")]},
    ),
    "commands with and without an amount": lambda: failures(
        shell(":", work=3), shell("echo {work}")
    ),
    "commands by a clock that does not move": lambda: failures(
        *(shell(":", clock=FakeClock(script=[100, 100 + step])) for step in (0, -7))
    ),
    "commands that fail": lambda: failures(
        shell("echo last words >&2; exit 3"),
        shell(
            "printf 'no option --pass''word=S3cr3tV\\ndon'\\''t use tok''en=S3cr3tV' >&2; exit 1"
        ),
        shell("exit {work}", accept_exit=[0, 3], work=4),
        shell("exit {work}", accept_exit=[3], work=0),
        shell("kill -KILL $$"),
        shell("sleep 60", timeout_s=0.05),
        shell("sleep 60", timeout_s=0.05, clock=WallClock(), seconds=20.0),
    ),
    "commands that cannot be started": lambda: failures(
        partial(ran, "no-such-program-here"),
        partial(ran, "/"),
        partial(ran, str(Path("data").write_text("x") and Path("data").resolve())),
        shell(":", cwd="gone"),
    ),
    "a hook that hangs": lambda: (
        ran("true", hooks={"prepare": ["sleep", "60"]}, clock=WallClock(), seconds=0.1).notices
    ),
    "a command that ran out of time": lambda: (
        shell(
            "echo u 1; echo u 2; sleep 60", picks=["u=column:1"], clock=WallClock(), seconds=1.0
        )().notices
    ),
    "a command that leaves something": lambda: (
        shell("sleep 60.1 & sleep 0.01", clock=WallClock())().notices
    ),
    "several numbers, and the one that counts": lambda: printed("1\n2\n", "x=column:0")().notices,
    "picks in none of the forms": lambda: tried(
        Pick.parse,
        *("", "x", "x=", "x=12", "=column:1", "x:=column:1", "x=columns:1", "x=regex:"),
        *("x:column:1", "x=regex:(", "x=regex:(a)(b)", "x=column:one", "x=column:-1"),
        *("x=column:\u00b2", f"x=column:{5_000 * '9'}"),
    ),
    "not a reading": lambda: failures(
        printed("took 1,5 s\n", "x=regex:took ([0-9.]+)"),
        printed("\nother\nv nan\n", "x=regex:v (.*)"),
        printed("u 1\nu -2\n", "x:ms=regex:u (.*)"),
        printed("ok 11/10\n", "ok:share=regex:ok ([0-9./]+)"),
        printed('a,5\n"x,8\ny",6\n', "x=column:1"),
    ),
    "no reading": lambda: failures(
        printed("", "x=column:0"),
        printed("no\nne\n", "x=column:0"),
        partial(ran, "echo", "1", picks=["a=column:0", "b=column:1"]),
        shell("head -c 3000000 /dev/zero; echo", picks=["x=json:x"]),
    ),
    "a pattern that tries all ways": printed(f"b\n{'a' * 40}b\n", "x=regex:(a+)+$"),
    "functions that no interpreter can import": lambda: failures(
        *(
            partial(InterpreterWorkload, wrong)
            for wrong in (
                lambda: 1,
                nowhere("test_of_nothing"),
                nowhere("__main__"),
                object(),
                "os",
            )
        )
    ),
    "wrong words for an interpreter": lambda: tried(
        lambda **given: InterpreterWorkload("os:getcwd", **given),
        *({"python": "no-such-python"}, {"cpus": [10_000]}, {"cpus": []}, {"gc": "maybe"}),
        *({"inner": 0}, {"timeout_s": 0.0}, {"args": (b"x" * 70_000,)}),
    ),
    "functions that fail in an interpreter": lambda: failures(
        fresh("def work(): raise ValueError('no such luck')"),
        fresh("async def work(): raise ValueError('no such luck')"),
        fresh("def work(): raise SystemExit(3)"),
        fresh("class Own(BaseException): pass\ndef work(): raise Own('mine')"),
        fresh("import asyncio\ndef work(): raise asyncio.CancelledError"),
        fresh("import os\ndef work(): os._exit(3)"),
        fresh("import os\ndef work(): os.kill(os.getpid(), 9)"),
        fresh("def work(): yield from ()"),
        fresh("class Mute(Exception):\n  def __str__(self): 1 / 0\ndef work(): raise Mute"),
        fresh("1 / 0"),
        fresh("", "nowhere:at_all"),
    ),
    "functions that an interpreter cannot time": lambda: failures(
        fresh("def work(n): pass"),
        fresh("async def work(): yield 1"),
        fresh("work = 10"),
        fresh(""),
        fresh("def work(): pass", inside=Path("elsewhere")),
    ),
}
