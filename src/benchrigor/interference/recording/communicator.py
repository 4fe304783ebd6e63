"""Communicators of mpi4py that cut segments at the meeting points of all processes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from benchrigor.interference.recording.segment_recorder import Segments


@dataclass(frozen=True, slots=True)
class _Call:
    """What a call counts; by volume, position and name of the buffer; whether it ends a segment."""

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
