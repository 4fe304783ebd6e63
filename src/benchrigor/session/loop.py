"""The loop of sessions and comparisons: ask for a turn, carry it out, pass its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from benchrigor.clocks import WallClock, check_room
from benchrigor.errors import (
    BenchrigorError,
    ClockFailed,
    DetectorFailed,
    InvalidInput,
    WorkloadFailed,
    failed,
    used_up,
)
from benchrigor.machine.delays import HostDelay, HostDelays, attribute_delay
from benchrigor.model import Options, Progress, Round, RoundPlan, Status, StopReason, Turn
from benchrigor.model.machine import OF_MACHINE
from benchrigor.protocols import Clock, Workload
from benchrigor.session.engine import Engine
from benchrigor.session.outcomes import failed_hook, failed_workload
from benchrigor.session.red_rounds import segments_of
from benchrigor.workloads import RoundRecorder
from benchrigor.workloads.processes.own_signals import end_copy, go_on, measuring

if TYPE_CHECKING:
    from benchrigor.machine.status_readers import StatusReader


# Made between measurements: a signal that came within its callbacks from C would be lost.
_BLAS = ThreadpoolController()
NAP_NS = 200_000_000  # a request to stop is obeyed that soon while a session waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Plain callables around the rounds; one that raises ends the session."""

    before_round: Callable[[Any], object] | None = None
    after_round: Callable[[Any], object] | None = None
    progress: Callable[[Progress], object] | None = None


def drive(
    engine: Engine[Any],
    perform: Callable[[Any], Callable[[int], Any] | None],
    clock: Clock,
    hooks: Hooks,
    *,
    ask: Callable[[], Turn | RoundPlan | None] | None = None,
    tell: Callable[[Any], object] | None = None,
    ready: Callable[[], int] = lambda: 0,
) -> Iterator[None]:
    """Carry out turns until the engine stops, the workload is exhausted, or a hook fails.

    It yields after each turn, so that others may take theirs.

    ``perform`` carries out a turn. It returns a function that makes the result from its wall time
    in nanoseconds, or None if the workload is exhausted. ``ask`` and ``tell`` are those of a
    session, whose turns are plans; None for the engine's own. ``ready`` is called before every
    turn; the nanoseconds that it returns belong to no round, as when others took theirs.
    """
    ask, tell, pid = ask or engine.ask, tell or engine.tell, os.getpid()
    engine.min_seconds = least_span_s(clock, engine.goal.options)
    since = clock.now_ns()
    while (turn := ask()) is not None:
        since += ready()
        if not call_hook(engine, "before_round", hooks.before_round, turn):
            return
        finish = perform(turn)
        go_on(pid)
        if finish is None:
            engine.end(StopReason.EXHAUSTED)
            return
        # A budget is wall time, with hooks, analysis and journal.
        now = clock.now_ns()
        if now < since:
            raise ClockFailed(
                f"the clock went backwards by {since - now} ns in round {engine.told}"
            )
        finished = finish(now - since)
        since = now
        check_room()
        # Helper threads of numpy would keep a processor busy for a tenth of a second of the next.
        with _BLAS.limit(limits=1, user_api="blas"):
            tell(finished)
        if engine.progress is not None and engine.progress.fresh:
            engine.look_s = (clock.now_ns() - since) / 1e9
        if not call_hook(engine, "after_round", hooks.after_round, finished):
            return
        if not call_hook(engine, "progress", hooks.progress, engine.progress):
            return
        yield


def call_hook(
    engine: Engine[Any], name: str, hook: Callable[[Any], object] | None, argument: object
) -> bool:
    """Call a hook; if it raises, end the session with a Notice and return False."""
    try:
        if hook is not None:
            hook(argument)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # any error of a user's hook is reported
        engine.end(StopReason.HOOK_FAILED, failed_hook(name, error))
        return False
    return True


def least_span_s(clock: Clock, options: Options) -> float:
    """Return the minimum time of all rounds: 0 in simulated time, which no machine disturbs."""
    return options.min_seconds if isinstance(clock, WallClock) else 0.0


@contextmanager
def ended_by_errors(engine: Engine[Any], record: Callable[[], object]) -> Iterator[None]:
    """End the engine if an error is raised inside, and give it the record of the rounds."""
    try:
        yield
    except (BenchrigorError, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt):
            engine.end(StopReason.INTERRUPTED)
        elif isinstance(error, WorkloadFailed | ClockFailed | InvalidInput):
            engine.end(StopReason.WORKLOAD_FAILED, failed_workload(error))
        elif isinstance(error, DetectorFailed):
            engine.end(StopReason.DETECTOR_FAILED)
        error.record = record()  # type: ignore[union-attr]  # an interrupt takes it too
        raise


def performer(
    workload: Workload,
    clock: Clock,
    host: HostDelays | None = None,
    told: Callable[[Round], Round] = lambda finished: finished,
) -> Callable[[RoundPlan], Callable[[int], Round] | None]:
    """Return a function that carries out plans with a workload, for `drive`.

    ``told`` adds further facts to a finished round.
    """

    def perform(plan: RoundPlan) -> Callable[[int], Round] | None:
        recorder, pid = RoundRecorder(), os.getpid()
        if host is not None:
            host.read()  # delays between rounds count for no round
        began = clock.now_ns() if plan.work is not None else None
        try:
            with measuring():
                workload.run(plan, recorder)
        except StopIteration:
            return None
        except (BenchrigorError, KeyboardInterrupt):
            raise
        except BaseException as error:
            end_copy(pid)
            is_waiting = isinstance(error, BlockingIOError)  # for a socket with nothing to read
            if not is_waiting and (failure := used_up(error)) is not None:
                raise failure from None  # our own frames, or those of a library that we called
            raise failed(f"round {plan.index}: the workload", error) from error
        ran_ns = None if began is None else clock.now_ns() - began

        def finish(elapsed_ns: int) -> Round:
            finished = recorder.finish(plan, elapsed_ns, ran_ns=ran_ns)
            if host is not None:
                finished = add_host_delays(finished, host.read())
            return told(finished)

        return finish

    return perform


def add_host_delays(finished: Round, host: HostDelay) -> Round:
    """Add the delays that the host counted during a round.

    `machine.delays.attribute_delay` divides them among the segments.
    """
    if finished.delays is None or not any(host.delay_ns.values()):
        return finished
    seconds = dict(finished.delays.seconds)
    waited_s = seconds["run queue"]
    took_s = segments_of(finished).duration_s
    if took_s.size != waited_s.size:  # its readings are not the measured ones
        return finished
    took_ns, waited_ns = (
        np.rint(column * 1e9).astype(np.int64).tolist() for column in (took_s, waited_s)
    )
    for source, part_ns in attribute_delay(host, took_ns, waited_ns).items():
        seconds[source] = np.array(part_ns) / 1e9
    if "throttled" in seconds:
        seconds["run queue"] = np.maximum(waited_s - seconds["throttled"], 0.0)
    return replace(finished, delays=replace(finished.delays, seconds=seconds))


_MOST_SHARE = 0.01  # of the time since the last reading, that a reading may cost
_LEAST_BUDGET_S = 2.0  # of shorter sessions loading psutil, some 15 ms, would be more than that


def watch_for(options: Options, clock: Clock) -> StatusWatch | None:
    """Return a watch of the machine; None for simulated time and sessions too short for one."""
    if not isinstance(clock, WallClock) or options.budget_s < _LEAST_BUDGET_S:
        return None
    from benchrigor.machine.status_readers import StatusReader  # noqa: PLC0415  # loads psutil

    return StatusWatch(clock, StatusReader(short=True, clock=clock))


class StatusWatch:
    """Reads the status before and after rounds, at a cost of up to 1% of the time.

    It reads for the first time when it is made, so that modules are loaded before round 0.
    """

    def __init__(self, clock: Clock, reader: StatusReader) -> None:
        self._clock, self._reader = clock, reader
        self._cost_ns = 0
        self._read_ns = clock.now_ns()
        self._look()

    def before(self) -> int:
        """Read the status; return the nanoseconds that passed."""
        began_ns = self._clock.now_ns()
        self._look()
        return self._clock.now_ns() - began_ns

    def after(self, finished: Round) -> Round:
        """Add the status to the facts of a round: known values, by their short names."""
        if (status := self._look()) is None:
            return finished
        from benchrigor.machine.status_readers import SHORT_NAMES  # noqa: PLC0415  # psutil

        told, names = status.to_dict(), ("span_s", *SHORT_NAMES)
        known = {f"{OF_MACHINE}{name}": told[name] for name in names if told.get(name) is not None}
        return replace(finished, facts={**finished.facts, **known})

    def _look(self) -> Status | None:
        """Read the status, unless that would cost too much."""
        began_ns = self._clock.now_ns()
        if self._cost_ns > _MOST_SHARE * (began_ns - self._read_ns):
            return None
        status = self._reader.read()
        self._read_ns = self._clock.now_ns()
        self._cost_ns = self._read_ns - began_ns
        return status
