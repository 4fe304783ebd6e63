"""WHERE TO PLUG IN: all extension points of the core on one page.

Each has a law suite in ``tests/laws`` that every implementation passes; what touches the world
(clocks, workloads, stores) has a public fake in `benchrigor.testing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from benchrigor.lazy_names import lazy_names

if TYPE_CHECKING:
    import numpy.typing as npt

    from benchrigor.model import (
        ChangePoints,
        Decision,
        Delays,
        Headway,
        Notice,
        Progress,
        References,
        Round,
        RoundPlan,
        RunRecord,
        Sample,
        Turn,
    )

__getattr__, _ = lazy_names(__name__, {"benchrigor.workbench.data": "LoadGenerator"})


@runtime_checkable
class Clock(Protocol):
    """The only source of time. Laws: it never goes back; sleeping advances it."""

    @property
    def resolution_ns(self) -> int:
        """Smallest step that the clock shows, in nanoseconds, 1 or more."""

    def now_ns(self) -> int:
        """Return nanoseconds since some fixed moment."""

    def sleep_ns(self, duration_ns: int) -> None:
        """Wait for at least ``duration_ns``."""


@runtime_checkable
class DelayMeter(Protocol):
    """Measures how long threads wait for processors.

    Laws: it never goes back; no exception escapes.
    """

    def delay_ns(self) -> int:
        """Return nanoseconds that the calling thread waited for a processor."""

    def wait_for(self, pid: int) -> Callable[[], tuple[int, int]]:
        """Measure a child that was just started, and its descendants, until it has ended.

        The exit status of the child is left to the caller. Before collecting it, call the returned
        function for the nanoseconds of wall time lost to waiting for processors, and those of
        processor time with a known loss. After the call its attribute ``together_ns``, if any, is
        the extra time that all threads waited compared to one at a time.
        """


@runtime_checkable
class Recorder(Protocol):
    """Receives the results of a round, in chunks. Laws: everything is kept, order is kept."""

    def unit_readings(self, metric: str, values: npt.ArrayLike) -> None:
        """Add readings of successive units of work, shape (n,), in the metric's unit."""

    def reading(self, metric: str, value: float, *, weight: float | None = None) -> None:
        """Give the one reading of the whole round; ``weight`` is its weight in the mean."""

    def fact(self, name: str, value: str | float | bool | None) -> None:
        """State how the workload measured."""

    def delays(self, values: Delays | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        """Give measured delays as `Round` has them; plain seconds of readings also in chunks."""

    def starts_ns(self, values: npt.ArrayLike) -> None:
        """Add the start times of further unit readings, in nanoseconds of a clock."""

    def references(self, values: References | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        """Give times of fixed work as `Round` has them; plain seconds also in chunks."""

    def notice(self, notice: Notice) -> None:
        """Add a notice for the reader of the numbers."""

    def cut(self) -> None:
        """State that the round was ended before its work was done."""


@runtime_checkable
class Workload(Protocol):
    """Something that can be run for a round. Law: work accounted equals work planned, unless cut.

    A workload that has no more to give raises `StopIteration` before it records anything. One that
    can be interrupted ends when ``plan.seconds`` are up, and says so with ``recorder.cut()``. One
    with fresh processes as rounds has an attribute ``fresh_process = True``.
    """

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Carry out ``plan`` and hand its readings to ``recorder``."""


@runtime_checkable
class LastingWorkload(Workload, Protocol):
    """A workload that holds something from round to round, such as a process.

    Laws: `close` leaves everything as it was, however the session ended. Closing again, or before
    any round, has no effect.
    """

    def close(self) -> None:
        """Let go of all that it holds: the session is over."""


@runtime_checkable
class PacedWorkload(Workload, Protocol):
    """A workload that can time fixed work in turn with its readings, which shows the pace."""

    def take_turns(self) -> None:
        """Do so from the next round on."""


@runtime_checkable
class Detector(Protocol):
    """Finds change points. Laws: the same for a*x + b (a > 0); deterministic."""

    def __call__(self, values: npt.ArrayLike) -> ChangePoints:
        """Return the change points of a series of shape (n,)."""


@runtime_checkable
class StopRule(Protocol):
    """Decides whether a session ends. Law: monotone in budget; the first rule's answer counts.

    It is called once or more after every round, and must depend on the progress alone.
    """

    def __call__(self, progress: Progress) -> Decision | None:
        """Return a decision, or None to leave it to the next rule."""


@runtime_checkable
class Schedule(Protocol):
    """Chooses who is measured next, and how much.

    Laws: the same states give the same turns; all that are compared have as many; it sees
    durations and widths, never a ratio, so its choice does not depend on who is faster.
    """

    def next(self, state: Mapping[str, Headway]) -> Turn | None:
        """Return the next turn of those under way, by name, or None."""


@runtime_checkable
class Planner(Protocol):
    """Chooses what to run, one plan after the other, such as `workbench.PeakSearch`.

    Laws: plans have different identities, also while others are pending. A second outcome for a
    plan, or an outcome for an unknown plan, is refused without effect. Equal outcomes lead to equal
    plans. The search ends.
    """

    def ask(self) -> Any | None:
        """Return the next plan, or None."""

    def tell(self, plan: Any, outcome: Any, /) -> None:
        """Add the outcome of a plan."""

    def result(self) -> Any:
        """Return the result so far."""


@runtime_checkable
class Sampler(Protocol):
    """Samples a part of a machine's state: `instrument.StatusReader` takes any.

    Laws: no exception escapes; an unknown value is a `Sample` with the reason. The caller times it,
    so its cost is known.
    """

    def describe(self) -> str:
        """Return the subject of the samples in a word or two; always the same."""

    def sample(self) -> Iterable[Sample]:
        """Read that part of the state now."""


@runtime_checkable
class Store(Protocol):
    """Keeps runs. Laws: append only; load gives back the same; survives a kill."""

    def begin(self, header: RunRecord) -> str:
        """Open a run described by a record without rounds; return its id."""

    def append(self, run_id: str, finished: Round) -> None:
        """Store a finished round durably, before the next one starts."""

    def finish(self, run_id: str, record: RunRecord) -> None:
        """Store the result of a run."""

    def runs(self, query: str = "") -> Sequence[dict[str, Any]]:
        """List the runs with ``query`` in their id or name, newest first."""

    def load(self, run_id: str) -> RunRecord:
        """Return the whole record of a run, finished or not, its rounds by index."""
