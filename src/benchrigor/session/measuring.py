"""measure: time a function until its mean, or quantile, or speed is known.

measure_many: time several in turn, piece by piece, so that all of them see the same minutes.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.machine.kernel_files import Unavailable
from benchrigor.model import Metric, Options, Progress, RunRecord
from benchrigor.model.checks import attempt, is_number, refuse, wrong_values
from benchrigor.model.one_line import Reported
from benchrigor.model.options import SHORTEST_PIECE_S, USUAL_TARGET
from benchrigor.protocols import Clock, Store, Workload
from benchrigor.session.schedules import Rotation, check_seed, seed_of
from benchrigor.session.session import Session, meter_for
from benchrigor.stats.readings.given_metrics import SPEED
from benchrigor.units import Direction, many, show_duration
from benchrigor.workloads import AmountWorkload, CallableWorkload
from benchrigor.workloads.named_functions import awaits, takes_amount, wrong_function
from benchrigor.workloads.timing import misfits

if TYPE_CHECKING:  # asyncio takes longer to load than all else here
    from asyncio import AbstractEventLoop

TIME = Metric(name="time", unit="s")
INSTRUCTIONS = Metric(name="instructions", direction=Direction.LOWER, must_satisfy=False)
# A call of a coroutine that goes on for that long after the budget hangs: seconds, or budgets.
_LEAST_GRACE_S, _TIMES_BUDGET = 5.0, 3.0
_TIMING = ("setup", "teardown", "timeout_s", "gc", "loop_factory", "sync")  # of the workload


def measure(
    func: Callable[..., object],
    *,
    work: tuple[float, float | None] | None = None,
    name: str | None = None,
    target: float | str | None = USUAL_TARGET,
    confidence: float | str = 0.95,
    statistic: str = "mean",
    budget_s: float = 10.0,
    setup: Callable[[], object] | None = None,
    teardown: Callable[[], object] | None = None,
    store: str | Path | Store | None = None,
    progress: Callable[[Progress], object] | None = None,
    seed: int | None = None,
    batch: int | None = None,
    gc: str = "on",
    metric: Metric = TIME,
    timeout_s: float | None = None,
    clock: Clock | None = None,
    pieces: int = 1,
    over_s: float | None = None,
    detector: str = "ranks",
    disturbed: str = "leave-out",
    reference: bool = True,
    loop_factory: Callable[[], AbstractEventLoop] | None = None,
    sync: Callable[[], object] | None = None,
    items: float | tuple[float, str] | None = None,
    memory: bool = False,
    instructions: bool = False,
) -> RunRecord:
    """Time ``func()`` until the interval of its time per call, or of its speed, is narrow.

    Parameters
    ----------
    func
        Called without arguments; with ``work``, with a work amount. A coroutine function is
        awaited; in a running event loop use `measure_async`.
    work
        Range ``(low, high)`` of work amounts, whole numbers if both ends are; ``high`` may be
        None. The estimate is then the work per second, without the overhead of calls.
    name
        Name in the record; None for the function's own.
    target
        Half-width to reach, relative to the value as measured (not at full speed).
    confidence
        Nominal coverage of the interval, in (0, 1).
    statistic
        "mean", "median", a percentile such as "p10", "trimmed 10%", or "min". Quantiles refer to
        readings: see ``batch``. A speed does not have quantiles.
    budget_s
        Maximum time of the measurement in seconds.
    setup, teardown
        Called without arguments around readings, never timed; teardown also after a failure.
        A setup may return ``(args, kwargs)`` for the call.
    store
        A path or a `protocols.Store` that keeps the rounds; None for no store.
    progress
        Called with the session's `Progress` after every round.
    seed
        Kept in the record; None draws one.
    batch
        Calls per reading; 1 times single calls. None for the number that the clock
        needs; for a quantile a Notice then states it. Not with ``work``.
    gc
        "on" leaves the garbage collector as it is, "off" disables it while the clock runs.
    metric
        Properties of the time in seconds, such as its own target. Not with ``work``.
    timeout_s
        Maximum duration of a call in seconds (with ``batch``, of the average call); a longer call
        is ended, and the workload has failed. Needs the main thread and timer signals. Code
        outside Python is ended when it returns; a function that catches BaseException continues.
    clock
        Times the calls; None for the wall clock.
    pieces
        Number of equally long parts of the measurement; the interval comes from their levels.
    over_s
        Time in seconds, not less than the budget, over which pauses spread the pieces. None for
        no pauses.

    detector, disturbed, reference
        What finds the stable phase, the treatment of readings with a measured delay, and whether to
        measure the pace of the machine in turn; see `Options`.
    loop_factory
        Makes an event loop per round for coroutine functions; None for asyncio's default.
    sync
        Called at the end of a reading, while the clock runs: waits for a device to finish.
    items
        Amount that a call processes, a number or a number with its unit such as ``(4096, "B")``;
        it gives the record a `RunRecord.throughput` per second. Not with ``work``.
    memory
        Whether to trace one more call for the fact ``peak_traced_memory`` in bytes; see
        `CallableWorkload`. Not with ``work``.
    instructions
        Whether to count the instructions of a call outside the kernel, by a further reading per
        round; a Notice explains if the processor cannot. They hardly depend on other
        programs. Not with ``work``.

    Returns
    -------
    RunRecord
        ``print(record)`` shows the result in one line. It leads with ``record.headline()``, at the
        full speed of this machine; ``record.estimate()`` is the time as it was measured.

    Raises
    ------
    InvalidInput
        When an argument is out of range.
    WorkloadFailed
        When ``func`` raises, or lasts longer than ``timeout_s``; the error's ``record`` holds the
        rounds finished before.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock = FakeClock(resolution_ns=1)
    >>> record = measure(lambda: clock.advance(2_000_000), name="nap", seed=1, clock=clock)
    >>> round(record.estimate().value, 6)
    0.002

    A job of 100 units a second, with a setup of half a second:

    >>> job = lambda n: clock.advance(n * 10**7 + 500_000_000)
    >>> record = measure(job, work=(0, 10_000), budget_s=3600, seed=1, clock=clock)
    >>> round(record.estimate().value, 3)
    100.0
    """
    session, workload = prepare(dict(locals()))
    return session.run(workload, over_s=over_s)


async def measure_async(
    func: Callable[[], Coroutine[Any, Any, object]], **options: Any
) -> RunRecord:
    """Time ``await func()`` in the running event loop until its time is known well enough.

    Other tasks of the loop go on in between; their time counts as waiting time of ``func``. The
    delay of the loop's thread is not measured.

    Parameters
    ----------
    func
        A coroutine function without arguments.
    **options
        Options of `measure` except ``work``, ``timeout_s``, ``loop_factory``, ``instructions``.
        Setup, teardown and progress are called in another thread.

    Returns
    -------
    RunRecord
        As of `measure`.

    Raises
    ------
    InvalidInput
        When ``func`` is not a coroutine function, or an option is out of range.
    WorkloadFailed
        When ``func`` raises, or hangs.
    asyncio.CancelledError
        When the task is cancelled, after the current round.

    Examples
    --------
    >>> import asyncio
    >>> async def tick():
    ...     await asyncio.sleep(0)
    >>> record = asyncio.run(measure_async(tick, budget_s=0.1))
    >>> record.readings().size > 0
    True
    """
    if not awaits(func):
        raise InvalidInput(f"func is {func!r}, expected a coroutine function: measure takes others")
    known = {p.name: p.default for p in signature(measure).parameters.values()}
    taken = known.keys() - {"func", "work", "timeout_s", "loop_factory", "instructions"}
    refuse(f"{name!r} is not an option of measure_async" for name in sorted(options.keys() - taken))
    session, workload = prepare({**known, **options, "func": func}, metered=False)
    return await run_in_loop(session, workload, over_s=options.get("over_s"))


async def run_in_loop(session: Session, workload: CallableWorkload, **options: Any) -> RunRecord:
    """Run a session in a thread, and await its workload in the running event loop."""
    import asyncio  # noqa: PLC0415  # only for who awaits

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise InvalidInput(
            "no event loop of asyncio runs here, expected one: await it inside of "
            "asyncio.run(...), or use measure, which makes its own"
        ) from None

    budget_s = session.options.budget_s if options.get("over_s") is None else math.inf
    longest_s = budget_s + max(_LEAST_GRACE_S, _TIMES_BUDGET * budget_s)
    until_s = time.monotonic() + longest_s

    def carry_out(coroutine: Coroutine[Any, Any, Any]) -> Any:
        under_way = asyncio.run_coroutine_threadsafe(coroutine, loop)
        left_s = max(until_s - time.monotonic(), _LEAST_GRACE_S)
        try:
            return under_way.result(left_s if left_s <= threading.TIMEOUT_MAX else None)
        except TimeoutError:
            if under_way.done():  # it is the function's own
                raise
            under_way.cancel()
            after = show_duration(longest_s)
            raise TimeoutError(
                f"a call still had not ended {after} after the measurement began, with a budget of "
                f"{show_duration(budget_s)}"
            ) from None

    workload.carried_out_by(carry_out)
    running = loop.run_in_executor(None, partial(session.run, workload, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        session.request_stop()
        await running
        raise


def prepare(
    given: Mapping[str, Any], *, metered: bool = True
) -> tuple[Session, CallableWorkload | AmountWorkload]:
    """Return a session for a function, and its workload, from all arguments of `measure`."""
    func, work, batch, metric = (given[name] for name in ("func", "work", "batch", "metric"))
    problems = wrong_function("func", func, "something that can be called")
    limits = {field.name: given[field.name] for field in fields(Options) if field.name in given}
    options = attempt(problems, lambda: Options(**limits))
    timing: dict[str, Any] = {name: given[name] for name in _TIMING} | {"inner": batch}
    problems += misfits(**timing, inner_name="batch")
    in_seconds = isinstance(metric, Metric) and metric.is_duration
    items = given["items"] if isinstance(given["items"], tuple) else (given["items"], "items")
    problems += wrong_values([("metric", metric, in_seconds, "a Metric in seconds")])
    problems += _wrong_items(given["items"], items)
    problems += _wrong_for_work(options, given) if work is not None and options else []
    attempt(problems, check_seed, given["seed"])
    refuse(problems)
    clock, adapted = given["clock"] or WallClock(), CallableWorkload
    if takes_amount(func) and (work is not None or given["setup"] is None):
        adapted, timing = AmountWorkload, {**timing, "inner": None}
    else:
        timing["memory"] = given["memory"]
        timing["instructions"] = _counter() if given["instructions"] else None
    meter = meter_for(clock) if metered else None
    workload = adapted(func, clock=clock, meter=meter, **timing)
    subject = {"kind": "function", "name": workload.name, "gc": given["gc"], "batch": batch}
    counted = (INSTRUCTIONS,) if callable(timing.get("instructions")) else ()
    session = Session(
        options,
        (metric, *counted) if work is None else (SPEED,),
        name=given["name"] or workload.name,
        subject=subject if items[0] is None else subject | {"items": [*items]},
        seed=given["seed"],
        store=given["store"],
        clock=clock,
        progress=given["progress"],
    )
    return session, workload


def _counter() -> Callable[[], int] | str:
    """Return a counter of this thread's instructions, or the reason why it is missing."""
    from benchrigor.machine.kernel_files import open_counter, read_counter  # noqa: PLC0415  # only for who asks

    try:
        return partial(read_counter, open_counter())
    except Unavailable as error:
        return str(error)


def _wrong_items(given: object, items: tuple[Any, ...]) -> list[str]:
    """Return the problems with the amount that a call processes."""
    count = items[0]
    is_one = given is None or (is_number(count) and 0.0 < count < math.inf)
    is_named = len(items) == 2 and isinstance(items[1], str)
    expected = "a number above 0, or one with its unit, such as (4096, 'B')"
    return wrong_values([("items", given, is_one and is_named, expected)])


def _wrong_for_work(options: Options, given: Mapping[str, Any]) -> list[str]:
    """Return which arguments do not go together with a range of work amounts."""
    statistic, is_range = options.statistic, options.work_range is not None
    batch, items, detector = given["batch"], given["items"], options.detector
    return wrong_values(
        [
            ("work", options.work, is_range, "a range (low, high), or None"),
            ("statistic", statistic, statistic == "mean", "'mean': a speed has no other"),
            ("detector", detector, detector == "ranks", "'ranks': a speed has no phases to find"),
            ("batch", batch, batch is None, "None: a round of given work is one call"),
            ("items", items, items is None, "None: a speed is per unit of work already"),
            *(
                (name, given[name], not given[name], "False: a round of given work is one call")
                for name in ("memory", "instructions")
            ),
        ]
    )


class RunRecords(Reported, dict[str, RunRecord]):
    """Records by name; ``print(records)`` ranks them, the best first.

    Runs that do not differ beyond chance share a place, as in `benchrigor compare`. Runs without
    an estimate have no place, and stand in the order given.
    """

    _facts = "benchrigor.report.tables:facts_of_ranking"
    _sheet = "benchrigor.report.sheets:sheet_of_ranking"

    def _line(self) -> str:
        lines = map(str, self.values())
        shown = (line.rpartition("  (")[0] if line.endswith(")") else line for line in lines)
        return f"{many(len(self), 'run')}: {', '.join(shown)}" if self else "no runs"


Runs = Mapping[str, tuple[Session, Workload]]


def rotate(
    runs: Runs, *, seed: int = 0, over_s: float | None = None, by_round: bool = False
) -> RunRecords:
    """Run sessions in turn, piece by piece, until all have ended; return their records by name.

    With ``by_round`` a turn is a round.

    A session that fails is over, and the others go on. The first error is raised at the end, and an
    interrupt at once. Both carry ``records`` of all sessions that have finished a round.
    """
    under_way = {
        name: session.pieces(workload, over_s=over_s, by_round=by_round)
        for name, (session, workload) in runs.items()
    }
    errors: dict[str, BenchrigorError] = {}
    schedule = Rotation([*runs], seed)
    try:
        while turn := schedule.next({name: runs[name][0].headway for name in under_way}):
            (name,) = turn.order
            try:
                is_over = next(under_way[name], None) is None
            except BenchrigorError as failed:
                errors[name], is_over = failed, True
            if is_over:
                del under_way[name]
    except KeyboardInterrupt as interrupt:
        for session in under_way.values():
            with suppress(KeyboardInterrupt):
                session.throw(KeyboardInterrupt())
        interrupt.records = records_of(runs)  # type: ignore[attr-defined]
        raise
    if errors:
        (_, error), *others = errors.items()
        for name, other in others:
            error.add_note(f"also failed: {name}: {other}")
        error.records = records_of(runs)
        raise error
    return RunRecords({name: session.result() for name, (session, _) in runs.items()})


def records_of(runs: Runs) -> RunRecords:
    """Return the records of all sessions that have finished a round."""
    records = {name: session.result() for name, (session, _) in runs.items()}
    return RunRecords({name: record for name, record in records.items() if record.rounds})


_PIECES = 6  # by default, and fewer if they would be shorter than this
_FEWEST = 4
_GOOD_S = 0.2


def measure_many(functions: Mapping[str, Callable[..., object]], **options: Any) -> RunRecords:
    """Time functions in turn, in pieces that are spread over the whole time.

    The pace of a machine may change from minute to minute. The levels of a function's pieces show
    by how much, and give its interval by Student's t. All functions share the fast minutes: a
    turn has a piece of every function, in a random order.

    Parameters
    ----------
    functions
        Functions by the name of their record.
    **options
        Options of `measure` without ``name``; they apply to all functions. ``budget_s`` is the
        time for one function. ``pieces`` is 6 by default, down to 4 if pieces would be shorter
        than 0.2 s. ``over_s`` spreads the turns over that time in seconds. For ``progress``,
        `Progress.name` is the function under way.

    Returns
    -------
    dict of RunRecord
        By name, in the order given; ``print(records)`` shows them ranked.

    Raises
    ------
    InvalidInput
        When an argument is out of range, before any measurement.
    WorkloadFailed, ClockFailed, StoreFailed
        When a function fails. The other functions continue to their end, then the first error is
        raised; its ``records`` hold the results by name, including rounds before the failure.
    KeyboardInterrupt
        On Ctrl-C, with the attribute ``records``.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock = FakeClock()
    >>> nap = lambda us: lambda: clock.advance(us * 1000)
    >>> records = measure_many({"short": nap(200), "long": nap(300)}, budget_s=2, clock=clock)
    >>> {name: round(record.estimate().value, 6) for name, record in records.items()}
    {'short': 0.0002, 'long': 0.0003}
    """
    are_named = isinstance(functions, Mapping) and bool(functions)
    problems = wrong_values([("functions", functions, are_named, "functions by name")])
    defaults = {p.name: p.default for p in signature(measure).parameters.values()}
    wrong = options.keys() - (defaults.keys() - {"name", "func"})
    problems += [f"{name!r} is not an option of measure_many" for name in sorted(wrong)]
    pieces = pieces_for(options.get("budget_s", defaults["budget_s"]))
    options = {**defaults, "pieces": pieces, **options}
    seed, runs = attempt(problems, check_seed, options.pop("seed", None)) or 0, {}
    for index, (name, func) in enumerate((functions if are_named else {"": id}).items()):
        own = {"func": func, "name": name, "seed": seed_of(seed, index)}
        try:
            runs[name] = prepare({**options, **own})
        except InvalidInput as error:
            problems += [f"{name}: {problem}" if name else problem for problem in error.problems]
    refuse(problems)
    return rotate(runs, seed=seed, over_s=options["over_s"])


def pieces_for(budget_s: object) -> int:
    """Return the default number of pieces of a budget: six, or down to four of a good length."""
    if not is_number(budget_s) or not SHORTEST_PIECE_S <= budget_s < math.inf:
        return 1  # it is wrong, or too short for two
    good, most = (int(budget_s / length_s + 1e-9) for length_s in (_GOOD_S, SHORTEST_PIECE_S))
    return min(_PIECES, max(_FEWEST, good), most)
