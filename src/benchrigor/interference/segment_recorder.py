"""The recorder of a program's segments, and the ways to mark their boundaries."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.interference.thread_recording import RESERVED, Recording
from benchrigor.model import SegmentProfile
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.series import LARGEST
from benchrigor.safe_text import escaped
from benchrigor.stats import profile_interference

if TYPE_CHECKING:
    from benchrigor.model import Interference


_T = TypeVar("_T")
_P = ParamSpec("_P")


def segments(
    path: str | Path | None = None,
    *,
    program: str | None = None,
    run: str = "",
    process: int = 0,
    processes: int = 1,
) -> Segments:
    """Record the segments of a program, to estimate its interference.

    A segment records its wall time and these counters, quantised to 256 values:

    - computation: the amount of work if all segments give it, else floating-point operations if
      they are a twentieth of the instructions, else instructions; without these counters the
      thread's processor time, which contention raises;
    - other activity: label, files opened and closed, reads, writes and bytes, garbage collections;
    - measured delay (run delay, throttling, steal); as evidence, context switches and page faults.

    Parameters
    ----------
    path
        CSV file to write the profile to at the end, also when the program raised. Without any
        segment none is written, and a warning says so unless the program raised.
    program
        Name of the program, for people; None: the name of the script.
    run, process, processes
        Identity of the run, index and number of its processes, for profiles that will be merged.

    Raises
    ------
    InvalidInput
        Naming every parameter that is out of range, or a path that cannot be written to.

    Notes
    -----
    Features follow Shah et al. (Euro-Par 2018, section 2). Closes and garbage collections count for
    the process, other counters for the thread that entered. If a counter is missing, a fact of the
    profile says why. The audit hook that counts opened files stays until the process ends.
    A `Segments.cut` takes 9 microseconds, a `Segments.segment` 18 (Linux 6.18), two to four times
    as much with cold caches.

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
    refuse(
        [] if path is None else _wrong_path(path),
        _wrong_text(name, "program"),
        _wrong_text(run, "run"),
        _wrong_process(process, processes),
    )
    place = {"process": int(process), "processes": int(processes)}
    return Segments(path, {"program": name, "run": run, **place})


class Segments:
    """Recorder of one thread's segments; made by `segments`, entered with ``with``.

    Segments do not nest, and belong to the thread that entered: other threads record with
    their own recorders. Do not put a segment around an ``await``: it would also measure the other
    tasks that run meanwhile. A segment that is left by an exception or by ``break`` has the
    nominal feature "unfinished". The time of recording is in no segment, but in the fact
    "recording_cost_s".
    """

    def __init__(self, path: str | Path | None, about: dict[str, Any]) -> None:
        self._path, self._about = path, about
        self._recording = Recording()

    def __enter__(self) -> Self:
        self._recording.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._recording.stop()
            if self._path is not None and len(self._recording):
                self.profile.save(self._path)
        except Exception as failed:
            if error is None:
                raise
            # The program's own error is what matters.
            error.add_note(escaped(f"The segment profile could not be written: {failed}"))
        if self._path is not None and not len(self._recording) and error is None:
            message = f"no segment was recorded, so {self._path} was not written"
            warnings.warn(escaped(message), RuntimeWarning, stacklevel=2)

    def segment(self, label: str = "", *, work: float | None = None) -> _Segment:
        """Return a context manager for one segment.

        Parameters
        ----------
        label
            Name of the activity: only segments with the same label are compared.
        work
            Amount of work, in any unit.

        Raises
        ------
        InvalidInput
            When label or work are out of range, inside of another segment, or in another thread.
        """
        self._recording.check_place()
        return _Segment(self._recording, *_description(label, work))

    def cut(self, label: str = "", *, work: float | None = None) -> None:
        """End a segment with its label and work, and begin the next.

        The first segment begins when the recorder is entered. Code between the last cut and the end
        is not part of a segment.
        """
        recording = self._recording
        ended_ns = recording.now_ns()
        recording.check_place()
        recording.finish(ended_ns, *_description(label, work))

    def over(self, iterable: Iterable[_T], label: str = "") -> Iterator[_T]:
        """Iterate; a run through the loop's body is a segment, without fetching the next item.

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
        """Decorate a function or another callable: its calls are segments labelled with its name.

        Coroutine and generator functions are refused: calling them does not run them.
        """
        if not callable(func):
            raise InvalidInput(f"func is {func!r}, expected a function")
        name = _name_of(func)
        if _runs_later(func) or _runs_later(type(func).__call__):
            raise InvalidInput(f"{name} does not run when called, expected a function")

        @functools.wraps(func)
        def run_segment(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            with self.segment(name):
                return func(*args, **kwargs)

        return run_segment

    def count(self, name: str, amount: float = 1) -> None:
        """Add to a nominal feature of the current segment; it is 0 in all others.

        Counts between two segments are dropped.
        """
        name = _text(name, "name")
        if name in RESERVED:
            raise InvalidInput(f"name is {name!r}, which is counted already, expected another")
        if not name or name != name.strip():
            raise InvalidInput(f"name is {name!r}, expected one without space around it")
        self._recording.count(name, _number(amount, "amount"))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Return a context manager for code that counts neither as computation nor as delay.

        For communication: a process that waits for others may spin, which is not its work. The
        wall time counts.
        """
        self._recording.pause()
        try:
            yield
        finally:
            self._recording.proceed()

    @property
    def recording(self) -> bool:
        """Whether the calling thread is being recorded."""
        return self._recording.running

    @property
    def profile(self) -> SegmentProfile:
        """The segments so far; without any it raises InvalidInput."""
        return SegmentProfile(**self._recording.profile(), **self._about)

    def interference(self, reference: SegmentProfile | None = None) -> Interference:
        """Estimate the interference so far; a reference is an undisturbed run of the program."""
        return profile_interference(self.profile, reference=reference)


class _Segment:
    """The context of one segment."""

    __slots__ = ("_label", "_recording", "_work")

    def __init__(self, recording: Recording, label: str, work: float | None) -> None:
        self._recording, self._label, self._work = recording, label, work

    def __enter__(self) -> None:
        self._recording.begin()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        recording = self._recording
        recording.finish(recording.now_ns(), self._label, self._work, unfinished=kind is not None)


def _description(label: str, work: float | None) -> tuple[str, float | None]:
    """Return label and work as Python's own, or raise."""
    return _text(label, "label"), None if work is None else _number(work, "work")


def _number(value: Any, name: str) -> int | float:
    """Return a finite number as Python's own, or raise."""
    number: int | float | None = None
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # a fraction may be too large
            number = int(value) if isinstance(value, Integral) else float(value)
    if number is not None and abs(number) <= LARGEST:
        return number
    shown = "a whole number beyond 1e150" if isinstance(number, int) else repr(value)
    raise InvalidInput(f"{name} is {shown}, expected a finite number of at most 1e150")


def _text(value: object, name: str) -> str:
    """Return a string as Python's own, or raise."""
    refuse(_wrong_text(value, name))
    return str.__str__(value)


def _wrong_text(value: object, name: str) -> list[str]:
    """Return why no file can hold a string."""
    if not isinstance(value, str):
        return [f"{name} is {value!r}, expected a string"]
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError:
        found = f"{name} is {value!r}, which has half of a character (a surrogate)"
        return [f"{found}, expected text that UTF-8 can write"]
    return []


def _wrong_path(path: object) -> list[str]:
    """Return why no file can be written there, as far as is known."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        return [f"path is {path!r}, expected a str or Path that names a file"]
    if os.path.isdir(path):  # noqa: PTH112  # never raises, unlike pathlib's
        return [f"path is {path}, which is a folder, expected a file in it"]
    folder = os.path.dirname(path) or "."  # noqa: PTH120
    if not os.path.isdir(folder):  # noqa: PTH112
        return [f"path is {path}, expected one in a folder that exists"]
    if not os.access(folder, os.W_OK):
        return [f"path is {path}, expected one in a folder that can be written to"]
    return []


def _wrong_process(process: Any, processes: Any) -> list[str]:
    wrong = wrong_whole("processes", processes)
    return wrong or wrong_whole("process", process, least=0, most=processes - 1)


def _runs_later(func: object) -> bool:
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_kind(func) for is_kind in kinds)


def _name_of(func: object) -> str:
    while isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__name__", type(func).__name__))


@dataclass(frozen=True, slots=True)
class _Call:
    """Counts of a call; by volume, position and name of the buffer; if it ends a segment."""

    counts: list[str]
    buffers: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    cuts: bool = False


def _calls() -> dict[str, _Call]:
    """Return the calls of a communicator by name.

    Each has up to four: ``Send`` takes buffers, ``send`` pickles; ``Isend``, ``isend`` do not
    block.
    """
    sent, received = {"sent_bytes": (0, "buf")}, {"received_bytes": (0, "buf")}
    both = {"sent_bytes": (0, "sendbuf"), "received_bytes": (1, "recvbuf")}
    fourth = {**both, "received_bytes": (3, "recvbuf")}
    families: tuple[tuple[str, str, dict[str, tuple[int, str]], bool], ...] = (
        ("Send Bsend Rsend Ssend", "{}sends", sent, False),
        ("Recv", "{}receives", received, False),
        ("Sendrecv", "{}sends {}receives", fourth, False),
        ("Sendrecv_replace", "{}sends {}receives", sent | received, False),
        ("Bcast", "collectives_1_n", received, False),
        ("Scatter Scatterv", "collectives_1_n", both, False),
        ("Gather Gatherv Reduce", "collectives_n_1", both, False),
        ("Scan Exscan", "collectives_n_n", both, False),  # the first process does not wait
        ("Allgather Allgatherv Allreduce", "collectives_n_n", both, True),
        ("Alltoall Alltoallv Alltoallw", "collectives_n_n", both, True),
        ("Reduce_scatter Reduce_scatter_block", "collectives_n_n", both, True),
        ("Barrier", "collectives_n_n", {}, True),
    )
    calls = {}
    for names, counts, buffers, cuts in families:
        blocking = counts.replace("{}", "blocking_").split()
        nonblocking = counts.replace("{}", "nonblocking_").split()
        for name in names.split():
            calls[name] = _Call(blocking, buffers, cuts)
            calls[name.lower()] = _Call(blocking, cuts=cuts)
            calls[f"I{name.lower()}"] = _Call(nonblocking, buffers)
            calls[f"i{name.lower()}"] = _Call(nonblocking)
    return calls


CALLS = _calls()
_COUNTS = dict.fromkeys(name for call in CALLS.values() for name in call.counts)
_VOLUMES = ("sent_bytes", "received_bytes")
_MAKERS = ("Clone", "Create", "Dup", "Split", "Sub")


def process_of(comm: Any) -> dict[str, Any]:
    """Return the arguments of `segments` that name the calling process, for profiles to merge.

    ``run`` is a name that all processes of this run share.

    Parameters
    ----------
    comm
        A communicator of mpi4py, of all processes of the program. All must call this.
    """
    run = comm.bcast(secrets.token_hex(8) if comm.Get_rank() == 0 else None)
    return {"run": run, "process": comm.Get_rank(), "processes": comm.Get_size()}


def traced(comm: Any, segments: Segments) -> Any:
    """Return a communicator that ends a segment when all processes have waited for each other.

    A segment ends at the exit of a blocking all-to-all collective (``Allreduce``, ``Alltoall``,
    ``Allgather``, ``Reduce_scatter``, ``Barrier``, their variants and lower-case forms): a late
    process delays the others up to there, but not after it. The call is the label of the segment.

    Nominal features count communication: blocking and non-blocking sends and receives, collectives
    by senders and receivers (1 to n, n to 1, n to n), and bytes. Inside of calls neither
    computation nor delay counts.

    Parameters
    ----------
    comm
        A communicator of mpi4py, of all processes of the program; it is not changed. Calls that
        need the real one, such as opening a file, still take ``comm``.
    segments
        The recorder of this process; see `process_of`. Calls outside of its ``with``, or in
        another thread, are not counted.

    Returns
    -------
    object
        Has all methods and attributes of ``comm``. Communicators made from it are traced as well;
        if they have fewer processes, they count communication, but do not end segments.

    Notes
    -----
    It sees only calls from Python through it. Put calls of C libraries, and waits for non-blocking
    requests, into ``with segments.paused():``, since they may spin.

    Bytes are the sizes of buffers: a receive counts its whole buffer, and a broadcast counts as
    received. The size of a pickled object is not known: only the call counts.

    Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
    performance' (Euro-Par 2018), section 2.

    Examples
    --------
    Run by ``mpirun -n 4 python program.py``::

        from mpi4py import MPI
        from benchrigor.instrument import process_of, segments, traced

        world = MPI.COMM_WORLD
        with segments(f"run.{world.rank}.csv", **process_of(world)) as recorder:
            comm = traced(world, recorder)
            for step in range(1000):
                field = solve(field)
                comm.Allreduce(MPI.IN_PLACE, field)

    and then ``benchrigor interference run.*.csv``.
    """
    # So that all processes have the same columns in any case.
    for name in (*_COUNTS, *_VOLUMES):
        segments.count(name, 0)
    return _Traced(comm, segments, comm.Get_size())


class _Traced:
    """A communicator that counts and cuts; see `traced`."""

    def __init__(self, comm: Any, segments: Segments, processes: int) -> None:
        self._comm = comm
        self._segments = segments
        self._processes = processes

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._comm, name)
        if name in CALLS:
            attribute = self._count(name, attribute)
        elif name.startswith(_MAKERS):
            attribute = self._trace(attribute)
        else:
            return attribute
        self.__dict__[name] = attribute  # the next time without this detour
        return attribute

    def _count(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        segments, call = self._segments, CALLS[name]

        def count_call(*args: Any, **named: Any) -> Any:
            if not segments.recording:
                return method(*args, **named)
            with segments.paused():
                result = method(*args, **named)
                for count in call.counts:
                    segments.count(count)
                for volume, (index, keyword) in call.buffers.items():
                    buffer = args[index] if index < len(args) else named.get(keyword)
                    segments.count(volume, _size_of(buffer))
            if call.cuts and self._comm.Get_size() == self._processes:
                segments.cut(name)
            return result

        return count_call

    def _trace(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def traced_maker(*args: Any, **named: Any) -> Any:
            made = method(*args, **named)
            # A process outside of the new communicator gets a false one.
            if not made or not hasattr(made, "Barrier"):
                return made
            return _Traced(made, self._segments, self._processes)

        return traced_maker


def _size_of(argument: Any) -> int:
    """Return the bytes of a buffer: an array, or a list of array, counts and type."""
    is_list = isinstance(argument, list | tuple) and argument
    buffer, *rest = argument if is_list else (argument,)
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):  # on a GPU, of dates; in place, none
        return int(getattr(buffer, "nbytes", 0))
    counts = rest[0] if rest else None
    if isinstance(counts, tuple):  # with displacements
        counts = counts[0]
    if isinstance(counts, list | np.ndarray):
        counts = sum(counts)
    if not isinstance(counts, Integral):
        return view.nbytes
    return int(counts) * (rest[-1].Get_size() if hasattr(rest[-1], "Get_size") else view.itemsize)
