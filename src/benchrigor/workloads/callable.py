"""A plain function as a workload: the mean duration of its calls, or of one with a work amount."""

from __future__ import annotations

import gc as collector
import inspect
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import count, repeat
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchrigor.errors import ClockFailed, InvalidInput
from benchrigor.model import Code, Notice, RoundPlan
from benchrigor.model.checks import refuse
from benchrigor.model.series import short
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.workloads.named_functions import awaits, wrong_function
from benchrigor.workloads.processes.worker import (
    HEADROOM,
    NEVER,
    WrongClock,
    is_done,
    loop_of,
)
from benchrigor.workloads.timing import (
    TimedWorkload,
    What,
    collector_kept,
    failures_of,
    in_seconds,
    misfits,
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

# A round after readings that last less than this share of the time that the clock needs chooses the
# calls per reading again: the first calls were slow. This number of the latest readings shows it.
_TOO_SHORT, _TELLING = 0.25, 11


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
        metric "instructions" of a call. Or a text: the reason why the counter is missing.
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
    what
        What is timed instead of calls of ``func``, which names it; None for the calls.

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

    _amount: tuple[float, ...] = ()  # of work, in a round of one call

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
        what: What | None = None,
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
        apart = bool(self.takes_amount or any((setup, teardown, sync)))
        alone = self.takes_amount or teardown is not None
        # The first setup shows whether it gives the arguments of calls; otherwise it is of one.
        most = 0 if setup is not None else _MOST_GIVEN if apart else NEVER
        calls = What(self._taking, self._looking, apart)
        super().__init__(func, what or calls, clock=clock, meter=meter, timeout_s=timeout_s)
        self._calls.inner, self._calls.most = 1 if alone else inner or 0, most
        self._limit.calls = inner or 1
        self._gc, self._metric = gc, metric
        self._is_first_round = first_call_apart
        self._take_first = take_first
        self._setup, self._teardown = setup, teardown
        self._sync, self._memory, self._instructions = sync, memory, instructions
        self._is_coroutine = awaits(func)
        self._loop_factory = loop_factory
        self._carry_out: Callable[[Coroutine[Any, Any, Any]], Any] | None = None

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Take ``plan.readings`` readings; WorkloadFailed names the one at which a call failed."""
        with self._limit_calls(plan, recorder), self.awaiting(), self._timing():
            deadline = self._deadline(plan)
            if self._is_first_round:
                first_call_s = float(in_seconds([self._calls.first(plan.seconds)])[0])
                self._limit.typical_s = first_call_s
                recorder.fact("first_call_s", first_call_s)
            if self._are_too_short():
                self._calls.inner = 0
            self._record(recorder, self._metric, plan.readings, deadline=deadline)
            recorder.fact("gc", "on" if collector.isenabled() else "off")
            if self._memory and self._is_first_round:
                recorder.fact("peak_traced_memory", self._trace_peak())
            if self._instructions is not None:
                self._tell_instructions(recorder, self._instructions)
        recorder.fact("inner_loop", self.inner or 1)
        self._is_first_round = False

    @contextmanager
    def _timing(self) -> Iterator[None]:
        """Have the clock known before the first call, and the garbage collector as asked for."""
        self._calls.enough_ns = HEADROOM * self._stopwatch.shortest_ns
        try:
            with collector_kept(self._gc):
                yield
        except WrongClock as error:
            elapsed_ns, calls = error.args
            in_seconds([elapsed_ns])  # raises if the clock went backwards
            raise ClockFailed(
                f"the clock stood still: {elapsed_ns} ns passed during {calls} calls of "
                f"{self.name}, expected at least {calls} ns; use another clock"
            ) from None

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
        with self._timing():
            if self._is_first_round:
                self._calls.first(seconds)
                self._is_first_round = False
            if not (self._calls.kept_ns or self.inner):
                self._calls.choose(0)

    def lasting_ns(self) -> int:
        """Return how long a reading lasts, from one that is still to be recorded if there is."""
        return self._calls.kept_ns[0] if self._calls.kept_ns else self.time_once(0)

    def put_together(self, calls: int) -> None:
        """Let readings hold more calls than chosen; a single call is not a reading then."""
        if calls > max(self.inner, 1):
            self._calls.inner = calls
            self._calls.kept_ns.clear()

    def time_once(self, done: int) -> int:
        """Return the nanoseconds of one reading after ``done`` others, for readings in turn.

        A reading is one call until `settle` has chosen how many. The garbage collector is left
        as it is.
        """
        if self._calls.kept_ns:
            return self._calls.kept_ns.pop(0)
        (elapsed_ns,) = self._calls.time(1, done, self._calls.inner or 1)
        return elapsed_ns

    def _looking(self, inner: int) -> AbstractContextManager[None] | None:
        """Look at the result of a first call, unless a reading of several would count it."""
        return self._first_call() if inner == 1 or self._take_first is not None else None

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
            _refuse_awaitable(result, name)
            if self._take_first is not None:
                self._take_first(result)

    def _are_too_short(self) -> bool:
        """Return whether the latest readings lasted much less than the clock needs."""
        latest_ns = self._latest_ns[-_TELLING:]
        if not self._calls.is_chosen or len(latest_ns) < _TELLING:
            return False
        median_ns = sorted(latest_ns)[_TELLING // 2]
        return median_ns < _TOO_SHORT * HEADROOM * self._stopwatch.shortest_ns

    def _taking(self, inner: int) -> Callable[[Timing], object]:
        """Return what takes readings of so many calls."""
        if self._what.apart:
            return self._take_apart
        return partial(loop_of(inner, self._carry_out), self._func)

    def _take_apart(self, timing: Timing) -> None:
        """Take readings with untimed parts around each."""
        now_ns, append, n, until_ns, loop = timing
        for _ in repeat(None, n):
            append(self._time_alone(length_hint(loop[0])))
            if until_ns < NEVER and now_ns() >= until_ns:
                break

    def _time_alone(self, inner: int) -> int:
        """Take one reading, with setup and teardown around it; return its nanoseconds."""
        name = "".join((self.name, *(f"({amount})" for amount in self._amount)))
        timer, elapsed_ns, done = self._calls.measured, self._calls.elapsed_ns, self._calls.done
        given = self._made_ready(inner, name, elapsed_ns, done)
        try:
            if timer is not None:
                timer.resume()
            with failures_of(name, elapsed_ns, done), self._limit.watching(self._calls):
                calls = [((*self._amount, *args), kwargs) for args, kwargs in given]
                reading = self._time_given(calls)
            if timer is not None:
                timer.pause()
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
            if given is not None:
                self._calls.most = self._calls.most or _MOST_GIVEN
            elif inner > 1:
                raise InvalidInput(
                    f"a reading of {inner} calls needs a setup of each, and the setup of {name} "
                    "returned nothing, expected (args, kwargs); or let a reading hold 1 call"
                )
            ready.append(given or ((), {}))
        if done is None and (grown := _resident_bytes() - before) > 0:
            most = _MOST_GIVEN_BYTES * inner // grown
            self._calls.most = min(self._calls.most, max(1, most))
        return ready

    def _time_given(self, calls: Sequence[Arguments]) -> int:
        """Return the nanoseconds of calls with these arguments."""
        func: Any = self._func
        now = self._calls.now_ns
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
        self._calls.now_ns = read
        try:
            return self._calls.time(1, None, inner, apart=True)[0]
        finally:
            self._calls.now_ns = self._now_ns


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


def _refuse_awaitable(result: object, name: str) -> None:
    """Raise InvalidInput if a call only made an awaitable or an asynchronous generator."""
    if inspect.isasyncgen(result):
        raise InvalidInput(
            f"{name} returned an asynchronous generator that nothing steps through; give a "
            "coroutine function that runs it to its end"
        )
    if inspect.isawaitable(result) and not is_done(result):
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidInput(f"{name} returned an awaitable: {_UNAWAITED}")
