"""The status of the machine around the rounds of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchrigor.clocks import WallClock
from benchrigor.model import Options, Round, Status
from benchrigor.model.machine import OF_MACHINE
from benchrigor.protocols import Clock

if TYPE_CHECKING:
    from benchrigor.machine.states.status_readers import StatusReader

_MOST_SHARE = 0.01  # of the time since the last reading, that a reading may cost
_LEAST_BUDGET_S = 2.0  # of shorter sessions loading psutil, some 15 ms, would be more than that


def watch_for(options: Options, clock: Clock) -> StatusWatch | None:
    """Return a watch of the machine; None for simulated time and sessions too short for one."""
    if not isinstance(clock, WallClock) or options.budget_s < _LEAST_BUDGET_S:
        return None
    from benchrigor.machine.states.status_readers import StatusReader  # noqa: PLC0415  # loads psutil

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
        from benchrigor.machine.states.status_readers import SHORT_NAMES  # noqa: PLC0415  # psutil

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
