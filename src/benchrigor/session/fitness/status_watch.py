"""The status of the machine around the rounds of a session, and what its alarms lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from benchrigor.clocks import WallClock
from benchrigor.model import Alarm, Options, Progress, Round, Status
from benchrigor.model.machine import OF_MACHINE
from benchrigor.model.readings import Facts
from benchrigor.protocols import Clock
from benchrigor.session.conditions.standing_alarms import MOST_WAIT_S, facts_of_alarms
from benchrigor.session.engine import Engine
from benchrigor.session.loop import NAP_NS, call_hook

if TYPE_CHECKING:
    from benchrigor.machine.alarms import Alarms
    from benchrigor.machine.states.status_readers import StatusReader
    from benchrigor.machine.thresholds import Threshold

_MOST_SHARE = 0.01  # of the time since the last reading, that a reading may cost
_LEAST_BUDGET_S = 2.0  # of shorter sessions loading psutil, some 15 ms, would be more than that
_OF_PROGRAMS = {"under-used"}  # alarms that a function in one thread raises wherever it runs


def watch_for(options: Options, clock: Clock, alarms: Alarms | None) -> StatusWatch | None:
    """Return a watch of the machine; None for simulated time and sessions too short for one."""
    if not isinstance(clock, WallClock):
        return None
    is_asked = options.state or options.on_alarm is not None or alarms is not None
    if options.budget_s < _LEAST_BUDGET_S and not is_asked:
        return None
    from benchrigor.machine.states.status_readers import StatusReader  # noqa: PLC0415  # loads psutil

    if alarms is None and options.on_alarm is not None:
        from benchrigor.machine.alarms import Alarms  # noqa: PLC0415  # for who asks

        alarms = Alarms(of_machines())
    reader = StatusReader(short=not options.state and alarms is None, clock=clock)
    return StatusWatch(options, clock, reader, alarms)


def of_machines() -> list[Threshold]:
    """Return the thresholds of alarms about the machine, not about programs on it."""
    from benchrigor.machine.thresholds import read_thresholds  # noqa: PLC0415  # for who asks

    return [threshold for threshold in read_thresholds() if threshold.code not in _OF_PROGRAMS]


class StatusWatch:
    """Reads the status before and after rounds, at a cost of up to 1% of the time.

    It reads for the first time when it is made, so that modules are loaded before round 0.
    """

    def __init__(
        self, options: Options, clock: Clock, reader: StatusReader, alarms: Alarms | None = None
    ) -> None:
        self._options, self._clock, self._reader = options, clock, reader
        self._alarms = alarms
        self._stood: tuple[Alarm, ...] = ()  # before the round under way
        self._waited_ns = self._cost_ns = 0
        self._read_ns = clock.now_ns()
        self._look()

    def before(self, session: Engine, progress: Callable[[Progress], object] | None) -> int:
        """Read the status, and wait while alarms stand, if the session wants that.

        Return the nanoseconds that passed.
        """
        began_ns = now_ns = self._clock.now_ns()
        self._look()
        while session.heed(self._standing(), self._waited_ns / 1e9):
            left_s = MOST_WAIT_S - self._waited_ns / 1e9
            waiting = session.waiting(left_s, self._standing())
            if not call_hook(session, "progress", progress, waiting):
                break
            self._clock.sleep_ns(NAP_NS)
            self._look()
            before_ns, now_ns = now_ns, self._clock.now_ns()
            self._waited_ns += now_ns - before_ns
        self._stood = self._standing()
        return self._clock.now_ns() - began_ns

    def after(self, finished: Round) -> Round:
        """Add to the facts of a round the status of the machine, and the alarms that stood."""
        status = self._look()
        known = {} if status is None else facts_of_status(status, whole=self._options.state)
        alarms = facts_of_alarms((*self._stood, *self._standing()))
        facts = {**finished.facts, **known, **alarms}
        return replace(finished, facts=facts) if known or alarms else finished

    def _look(self) -> Status | None:
        """Read the status and pass it to the alarms, unless that would cost too much."""
        began_ns = self._clock.now_ns()
        if self._cost_ns > _MOST_SHARE * (began_ns - self._read_ns):
            return None
        status = self._reader.read()
        if self._alarms is not None:
            self._alarms.tell(status, began_ns / 1e9)
        self._read_ns = self._clock.now_ns()
        self._cost_ns = self._read_ns - began_ns
        return status

    def _standing(self) -> tuple[Alarm, ...]:
        if self._alarms is None or self._options.on_alarm is None:
            return ()
        return self._alarms.standing()


def facts_of_status(status: Status, *, whole: bool) -> Facts:
    """Return the facts that a status gives a round: all of them, or the known short names."""
    from benchrigor.machine.states.status_readers import SHORT_NAMES  # noqa: PLC0415  # psutil

    told = status.to_dict()
    if not whole:
        short = ("span_s", *SHORT_NAMES)
        told = {name: told[name] for name in short if told.get(name) is not None}
    return {f"{OF_MACHINE}{name}": value for name, value in told.items()}
