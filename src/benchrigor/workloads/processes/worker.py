"""Times calls and steps: in this process, and as the program of a fresh interpreter.

It needs only the standard library of CPython 3.9 or newer, and little of that. A fresh interpreter
starts with the path of this file, and needs neither benchrigor nor numpy. Its time until it
measures is part of every round.
"""

from __future__ import annotations

import gc as collector
import math
import os
import sys
import time
from array import array
from itertools import chain, repeat
from operator import length_hint

TYPE_CHECKING = False  # `typing` would take milliseconds of every round
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    Timing = tuple[Callable[[], int], Callable[[int], object], int, float, list[repeat[None]]]

VERSION = 2  # of the reference: every change of it changes the times
NEVER = sys.maxsize  # later than any clock
CHUNK = 65_536  # readings held as Python integers, before others are taken: a few MB

# --- the hot loops: all names are local, and only the call lies between two reads of the clock.
# Calls may become far slower at any time, so every reading is followed by a check of the time.
# A `Timing` holds the clock, the function that takes a reading, the maximum number of readings,
# the latest start of the last one, and a list with the calls of the current reading.


class Enough(Exception):
    """No more readings are wanted; raised by the function that takes them."""


def time_calls(func: Callable[[], object], timing: Timing) -> None:
    """Time readings of single calls."""
    now, append, readings, until_ns, _ = timing
    for _ in repeat(None, readings):
        start = now()
        func()
        stop = now()
        append(stop - start)
        if stop >= until_ns:
            break


def time_loops(func: Callable[[], object], timing: Timing) -> None:
    """Time readings of several calls."""
    now, append, readings, until_ns, loop = timing
    inner = length_hint(loop[0])
    for _ in repeat(None, readings):
        loop[0] = calls = repeat(None, inner)
        start = now()
        for _ in calls:
            func()
        stop = now()
        append(stop - start)
        if stop >= until_ns:
            break


async def await_calls(func: Callable[[], Any], timing: Timing) -> None:
    """Time readings of calls that are awaited."""
    now, append, readings, until_ns, loop = timing
    inner = length_hint(loop[0])
    for _ in repeat(None, readings):
        loop[0] = calls = repeat(None, inner)
        start = now()
        for _ in calls:
            await func()
        stop = now()
        append(stop - start)
        if stop >= until_ns:
            break


def is_done(value: object) -> bool:
    """Return whether a value that can be awaited is a future that has its result already."""
    done = getattr(value, "done", None)
    return callable(done) and done() is True


def loop_of(
    calls: int, carry_out: Callable[[Coroutine[Any, Any, None]], None] | None = None
) -> Callable[[Callable[[], Any], Timing], None]:
    """Return the loop that times readings of so many calls, which may have to be awaited."""
    if carry_out is not None:
        return lambda func, timing: carry_out(await_calls(func, timing))
    return time_calls if calls == 1 else time_loops


def time_steps(steps: Iterator[object], timing: Timing) -> None:
    """Time steps until they end."""
    try:
        time_calls(steps.__next__, timing)
    except StopIteration:
        return


# --- how many calls a reading holds

# Functions get faster as they warm up; a loop twice as long as needed stays long enough.
HEADROOM = 2
_GROWTH = 16  # the maximum growth of the loop in one step, lest a first guess overshoot
NO_HICCUP = 1_000  # no interruption makes a loop look this many times longer than needed
_MANY_CALLS = 2**20  # enough calls for a step of a coarse clock
FEW_CALLS = 30  # if only this number fits, the first call counts: no warm-up is visible
# By its second call a fresh process shows whether the first does more than others, as when it
# compiles or fills a cache: by the ratio of both, if the first took at most that share of the time.
_APART, _ONCE = 2.0, 0.25


class WrongClock(Exception):
    """The clock went back or stood still: nanoseconds that calls took, and their number."""


class Calls:
    """Takes the readings of rounds, and chooses how many calls each of them holds.

    Parameters
    ----------
    take
        Takes readings as a `Timing` says; the attributes say where they are in the round.
    now_ns
        Reads the clock.
    timer
        Measures delay and reference between readings that count; None for nothing.
    inner
        Calls per reading; 0 to choose it.

    Attributes
    ----------
    most
        The maximum number of calls per reading; up to 1 if they need no choice.
    enough_ns
        How long a reading must last for the clock.
    elapsed_ns, done
        The readings under way, and the number before them; None if they do not count.
    measured
        The timer, if it measures between the readings under way.
    earlier
        Readings of earlier rounds, which count for the place of those under way.
    kept_ns
        Single calls that are readings, still to be given.
    pace_ns
        Mean wall time of the last readings.
    is_chosen, is_cut
        Whether the number of calls was chosen, and whether the time of a round was up.
    """

    def __init__(
        self,
        take: Callable[[Timing], object],
        now_ns: Callable[[], int],
        timer: SegmentTimer | None = None,
        inner: int = 1,
    ) -> None:
        self._take, self.now_ns, self.timer = take, now_ns, timer
        self.inner, self.most, self.enough_ns = inner, NEVER, 0.0
        self.kept_ns, self.elapsed_ns = list[int](), list[int]()
        self.done: int | None = None
        self.measured: SegmentTimer | None = None
        self.earlier, self.pace_ns = 0, 0.0
        self.is_chosen = self.is_cut = self._is_enough = False

    def time(
        self, n: int, done: int | None, calls: int = 1, until_ns: float = NEVER, apart: bool = False
    ) -> list[int]:
        """Return ``n`` readings after ``done`` others, in ns; the last begins by ``until_ns``.

        Nothing is measured between those that are taken apart.
        """
        self.elapsed_ns = elapsed_ns = list[int]()
        self.measured = measured = None if apart else self.timer
        self.done = None if done is None else self.earlier + done
        append = elapsed_ns.append
        if measured is not None:
            append = measured.begin(elapsed_ns, done=done or 0, readings=n)
        try:
            self._take((self.now_ns, append, n, until_ns, [repeat(None, calls)]))
        except Enough:
            self._is_enough = True
        return elapsed_ns

    def first(self, seconds: float | None) -> int:
        """Time the first call, which pays for all that is done once.

        It is a reading if few calls are to be had in that many seconds.
        """
        (first_ns,) = self.time(1, None)
        is_long = seconds is not None and first_ns > seconds * 1e9 / FEW_CALLS
        if is_long and self.inner <= 1:
            self.kept_ns.append(first_ns)
        else:
            self.forget(0, first_ns * max(self.inner, 1))
        return first_ns

    def choose(self, done: int) -> None:
        """Choose the calls that a reading needs to last long enough for the clock.

        A single call that is plainly long enough is kept, as a reading after ``done`` others.
        """
        calls, is_again, enough_ns = 1, False, self.enough_ns
        if self.most > 1:
            (elapsed_ns,) = self.time(1, done)
            if elapsed_ns >= NO_HICCUP * enough_ns:
                self.kept_ns.append(elapsed_ns)
            while not self.kept_ns:
                # No call takes less than a nanosecond.
                if elapsed_ns < 0 or (calls >= _MANY_CALLS and elapsed_ns < calls):
                    raise WrongClock(elapsed_ns, calls)
                if elapsed_ns >= (enough_ns if is_again else NO_HICCUP * enough_ns):
                    self.forget(done, elapsed_ns)
                    break
                # An interruption can make few calls look long enough: they must show it twice.
                is_again = elapsed_ns >= enough_ns
                if not is_again:
                    more = max(2, math.ceil(enough_ns / max(elapsed_ns, 1)))
                    calls *= min(more, _GROWTH)
                given = min(calls, self.most)
                taken_ns = self.time(1, None, given, apart=True)[0] * calls // given
                elapsed_ns = min(elapsed_ns, taken_ns) if is_again else taken_ns
        # At last: a failure or signal leaves no choice.
        self.inner, self.is_chosen = min(calls, max(self.most, 1)), True

    def forget(self, readings: int, expected_ns: float) -> None:
        """Forget measurements after this number of readings; further ones last as long."""
        if self.timer is not None:
            self.timer.forget(readings)
            self.timer.expect(expected_ns)

    def take_round(
        self, n: int, keep: Callable[[list[int]], object], until_ns: float, latest_ns: float
    ) -> None:
        """Have the readings of a round kept in chunks, up to that many, until its time is up.

        From two readings on, none begins that would end after ``latest_ns``.
        """
        taken, self.is_cut, now_ns = 0, False, self.now_ns()
        while taken < n and not self._is_enough:
            is_late = taken >= 2 and now_ns + self.pace_ns > latest_ns
            if taken and (is_late or now_ns >= until_ns):
                self.is_cut = True
                return
            # Soon enough for readings that might end too late.
            look_ns = min(until_ns, now_ns + latest_ns - until_ns)
            if not (self.inner or self.kept_ns):
                self.choose(taken)
            if self.kept_ns:
                chunk = [self.kept_ns.pop(0)]
            else:
                chunk = self.time(min(CHUNK, n - taken), taken, self.inner, look_ns)
            if not chunk:
                return
            taken += len(chunk)
            if self.timer is not None:
                self.timer.close(taken)
            keep(chunk)
            began_ns, now_ns = now_ns, self.now_ns()
            self.pace_ns = (now_ns - began_ns) / len(chunk)


# --- the reference

_EVERY_NS = 500_000  # the pace of a shared processor changes within a millisecond
MOST_SHARE = 0.05  # of the time that the reference may take
_LONG_SHARE = 0.01  # of a long reading, for which the reference is repeated after it
_MOST_REPEATS = 100
_WARM_UP = 100  # calls, after which the interpreter has specialised its byte code
# Runs before the one that counts: after copies and sleeps the second one takes 25 to 40 % longer
# than the fourth, which takes the same after any work.
_COLD_RUNS = 3
_STEPS = range(50)


class Reference:
    """Times a loop of byte code over a small dict, whenever half a millisecond has passed.

    The loop is run four times, and the last run counts: the others bring its code and data back
    into the caches, whatever the workload has done to them.

    Parameters
    ----------
    now_ns
        Reads the clock that times the work.

    Examples
    --------
    >>> Reference().measure(lasting_ns=500_000) > 0
    True
    """

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now = now_ns
        self._table: dict[int, int] = {}
        self._due_ns = 0
        self._cost_ns = 1
        self._every_ns = 0
        self._cost_ns = (_COLD_RUNS + 1) * min(self.measure(0) for _ in range(_WARM_UP))
        self._every_ns = max(_EVERY_NS, int(self._cost_ns / MOST_SHARE))
        self._due_ns += self._every_ns

    def is_due(self, now_ns: int) -> bool:
        """Return whether enough time has passed since it was measured last."""
        return now_ns >= self._due_ns

    def measure(self, lasting_ns: int) -> int:
        """Return the nanoseconds of the work after a reading, or readings, that took that long.

        The mean of repeated runs if that was long.
        """
        now, table, repeats = self._now, self._table, repeats_after(lasting_ns, self._cost_ns)
        for _ in range(_COLD_RUNS):
            _loop(table)
        start = now()
        for _ in range(repeats):
            _loop(table)
        stop = now()
        self._due_ns = stop + self._every_ns
        return max((stop - start) // repeats, 1)


def repeats_after(lasting_ns: int, cost_ns: int) -> int:
    """Return how often work of such a cost is repeated after something that took that long."""
    return max(1, min(int(_LONG_SHARE * lasting_ns / cost_ns), _MOST_REPEATS))


def _loop(table: dict[int, int]) -> None:
    for step in _STEPS:
        key = step & 63
        table[key] = (table.get(key, 0) + step) & 255


# --- turns with another process

# The pace of a processor changes within milliseconds. Turns are about as short, so both sides meet
# the same pace. In shorter turns code that fills caches would look slower than other code: the
# first segment of a turn does not count, and few of the long readings begin a turn.
TURN_NS = 3_000_000
_PID_BYTES = 4


class Turns:
    """Lets two processes measure by turns: one waits while the other is timed.

    Both run on the same processor, because another processor may have another pace. The main thread
    of the waiting process is moved to the current one, and may use all its processors again when
    it goes on. Both processes end together, because the pace changes later.

    Parameters
    ----------
    turns
        The descriptor of one end of a pair of sockets, and whether this process begins. The other
        process has the other end.
    now_ns
        Reads the clock.
    """

    def __init__(self, turns: tuple[int, bool], now_ns: Callable[[], int]) -> None:
        (self._descriptor, self._is_first), self._now_ns = turns, now_ns
        self._own = os.getpid().to_bytes(_PID_BYTES, "little")
        self._other = 0  # process; 0 if unknown
        self._stat = _open_or_none("/proc/thread-self/stat")
        self._until_ns = 0
        self.is_alone = False

    def begin(self) -> None:
        """Wait until the other process is ready, or hands over for the first time."""
        if self._is_first:
            self._wait()
        else:
            self.hand_over()

    def is_over(self, now_ns: int) -> bool:
        """Return whether it is time to hand over."""
        return not self.is_alone and now_ns >= self._until_ns

    def hand_over(self) -> None:
        """Let the other process go on here, and wait until it hands over or ends."""
        if self._stat is not None:
            cpus = os.sched_getaffinity(0)
            if self._other:
                status = os.pread(self._stat, 1024, 0).rpartition(b")")[2].split(None, 37)
                self._move(self._other, {int(status[36])})
        self._tell(self._own)
        self._wait()
        if self._stat is not None:
            self._move(0, cpus)

    def end(self) -> None:
        """Let the other process go on alone."""
        if not self.is_alone:  # a write to an ended process may kill this one by SIGPIPE
            self._tell(bytes(_PID_BYTES))

    def leave(self) -> None:
        """Take no further turns, in a copy of this process: it would keep the other one waiting."""
        if not self.is_alone:
            os.close(self._descriptor)
        self._descriptor, self.is_alone = -1, True

    def _tell(self, message: bytes) -> None:
        try:
            os.write(self._descriptor, message)
        except OSError:  # it has ended
            return

    def _wait(self) -> None:
        try:
            told = os.read(self._descriptor, _PID_BYTES)
        except OSError:  # the other one hangs, or the measured code closed all descriptors
            told = b""
        self._other = int.from_bytes(told, "little")
        self.is_alone = not self._other
        self._until_ns = self._now_ns() + TURN_NS

    def _move(self, process: int, cpus: set[int]) -> None:
        try:
            os.sched_setaffinity(process, cpus)
        except OSError:  # it has ended, or a sandbox does not let us
            self._stat = None


# --- segments of readings, between which delay and reference are measured

# Asking the kernel takes a microsecond or two, and a preemption lasts about as long as this.
SEGMENT_NS = 500_000
# Segments after which their length is adjusted, and again at every fourfold number. A length that
# is near enough stays: only segments of equal length can be compared.
_TRIED = 16


class SegmentTimer:
    """Measures the delay of readings while they are taken, and the reference in turn with them.

    Neither is part of the timed work, and either may be missing. Segments have about equal numbers
    of readings, and last half a millisecond to two, or a single reading.

    Parameters
    ----------
    delay_ns
        Returns how long the thread waited for a processor so far; None if unknown.
    now_ns
        Reads the clock.
    reference
        Timed in turn with the segments; None for none.
    busy_ns
        Returns the processor time of the thread so far; None if the clock is not that of the
        machine.
    turns
        Turns with another process, handed over between segments; None for none.
    cpu_ns
        Returns the processor time of this process and of the children that it has waited for; None
        for what every interpreter has.

    Attributes
    ----------
    segments
        Number of readings at the end of a segment, its start, delay, sum of the readings and
        processor time, by segment.
    references
        Pairs of a number of readings and the time of the reference after them, in nanoseconds.
    used_ns
        Processor time of this thread, of all other threads and children, and wall time, at the
        start of the first segment, plus their growth in turns of the other process; None before.
    """

    def __init__(
        self,
        delay_ns: Callable[[], int] | None,
        now_ns: Callable[[], int],
        reference: Reference | None = None,
        busy_ns: Callable[[], int] | None = None,
        *,
        turns: Turns | None = None,
        cpu_ns: Callable[[], int] | None = None,
    ) -> None:
        self.reference, self._turns, self._cpu_ns = reference, turns, cpu_ns or _cpu_ns
        self._known = {"is_metered": delay_ns is not None, "is_busy_known": busy_ns is not None}
        self._busy_so_far_ns = busy_ns or int
        self._now_ns = now_ns
        self._delay_so_far_ns = delay_ns or int
        self._elapsed_ns: list[int] = []  # of the readings under way
        self._kept = self._closed = 0  # readings that are in a segment; number of segments
        self._since_ns: int | None = None
        self._paused_ns = self._busy_since_ns = 0
        self._began_ns: int | None = None  # the segment under way
        self._delay_ns = self._busy_ns = 0
        self._length, self._is_cold = 1, False
        self._adjusted_at = _TRIED
        self.clear()

    def clear(self) -> None:
        """Begin a round."""
        self.segments: list[tuple[int, int, int, int, int]] = []
        self.references: list[tuple[int, int]] = []
        self.used_ns: tuple[int, ...] | None = None

    def expect(self, typical_ns: float) -> None:
        """Choose the number of readings per segment from their typical time."""
        self._length = max(1, math.ceil(SEGMENT_NS / max(typical_ns, 1)))

    def begin(self, elapsed_ns: list[int], *, done: int, readings: int) -> Callable[[int], None]:
        """Return a function that appends a reading, and measures delay between them.

        The round has ``done`` readings before them, and up to ``readings`` to come.
        """
        append, close = elapsed_ns.append, self._close
        self._elapsed_ns, self._kept = elapsed_ns, 0
        left = self._next_length(readings)
        self._began_ns = None
        self.resume()

        def take(reading_ns: int) -> None:
            nonlocal left
            append(reading_ns)
            left -= 1
            if not left:
                close(elapsed_ns, done)
                left = self._next_length(readings - len(elapsed_ns))

        return take

    def resume(self) -> None:
        """Count from here on."""
        if self.used_ns is None:
            self.used_ns = self.spent_ns()
        if self._began_ns is None:
            self._began_ns = self._now_ns()
        self._since_ns = self._delay_so_far_ns()
        self._busy_since_ns = self._busy_so_far_ns()

    def pause(self) -> None:
        """Count up to here; delay before the next `resume` counts for no reading."""
        if self._since_ns is not None:
            self._busy_ns += self._busy_so_far_ns() - self._busy_since_ns
            self._paused_ns = self._delay_so_far_ns()
            self._delay_ns += max(self._paused_ns - self._since_ns, 0)
            self._since_ns = None

    def forget(self, readings: int) -> None:
        """Forget the measurements after this number of readings of the round."""
        self.segments = [segment for segment in self.segments if segment[0] <= readings]
        self.references = [reference for reference in self.references if reference[0] <= readings]
        if not self.segments:
            self.used_ns = None

    def close(self, readings: int) -> None:
        """End the current segment, if any, after this number of readings of the round."""
        if readings > (self.segments[-1][0] if self.segments else 0):
            self.pause()
            self._keep(readings)

    def spent_ns(self) -> tuple[int, int, int]:
        """Return the processor time of this thread, of all others and children, and wall time."""
        own_ns = time.thread_time_ns()
        return own_ns, self._cpu_ns() - own_ns, time.monotonic_ns()

    def measured(self) -> dict[str, Any]:
        """Return the measurements of the round, and begin another."""
        measured = {"segments": self.segments, "references": self.references}
        used_ns = self._used_so_far_ns()
        self.clear()
        return {**measured, "used_ns": used_ns, **self._known}

    def _used_so_far_ns(self) -> list[int]:
        """Return what was spent since the round began."""
        spent_ns = self.spent_ns()
        return [now - before for before, now in zip(self.used_ns or spent_ns, spent_ns)]

    def _next_length(self, readings: int) -> int:
        """Return the length of the next of equal segments of the readings to come."""
        return readings // max(1, round(readings / self._length))

    def _close(self, elapsed_ns: list[int], done: int) -> None:
        """End a segment."""
        is_running = self._since_ns is not None
        if is_running:
            self.pause()
        is_cold, self._is_cold = self._is_cold, False
        if is_cold and self._length > 1 and self.segments:
            del elapsed_ns[self._kept :]
            self._began_ns, self._delay_ns, self._busy_ns = None, 0, 0
            self.resume()
            return
        self._keep(done + len(elapsed_ns))
        time_ns, before_ns = self._reference_ns(is_running)
        if is_running:
            self.resume()
        if time_ns and (self._since_ns if is_running else self._delay_so_far_ns()) == before_ns:
            self.references.append((self.segments[-1][0], time_ns))
        if is_running and self._turns is not None and self._turns.is_over(self._now_ns()):
            self.pause()
            so_far_ns = self._used_so_far_ns()
            self._turns.hand_over()
            self.used_ns = tuple(now - used for now, used in zip(self.spent_ns(), so_far_ns))
            self._began_ns, self._is_cold = None, True
            if self._turns.is_alone and self.segments[-1][0] >= FEW_CALLS:
                raise Enough
            self.resume()
        self._closed += 1
        if self._closed >= self._adjusted_at:
            self._adjusted_at *= 4
            before = self._length
            last = sorted(elapsed_ns[-_TRIED * before :])
            self.expect(last[len(last) // 2])
            if before <= 2 * self._length <= 4 * before:
                self._length = before

    def _reference_ns(self, is_paused: bool) -> tuple[int, int]:
        """Return the time of the reference, 0 if not due, and the delay so far before it."""
        reference = self.reference
        if reference is None or not reference.is_due(self._now_ns()):
            return 0, 0
        before_ns = self._paused_ns if is_paused else self._delay_so_far_ns()
        return reference.measure(self.segments[-1][3]), before_ns

    def _keep(self, stop: int) -> None:
        duration_ns = sum(self._elapsed_ns[self._kept :])
        segment = stop, self._began_ns or 0, self._delay_ns, duration_ns, self._busy_ns
        self.segments.append(segment)
        self._began_ns, self._kept = None, len(self._elapsed_ns)
        self._delay_ns = self._busy_ns = 0


def _cpu_ns() -> int:
    children_s = sum(os.times()[2:4])
    return time.process_time_ns() + int(1e9 * children_s)


# --- the program of a fresh interpreter

EXIT_S = 2.0  # for exit handlers of the target; after it the program ends with this code:
EXIT_TOOK_LONG = 124
_MOST_WORDS = 2_000  # of the message of an error
MARK = b"\0answer\n"  # before the results
_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200  # flags of code, see `inspect`


class Refused(Exception):
    """The target cannot be timed; the sentence says why."""


def main(entered_ns: int, task: dict[str, Any]) -> None:
    """Measure as the task says, and write the results to stdout, which the target does not get."""
    descriptor, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    turns = Turns(task["turns"], time.perf_counter_ns) if task["turns"] else None
    if turns is not None:
        os.set_inheritable(task["turns"][0], False)  # processes of the target must not keep it open
        os.register_at_fork(after_in_child=turns.leave)
    pid = os.getpid()
    facts: dict[str, Any] = {"startup_s": (entered_ns - task["began_ns"]) / 1e9}
    arrays: dict[str, array[float]] = {}
    if task["cpus"] is not None:
        os.sched_setaffinity(0, task["cpus"])
    if task["given"] is not None:  # imported by our own path: the target's folder may shadow them
        import functools
        import pickle
    try:
        began_ns = time.perf_counter_ns()
        func = import_target(task)
        facts["import_s"] = (time.perf_counter_ns() - began_ns) / 1e9
        if task["given"] is not None:
            args, kwargs = pickle.loads(task["given"])  # noqa: S301  # what started this wrote it
            func = functools.partial(func, *args, **kwargs)
        arrays = _measure(func, task, facts, turns)
    except Refused as error:
        facts = {"refused": str(error)}
    except BaseException as error:
        _end_copy(pid)
        facts = {"failed": _report_error(error)}
    _end_copy(pid)
    _answer(descriptor, facts, arrays)
    _see_to_the_end()


def _answer(descriptor: int, facts: dict[str, Any], arrays: dict[str, array[float]]) -> None:
    """Write what came out."""
    sizes = [[name, len(column)] for name, column in arrays.items()]
    try:
        answer = os.fdopen(descriptor, "wb")
    except OSError:
        raise SystemExit("the measured code closed the descriptors of its process") from None
    with answer as pipe:
        pipe.write(MARK + ascii({"facts": facts, "arrays": sizes}).encode() + b"\n")
        for values in arrays.values():
            pipe.write(values.tobytes())


def _see_to_the_end() -> None:
    """End this process at once if it would wait for threads of the target, else soon."""
    threading = sys.modules.get("threading")
    if not threading or sum(not thread.daemon for thread in threading.enumerate()) <= 1:
        import _thread

        try:
            _thread.start_new_thread(_end_later, ())
        except RuntimeError:  # the target left no memory, or no number, for another
            pass
        else:
            return
    try:
        sys.stdout.flush()
    finally:
        os._exit(0)


def _report_error(error: BaseException) -> str:
    """Name the error of the target, and print its own lines; their end is in the message."""
    own = trace = error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == __file__:
            own = trace.tb_next
        trace = trace.tb_next
    try:
        words = str(error)
    except Exception:  # the error's own code
        words = ""
    if len(words) > _MOST_WORDS:
        words = words[:_MOST_WORDS]
        words = f"{words.rpartition(' ')[0] or words}…"  # half a secret would not look like one
    sys.excepthook(type(error), error.with_traceback(own), own)
    return f"raised {type(error).__name__}{f': {words}' if words else ''}"


def _end_copy(pid: int) -> None:
    """End this process at once if the target forked it: only the original answers."""
    if os.getpid() != pid:
        os._exit(1)


def _end_later() -> None:
    time.sleep(EXIT_S)
    os._exit(EXIT_TOOK_LONG)


def import_target(task: dict[str, Any]) -> Any:
    """Import ``module:function`` by the path of the task; this file's own folder is not in it."""
    sys.path[:] = [*task["path"], *filter(None, sys.path)]
    module_name, _, path = task["target"].partition(":")
    __import__(module_name)
    item: Any = sys.modules[module_name]
    inside, file = task.get("inside"), getattr(item, "__file__", None)
    if inside and not os.path.realpath(file or "").startswith(os.path.realpath(inside) + os.sep):
        raise Refused(f"{module_name} is imported from {file}, expected one within {inside}")
    for name in path.split("."):
        if not hasattr(item, name):
            raise Refused(f"module {module_name!r} has no {path!r}")
        item = getattr(item, name)
    _check(item, task["target"], is_given=task["given"] is not None)
    return item


def _check(item: Any, target: str, is_given: bool) -> None:
    """Refuse a target that is not a function, or takes arguments if none are given."""
    if not callable(item):
        raise Refused(f"{target} is {item!r}, expected a function")
    code = getattr(item, "__code__", None)
    if code is None:
        return
    if code.co_flags & _ASYNC_GENERATOR:
        raise Refused(
            f"{target} is an asynchronous generator function: calling it only makes an object; "
            "name a coroutine function that runs it to its end"
        )
    given = len(item.__defaults__ or ()) + int(hasattr(item, "__self__"))
    if code.co_argcount > given and not is_given:
        raise Refused(f"{target} takes arguments, expected none: name a function that gives them")


def _measure(
    func: Any, task: dict[str, Any], facts: dict[str, Any], turns: Turns | None
) -> dict[str, array[float]]:
    """Time the function, or the steps of the generator that it makes; add facts."""
    if task["gc"] == "off":
        collector.disable()
    facts["peak_memory_floor"], now = _peak_memory(), time.perf_counter_ns
    reference = Reference() if task["reference"] else None
    if turns is not None:
        turns.begin()
    task["last_ns"] = task["until_ns"]
    task["until_ns"] = min(task["last_ns"], now() + task["longest_ns"])
    timer = SegmentTimer(_meter(), now, reference, time.thread_time_ns, turns=turns)
    calls = _calls_of(func, task, timer, facts)
    elapsed_ns: list[int] = []
    calls.take_round(task["readings"], elapsed_ns.extend, task["until_ns"], 2 * NEVER)
    timer.forget(len(elapsed_ns))  # a second call may have been needed for the first one only
    inner = calls.inner
    if turns is not None:
        facts["by_turns"] = True
        turns.end()
    facts["inner_loop"], facts["python"] = inner, sys.version.split()[0]
    facts["gc"] = "on" if collector.isenabled() else "off"
    facts["peak_memory"], measured = _peak_memory(), timer.measured()
    facts["is_metered"] = measured["is_metered"]
    return {
        "readings": array("d", [ns / (1e9 * inner) for ns in elapsed_ns]),
        "used_ns": array("d", measured["used_ns"]),
        **{name: array("d", chain(*measured[name])) for name in ("segments", "references")},
    }


def _calls_of(func: Any, task: dict[str, Any], timer: SegmentTimer, facts: dict[str, Any]) -> Calls:
    """Return what times a function after its first call, or the steps of a generator."""
    inner_func = getattr(func, "func", func)
    code = getattr(inner_func, "__code__", None) or getattr(inner_func.__call__, "__code__", None)
    flags, now, carry_out = getattr(code, "co_flags", 0), time.perf_counter_ns, None
    if flags & _GENERATOR:
        steps = iter(func())
        return Calls(lambda timing: time_steps(steps, timing), now, timer)
    if flags & _COROUTINE:
        import asyncio

        carry_out = asyncio.new_event_loop().run_until_complete
    look, returned = carry_out is None, list[object]()

    def take(timing: Timing) -> None:
        call = (lambda: returned.append(func())) if look else func
        loop_of(length_hint(timing[4][0]), carry_out)(call, timing)

    calls = Calls(take, now, timer, task["inner"] or 0)
    calls.enough_ns = task["enough_ns"]
    facts["first_call_s"] = calls.first(task["seconds_ns"] / 1e9) / 1e9
    look = False
    if any(hasattr(type(value), "__await__") and not is_done(value) for value in returned):
        raise Refused(
            f"{task['target']} returned an awaitable: nothing awaits it; name a coroutine "
            "function, which is awaited"
        )
    returned.clear()
    if calls.kept_ns:
        _confirm_first(calls, task)
    return calls


def _confirm_first(calls: Calls, task: dict[str, Any]) -> None:
    """Let a second call decide whether the first one is a reading: it takes about as long.

    If it takes less than half, the time of the round begins again.
    """
    (first_ns,) = calls.kept_ns
    calls.inner = 1
    if task["readings"] < 2 or first_ns > _ONCE * task["seconds_ns"]:
        return
    calls.kept_ns += calls.time(1, 1)
    if first_ns > _APART * calls.kept_ns[1]:
        calls.kept_ns.clear()
        calls.inner = task["inner"] or 0
        calls.forget(0, first_ns)
        task["until_ns"] = min(task["last_ns"], calls.now_ns() + task["longest_ns"])


def _open_or_none(path: str) -> int | None:
    """Open a file of the kernel, if it has that."""
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None


def _meter() -> Callable[[], int] | None:
    """Return what says how long this thread waited for a processor; None if unknown."""
    file = _open_or_none("/proc/thread-self/schedstat")
    try:
        if file is None or not any(map(int, os.pread(file, 64, 0).split())):
            return None
    except (OSError, ValueError):
        return None

    def delay_ns() -> int:
        return int(os.pread(file, 64, 0).split(None, 2)[1])

    return delay_ns


def _peak_memory() -> int | None:
    """Return the most bytes that this program ever had in memory.

    Not by `resource`: a child starts with its parent's peak there, on Linux.
    """
    try:
        with open("/proc/self/status", "rb") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(b"VmHWM:"))
    except (OSError, ValueError, StopIteration):
        return None


if __name__ == "__main__":
    # What started this wrote it, as a literal; to import json would be half of the start.
    main(time.perf_counter_ns(), eval(sys.argv[1]))  # noqa: S307
