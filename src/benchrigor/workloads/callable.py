"""A plain function as a workload: the mean duration of its calls, or of one with a work amount."""

from __future__ import annotations

import gc as collector
import inspect
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, repeat
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrigor.errors import ClockFailed, InvalidInput
from benchrigor.model import Code, Notice, RoundPlan
from benchrigor.model.checks import refuse
from benchrigor.model.series import short
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.workloads.processes.worker import (
    FEW_CALLS,
    HEADROOM,
    NO_HICCUP,
    calls_per_reading,
    time_readings,
)
from benchrigor.workloads.reading_delays import ReadingDelays
from benchrigor.workloads.timing import (
    NEVER,
    TimedWorkload,
    awaits,
    collector_kept,
    failures_of,
    in_seconds,
    misfits,
    wrong_function,
)

if TYPE_CHECKING:  # asyncio takes longer to load than all else here
    from asyncio import AbstractEventLoop

    from benchrigor.workloads.processes.worker import Timing

Call = Callable[[], object]
_UNAWAITED = (
    "nothing awaits it; give a coroutine function, such as functools.partial(f, ...), which is "
    "awaited"
)
_LOOP_RUNS = (
    "an event loop runs here already: await measure_async, or have a thread measure, as by "
    "asyncio.to_thread"
)

Arguments = tuple[Sequence[Any], dict[str, Any]]
_MOST_GIVEN, _MOST_GIVEN_BYTES = 10_000, 64 * 2**20  # of the states that a batch is given

# A round after readings that last less than this share of what the clock needs chooses the calls
# per reading again: the first calls were slow. So many of the latest readings tell.
_TOO_SHORT, _TELLING = 0.25, 11
_MANY_CALLS = 2**20  # enough calls for a step of a coarse clock


class CallableWorkload(TimedWorkload):
    """Times calls of a function; one reading is the mean duration of one call, in seconds.

    The first call is timed apart, unless it takes more than a thirtieth of the plan's time: then
    few calls fit, and it is a reading. Enough calls make a reading that it lasts a thousand clock
    resolutions and 20 µs; if later calls are much faster, the next round takes more of them.
    Readings include the steps of the loop and the cost of the clock, which is reported. Coroutine
    functions are awaited, in one event loop per round. The facts of a round are ``inner_loop``,
    ``clock_resolution_s``, ``clock_cost_s`` and ``gc``, and ``first_call_s`` in
    the first round.

    Parameters
    ----------
    func
        Called without arguments; its result is dropped.
    clock
        The only source of time.
    setup, teardown
        Called before and after a reading, untimed, with one call of ``func`` in between;
        ``teardown`` also when ``func`` failed. A setup may return ``(args, kwargs)`` for the call.
        Without a teardown a reading may then hold several calls with their own arguments: up to
        10,000, or (on Linux) 64 MB of them.
    inner
        Calls per reading; None to choose it.
    loop_factory
        Makes an event loop per round for coroutine functions; None for asyncio's own.
    sync
        Called at the end of a reading, and timed with it: waits for a device to finish.
    memory
        Whether one further call after the first round measures the fact ``peak_traced_memory``:
        the most bytes that Python had allocated in it (`tracemalloc`).
    instructions
        Reads a counter of the thread's instructions; one further reading per round gives the
        metric "instructions" of a call. Or a text: the reason why there is no counter.
    gc
        "on" leaves the garbage collector as it is, since its pauses are paid for in production
        too; "off" keeps it from running within a round.
    metric
        Name of the metric that the readings are of.
    meter
        Measures, between readings, how long the thread waited for a processor; None for no
        measurement.
    timeout_s
        Seconds after which a call is ended (on average with ``inner``); None for no limit.
        `time_limits.CallLimit` says which calls cannot be ended.
    first_call_apart
        Whether the first call is timed apart; otherwise, with ``inner``, every call is part of a
        reading.
    take_first
        Called with the result of the first call, outside of every later call.

    Raises
    ------
    InvalidInput
        Naming every parameter that is out of range.

    Examples
    --------
    >>> from benchrigor.model import RoundPlan
    >>> from benchrigor.testing import FakeClock
    >>> from benchrigor.workloads.recorder import RoundRecorder
    >>> clock, plan = FakeClock(), RoundPlan(index=0, readings=3)
    >>> workload = CallableWorkload(lambda: clock.advance(5_000), clock=clock)
    >>> recorder = RoundRecorder()
    >>> workload.run(plan, recorder)
    >>> finished = recorder.finish(plan, elapsed_ns=clock.now_ns())
    >>> finished.unit_readings["time"], finished.facts["inner_loop"]
    (array([5.e-06, 5.e-06, 5.e-06]), 8)
    """

    _is_new = True  # until the first call
    _amount: tuple[float, ...] = ()  # of work, in a round of one call
    _is_chosen = False  # whether readings told how many calls they need
    _latest_ns: Sequence[int] = ()  # readings

    def __init__(
        self,
        func: Callable[..., object],
        *,
        clock: Clock,
        setup: Call | None = None,
        teardown: Call | None = None,
        inner: int | None = None,
        gc: str = "on",
        metric: str = "time",
        meter: DelayMeter | None = None,
        timeout_s: float | None = None,
        first_call_apart: bool = True,
        take_first: Callable[[Any], object] | None = None,
        loop_factory: Callable[[], AbstractEventLoop] | None = None,
        sync: Call | None = None,
        memory: bool = False,
        instructions: Callable[[], int] | str | None = None,
    ) -> None:
        argument = "of an amount" if self.takes_amount else "without arguments"
        refuse(
            wrong_function("func", func, f"a function {argument}"),
            misfits(
                setup=setup,
                teardown=teardown,
                inner=inner,
                gc=gc,
                timeout_s=timeout_s,
                loop_factory=loop_factory,
                sync=sync,
            ),
        )
        super().__init__(func, clock=clock, meter=meter, timeout_s=timeout_s)
        self._limit.calls = inner or 1
        self._gc, self._metric = gc, metric
        self._is_first_round = first_call_apart
        self._take_first = take_first
        self._calls = 0  # finished before the readings under way
        self._setup, self._teardown = setup, teardown
        self._sync, self._memory, self._instructions = sync, memory, instructions
        self._one_by_one = self.takes_amount or any((setup, teardown, sync))
        self._is_given = False  # whether setup returns the arguments of a call
        self._most_given = _MOST_GIVEN
        alone = self.takes_amount or teardown is not None
        self.inner = 1 if alone else inner or 0
        self._is_coroutine = awaits(func)
        self._loop_factory = loop_factory
        self._carry_out: Callable[[Coroutine[Any, Any, Any]], Any] | None = None
        self._kept_ns: list[int] = []  # of single calls that are readings, still to be recorded

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Take ``plan.readings`` readings; WorkloadFailed names the one at which a call failed."""
        with self._limit_calls(plan, recorder), self.awaiting(), collector_kept(self._gc):
            _ = self._stopwatch  # measured before the first call
            deadline = self._deadline(plan)
            if self._is_first_round:
                first_call_ns = self._time_first_call(plan.seconds)
                first_call_s = float(in_seconds([first_call_ns])[0])
                self._limit.typical_s = first_call_s
                recorder.fact("first_call_s", first_call_s)
            if self._are_too_short():
                self.inner = 0
            self._record(recorder, self._metric, plan.readings, self._next_chunk, deadline=deadline)
            recorder.fact("gc", "on" if collector.isenabled() else "off")
            if self._memory and self._is_first_round:
                recorder.fact("peak_traced_memory", self._trace_peak())
            if self._instructions is not None:
                self._tell_instructions(recorder, self._instructions)
        recorder.fact("inner_loop", self.inner or 1)
        self._is_first_round = False

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        """Have an event loop inside, if the function is a coroutine function."""
        if not self._is_coroutine or self._carry_out is not None:
            yield
            return
        import asyncio  # noqa: PLC0415  # only for who awaits

        with suppress(RuntimeError):  # no loop runs, as it should be
            asyncio.get_running_loop()
            raise InvalidInput(f"{self.name} is a coroutine function, and {_LOOP_RUNS}")
        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            self._carry_out = runner.run
            try:
                yield
            finally:
                self._carry_out = None

    def carried_out_by(self, carry_out: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        """Have coroutines run elsewhere, in a loop that is there already."""
        self._carry_out = carry_out

    def settle(self, seconds: float | None) -> None:
        """Make the first call, and choose the calls per reading unless it is a reading itself."""
        with collector_kept(self._gc):
            _ = self._stopwatch  # measured before the first call
            if self._is_first_round:
                self._time_first_call(seconds)
                self._is_first_round = False
            if not self._kept_ns:
                self.inner = self.inner or self._calibrate(0)

    def lasting_ns(self) -> int:
        """Return how long a reading lasts, from one that is still to be recorded if there is."""
        return self._kept_ns[0] if self._kept_ns else self.time_once(0)

    def put_together(self, calls: int) -> None:
        """Let readings hold more calls than chosen; a single call is not a reading then."""
        if calls > max(self.inner, 1):
            self.inner = calls
            self._kept_ns.clear()

    def time_once(self, done: int) -> int:
        """Return the nanoseconds of one reading after ``done`` others, for readings in turn.

        A reading is one call until `settle` has chosen how many. The garbage collector is left
        as it is.
        """
        if self._kept_ns:
            return self._kept_ns.pop(0)
        (elapsed_ns,) = self._time(1, done, inner=self.inner or 1)
        return elapsed_ns

    @contextmanager
    def _first_call(self) -> Iterator[None]:
        """Look at the result of the first call inside: later calls are of the bare function."""
        name, func = self.name, self._func  # keep the name of the function
        results: list[Any] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            result: Any = func(*args, **kwargs)
            if not results:
                results.append(result)
            return result

        async def await_call(*args: Any, **kwargs: Any) -> None:
            result: Any = await func(*args, **kwargs)  # type: ignore[misc]
            if not results:
                results.append(result)

        self._func = await_call if self._is_coroutine else call
        try:
            yield
        finally:
            self._func = func
        for result in results:  # none if the call was left
            _refuse_coroutine(result, name)
            if self._take_first is not None:
                self._take_first(result)

    def _time_first_call(self, seconds: float | None) -> int:
        """Time the first call, which pays for all that is done once.

        It is a reading if few calls are to be had in that many seconds.
        """
        (first_call_ns,) = self._time(1, None, delays=self._delays)
        if self.inner <= 1 and seconds is not None and first_call_ns > seconds * 1e9 / FEW_CALLS:
            self._kept_ns.append(first_call_ns)
        elif self._delays is not None:
            self._delays.forget(0)
            self._delays.expect(first_call_ns)
        return first_call_ns

    def _next_chunk(self, n: int, done: int, until_ns: int) -> list[int]:
        """Return up to ``n`` readings until then, after ``done`` others; kept ones first."""
        if not (self.inner or self._kept_ns):
            self.inner, self._is_chosen = self._calibrate(done), True
        if self._kept_ns:
            return [self._kept_ns.pop(0)]
        elapsed_ns = self._time(n, done, inner=self.inner, delays=self._delays, until_ns=until_ns)
        self._latest_ns = elapsed_ns[-_TELLING:]
        return elapsed_ns

    def _are_too_short(self) -> bool:
        """Return whether the latest readings lasted much less than the clock needs."""
        if not self._is_chosen or len(self._latest_ns) < _TELLING:
            return False
        median_ns = sorted(self._latest_ns)[_TELLING // 2]
        return median_ns < _TOO_SHORT * HEADROOM * self._stopwatch.shortest_ns

    def _calibrate(self, done: int) -> int:
        """Return the calls that a reading needs to last long enough for the clock.

        A single call that is plainly long enough is kept, as a reading after ``done`` others.
        """
        if self._setup is not None and not self._is_given:
            return 1
        enough_ns = HEADROOM * self._stopwatch.shortest_ns
        (elapsed_ns,) = self._time(1, done, delays=self._delays)
        if elapsed_ns >= NO_HICCUP * enough_ns:
            self._kept_ns.append(elapsed_ns)
            return 1
        if self._delays is not None:
            self._delays.forget(done)

        def time_reading(inner: int) -> int:
            given = min(inner, self._most_given) if self._one_by_one else inner
            (elapsed_ns,) = self._time(1, None, inner=given)
            elapsed_ns = elapsed_ns * inner // given
            in_seconds([elapsed_ns])  # raises if the clock went backwards
            # No call takes less than a nanosecond.
            if inner >= _MANY_CALLS and elapsed_ns < inner:
                raise ClockFailed(
                    f"the clock stood still: {elapsed_ns} ns passed during {inner} calls of "
                    f"{self.name}, expected at least {inner} ns; use another clock"
                )
            return elapsed_ns

        in_seconds([elapsed_ns])
        inner, elapsed_ns = calls_per_reading(elapsed_ns, enough_ns, time_reading)
        if self._delays is not None:
            self._delays.expect(elapsed_ns)
        return min(inner, self._most_given) if self._one_by_one else inner

    def _time(
        self,
        n: int,
        done: int | None,
        *,
        inner: int = 1,
        delays: ReadingDelays | None = None,
        until_ns: int = NEVER,
    ) -> list[int]:
        """Return ``n`` readings of ``inner`` calls, in ns; the last one begins by ``until_ns``."""
        if self._is_new:
            self._is_new = False
            # A reading of several calls would be slower for it, and it counts.
            if inner == 1 or self._take_first is not None:
                with self._first_call():
                    return self._time(1, done, inner=inner, delays=delays, until_ns=until_ns)
        elapsed_ns: list[int] = []
        taken = elapsed_ns.append
        if delays is not None:
            taken = delays.begin(elapsed_ns, done=0 if self._amount else done or 0, readings=n)
        if self._one_by_one:
            with self._left_if_late(elapsed_ns):
                for _ in repeat(None, n):
                    taken(self._time_alone(inner, elapsed_ns, done, delays))
                    if until_ns < NEVER and self._clock.now_ns() >= until_ns:
                        break
            return elapsed_ns
        loop = [repeat(None, inner)]  # the calls of the reading under way

        def call() -> int:
            begun = 1 if inner == 1 else inner - length_hint(loop[0])
            return self._calls + len(elapsed_ns) * inner + begun

        with (
            self._left_if_late(elapsed_ns),
            failures_of(self.name, elapsed_ns, done, call),
            self._limit.watching(elapsed_ns, done),
        ):
            self._take_readings((self._now_ns, taken, n, until_ns, loop))
        self._calls += len(elapsed_ns) * inner
        return elapsed_ns

    def _take_readings(self, timing: Timing) -> None:
        time_readings(self._func, timing, self._carry_out)

    def _time_alone(
        self,
        inner: int,
        elapsed_ns: Sequence[int],
        done: int | None,
        delays: ReadingDelays | None,
    ) -> int:
        """Take one reading, with setup and teardown around it; return its nanoseconds.

        ``elapsed_ns`` and ``done`` give its place for messages.
        """
        name = "".join((self.name, *(f"({amount})" for amount in self._amount)))
        given = self._made_ready(inner, name, elapsed_ns, done)
        try:
            if delays is not None:
                delays.resume()
            with failures_of(name, elapsed_ns, done), self._limit.watching(elapsed_ns, done):
                calls = [((*self._amount, *args), kwargs) for args, kwargs in given]
                reading = self._time_given(calls)
            if delays is not None:
                delays.pause()
            return reading
        finally:
            if self._teardown is not None:
                with failures_of(f"teardown of {name}", elapsed_ns, done):
                    self._teardown()

    def _made_ready(
        self, inner: int, name: str, elapsed_ns: Sequence[int], done: int | None
    ) -> list[Arguments]:
        """Set up ``inner`` calls, and return their arguments."""
        if self._setup is None:
            return [((), {})] * inner
        ready: list[Arguments] = []
        before = _resident_bytes()
        for _ in repeat(None, inner):
            with failures_of(f"setup of {name}", elapsed_ns, done):
                returned = self._setup()
            given = _arguments(returned, name)
            self._is_given = given is not None
            if not self._is_given and inner > 1:
                raise InvalidInput(
                    f"a reading of {inner} calls needs a setup of each, and that of {name} "
                    "returned nothing, expected (args, kwargs); or let a reading hold 1 call"
                )
            ready.append(given or ((), {}))
        if done is None and (grown := _resident_bytes() - before) > 0:
            self._most_given = max(1, min(self._most_given, _MOST_GIVEN_BYTES * inner // grown))
        return ready

    def _time_given(self, calls: Sequence[Arguments]) -> int:
        """Return the nanoseconds of calls with these arguments."""
        func: Any = self._func
        now = self._now_ns
        if self._carry_out is None:
            start = now()
            for args, kwargs in calls:
                func(*args, **kwargs)
            if self._sync is not None:
                self._sync()
            return now() - start

        async def await_calls() -> int:
            start = now()
            for args, kwargs in calls:
                await func(*args, **kwargs)
            if self._sync is not None:
                self._sync()
            return now() - start

        elapsed_ns: int = self._carry_out(await_calls())
        return elapsed_ns

    def _tell_instructions(self, recorder: Recorder, counter: Callable[[], int] | str) -> None:
        """Record the instructions of a call, by a reading that the counter times."""
        if isinstance(counter, str):
            if self._is_first_round:
                recorder.notice(Notice.of(Code.NO_INSTRUCTIONS, why_=counter))
            return
        inner = self.inner or 1
        recorder.reading("instructions", self._count(counter, inner) / inner)

    def _trace_peak(self) -> int:
        """Return the most bytes that were allocated at once in a call, beyond those before it."""
        import tracemalloc  # noqa: PLC0415  # only if memory is asked for

        was_tracing, reads = tracemalloc.is_tracing(), count()

        def read() -> int:
            if next(reads) % 2:
                return tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            return self._count(read, 1)
        finally:
            if not was_tracing:
                tracemalloc.stop()

    def _count(self, read: Callable[[], int], inner: int) -> int:
        """Return how far a counter moves during a reading: it takes the place of the clock."""
        self._now_ns = read
        try:
            return self._time(1, None, inner=inner)[0]
        finally:
            self._now_ns = self._clock.now_ns


def _resident_bytes() -> int:
    """Return the memory of this process; 0 if the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGESIZE")


def _arguments(returned: object, name: str) -> Arguments | None:
    """Return the arguments of a call, as its setup returned them, or None."""
    match returned:
        case (tuple() | list() as args, dict() as kwargs):
            return args, kwargs
        case tuple() if all(value is None for value in returned):  # a lambda of several calls
            return None
    if not returned:
        return None
    raise InvalidInput(
        f"setup of {name} returned {short(returned)}, expected nothing, or (args, kwargs): what "
        "the call is given, as a tuple and a dict"
    )


def _refuse_coroutine(result: object, name: str) -> None:
    """Raise InvalidInput if a call only made a coroutine or an asynchronous generator."""
    if inspect.isasyncgen(result):
        raise InvalidInput(
            f"{name} returned an asynchronous generator that nothing steps through; give a "
            "coroutine function that runs it to its end"
        )
    if inspect.iscoroutine(result):
        result.close()
        raise InvalidInput(f"{name} returned a coroutine: {_UNAWAITED}")
