"""Segments of a Python program, recorded while it runs."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from benchrigor.errors import InvalidInput
from benchrigor.instrument.segment_profiles.segment_columns import RESERVED
from benchrigor.instrument.segment_profiles.segment_inputs import path_problem, text_of
from benchrigor.instrument.segment_profiles.thread_recording import Recording
from benchrigor.model import SegmentProfile
from benchrigor.stats import profile_interference

if TYPE_CHECKING:
    from benchrigor.model import Interference

__all__ = ["Segments", "segments"]

_T = TypeVar("_T")
_P = ParamSpec("_P")


def segments(
    path: str | Path | None = None,
    *,
    program: str | None = None,
    run: str = "",
    process: int = 0,
    processes: int = 1,
    bins: int | None = 256,
) -> Segments:
    """Record the segments of a program, to tell how far its run can be trusted.

    Of each segment are recorded: wall time; what was computed (the amount of work where it is
    given for all, else instructions where the processor counts them, else the thread's processor
    time); what else it did (label, files opened and closed, reads and writes and their bytes,
    garbage collections); what it lost (waiting for a processor, a throttled control group, a
    stolen processor); and, as evidence, context switches and page faults.

    Parameters
    ----------
    path
        CSV file to write the profile to at the end, also when the program raised. Without any
        segment none is written, and a warning says so unless the program raised.
    program
        What runs, for people; the name of the script where nothing is said.
    run, process, processes
        Which process of which run this is, for profiles that will be merged.
    bins
        How many distinct values are kept of each counter; None keeps all.

    Returns
    -------
    Segments
        To be entered with ``with``.

    Raises
    ------
    InvalidInput
        Naming every parameter that makes no sense.

    Notes
    -----
    Reads and opens are counted for the thread that entered, closes and garbage collections for the
    process. What the system does not tell is left out, and a fact of the profile says why. What
    other threads and child processes lose is not measured; the fact "other_cpu_s" tells how much
    processor time they used, beside "thread_cpu_s" of the thread that entered.

    The first recorder of a process installs an audit hook to see files being opened. Python has no
    way to remove it; while nobody records it costs a tenth of a microsecond per audited event.

    Measured on Linux 6.18 in a virtual machine: 9 microseconds for a `Segments.cut`, 18 for a
    `Segments.segment`; two to four times as much where other work has taken the caches meanwhile.

    Examples
    --------
    >>> with segments(program="solver") as run:
    ...     for size in [10_000, 20_000, 10_000]:
    ...         with run.segment("sum", work=size):
    ...             _ = sum(range(size))
    >>> run.profile.n, run.profile.computation["work"]
    (3, array([10000., 20000., 10000.]))
    """
    name = Path(sys.argv[0]).name if program is None and sys.argv else program or ""
    return Segments(
        Recording(bins=bins), path, program=name, run=run, process=process, processes=processes
    )


class Segments:
    """Recorder of one thread's segments; made by `segments`, entered with ``with``.

    Segments do not nest, and belong to the thread that entered: other threads record with
    recorders of their own. A segment around an ``await`` would measure whatever else ran
    meanwhile: do not put one there.

    A segment that is left by an exception or by ``break`` is recorded, and is told from complete
    ones by the nominal "unfinished".

    `cut` reads the counters once a segment, `segment` and what builds upon it twice. The time that
    this takes is in no segment; the fact "recording_cost_s" has it, with what others took of it.

    Parameters
    ----------
    recording
        Does the work.
    path, program, run, process, processes
        As `segments` has them.

    Raises
    ------
    InvalidInput
        Naming every parameter that makes no sense.
    """

    def __init__(
        self,
        recording: Recording,
        path: str | Path | None = None,
        *,
        program: str = "",
        run: str = "",
        process: int = 0,
        processes: int = 1,
    ) -> None:
        problems = [] if path is None else [path_problem(path)]
        for name, text in (("program", program), ("run", run)):
            try:
                text_of(text, name)
            except InvalidInput as error:
                problems.extend(error.problems)
        problems.append(_process_problem(process, processes))
        if any(problems):
            raise InvalidInput([each for each in problems if each])
        self._path = path
        self._recording = recording
        self._about: dict[str, Any] = {
            "program": program,
            "run": run,
            "process": int(process),
            "processes": int(processes),
        }

    def __enter__(self) -> Self:
        self._recording.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._recording.stop()
            self._write(warn=error is None)
        except Exception as failed:
            if error is None:
                raise
            # The program's own error is what matters.
            error.add_note(f"The segment profile could not be written: {failed}")

    def _write(self, *, warn: bool) -> None:
        if self._path is None:
            return
        if len(self._recording):
            self.profile.save(self._path)
        elif warn:
            warnings.warn(
                f"no segment was recorded, so {self._path} was not written",
                RuntimeWarning,
                stacklevel=3,
            )

    def segment(self, label: str = "", *, work: float | None = None) -> _Segment:
        """Return a context manager; what runs inside of it is one segment.

        Parameters
        ----------
        label
            What the segment does, so that it is compared with its like only.
        work
            How much it does of it, in any unit.

        Raises
        ------
        InvalidInput
            When label or work make no sense, inside of another segment, or in another thread.
        """
        return _Segment(self._recording, *self._recording.check(label, work))

    def cut(self, label: str = "", *, work: float | None = None) -> None:
        """End a segment here, and begin the next.

        The first begins where the recorder was entered. What lies between the last cut and the end
        belongs to no segment.

        Parameters
        ----------
        label, work
            Of the segment that ends, as for `segment`.

        Raises
        ------
        InvalidInput
            As for `segment`.
        """
        recording = self._recording
        ended_ns = recording.now_ns()
        recording.finish(ended_ns, *recording.check(label, work))

    def over(self, iterable: Iterable[_T], label: str = "") -> Iterator[_T]:
        """Iterate; each run through the loop's body is a segment, fetching the next item is not.

        Examples
        --------
        >>> with segments() as run:
        ...     for step in run.over(range(3)):
        ...         _ = step**2
        >>> run.profile.n
        3
        """
        for item in iterable:
            with self.segment(label):
                yield item

    def each(self, func: Callable[_P, _T]) -> Callable[_P, _T]:
        """Decorate a function, or whatever else can be called; each call is a segment.

        It is labelled with the name of the function, of what a `functools.partial` calls, or of
        the class of another object.

        Raises
        ------
        InvalidInput
            When it cannot be called, or when calling it does not run it: coroutine and generator
            functions.
        """
        if not callable(func):
            raise InvalidInput(f"func is {func!r}, expected a function")
        name = _name_of(func)
        if _runs_later(func) or _runs_later(type(func).__call__):
            raise InvalidInput(f"{name} does not run when called, expected a function")

        @functools.wraps(func)
        def segmented(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            with self.segment(name):
                return func(*args, **kwargs)

        return segmented

    def count(self, name: str, amount: float = 1) -> None:
        """Count something that the segment under way does, as a nominal feature of it.

        Segments that are told nothing have 0. What is counted between two segments is forgotten.

        Parameters
        ----------
        name
            Of the feature.
        amount
            Is added.

        Raises
        ------
        InvalidInput
            When name or amount make no sense, or the recorder counts something of that name itself.
        """
        name = text_of(name, "name")
        if name in RESERVED:
            raise InvalidInput(f"name is {name!r}, which is counted already, expected another")
        if not name or name != name.strip():
            raise InvalidInput(f"name is {name!r}, expected one without space around it")
        self._recording.count(name, amount)

    def paused(self) -> _Pause:
        """Return a context manager; what is computed or waited for inside of it does not count.

        For communication: a process that waits for others may spin, and what it computes then says
        nothing about its work. Wall time goes on.
        """
        return _Pause(self._recording)

    @property
    def recording(self) -> bool:
        """Whether the calling thread is the one that is being recorded now."""
        return self._recording.running

    @property
    def profile(self) -> SegmentProfile:
        """The segments so far.

        Raises
        ------
        InvalidInput
            When there is none.
        """
        return SegmentProfile(**self._recording.profile(), **self._about)

    def interference(self, reference: SegmentProfile | None = None) -> Interference:
        """Estimate from `profile` how far the run can be trusted.

        Parameters
        ----------
        reference
            Profile of an undisturbed run of the same program, to tell continuous interference by.

        Raises
        ------
        InvalidInput
            When there is no segment.
        """
        return profile_interference(self.profile, reference=reference)


def _process_problem(process: Any, processes: Any) -> str:
    for name, value in (("process", process), ("processes", processes)):
        if not isinstance(value, Integral) or isinstance(value, bool):
            return f"{name} is {value!r}, expected a whole number"
    first, count = int(process), int(processes)
    if 0 <= first < count:
        return ""
    return f"process is {first} of {count}, expected 0 to one less than those"


def _runs_later(func: object) -> bool:
    return (
        inspect.iscoroutinefunction(func)
        or inspect.isgeneratorfunction(func)
        or inspect.isasyncgenfunction(func)
    )


def _name_of(func: object) -> str:
    while isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__name__", type(func).__name__))


class _Segment:
    """One segment, as ``with`` enters and leaves it."""

    __slots__ = ("_label", "_recording", "_work")

    def __init__(self, recording: Recording, label: str, work: float | None) -> None:
        self._recording = recording
        self._label = label
        self._work = work

    def __enter__(self) -> None:
        self._recording.begin()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        recording = self._recording
        recording.finish(recording.now_ns(), self._label, self._work, unfinished=kind is not None)


class _Pause:
    """A stretch of a segment that does not count."""

    __slots__ = ("_recording",)

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __enter__(self) -> None:
        self._recording.pause()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._recording.proceed()
