"""Segments of a program that runs as several MPI processes, cut where all of them meet."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from benchrigor.instrument.segment_profiles.boundaries import Segments

__all__ = ["process_of", "traced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What one kind of call counts, and where among its arguments the buffers are."""

    counts: tuple[str, ...]
    sends: tuple[int, str] | None = None
    receives: tuple[int, str] | None = None
    cuts: bool = False


def _calls() -> dict[str, _Call]:
    """Return the calls of a communicator by name.

    Each has up to four: ``Send`` takes buffers, ``send`` pickles; ``Isend``, ``isend`` do not
    block.
    """
    first, both = (0, "buf"), {"sends": (0, "sendbuf"), "receives": (1, "recvbuf")}
    families: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
        ("Send Bsend Rsend Ssend", ("{}sends",), {"sends": first}),
        ("Recv", ("{}receives",), {"receives": first}),
        ("Sendrecv", ("{}sends", "{}receives"), {**both, "receives": (3, "recvbuf")}),
        ("Sendrecv_replace", ("{}sends", "{}receives"), {"sends": first, "receives": first}),
        ("Bcast", ("collectives_1_n",), {"receives": first}),
        ("Scatter Scatterv", ("collectives_1_n",), both),
        ("Gather Gatherv Reduce", ("collectives_n_1",), both),
        ("Scan Exscan", ("collectives_n_n",), both),  # the first process waits for nobody
        ("Allgather Allgatherv Allreduce", ("collectives_n_n",), {**both, "cuts": True}),
        ("Alltoall Alltoallv Alltoallw", ("collectives_n_n",), {**both, "cuts": True}),
        ("Reduce_scatter Reduce_scatter_block", ("collectives_n_n",), {**both, "cuts": True}),
        ("Barrier", ("collectives_n_n",), {"cuts": True}),
    )
    calls = {}
    for names, counts, what in families:
        blocking = tuple(each.format("blocking_") for each in counts)
        going_on = tuple(each.format("nonblocking_") for each in counts)
        objects = {"cuts": what.get("cuts", False)}
        buffers = {key: value for key, value in what.items() if key != "cuts"}
        for name in names.split():
            calls[name] = _Call(counts=blocking, **what)
            calls[name.lower()] = _Call(counts=blocking, **objects)
            calls[f"I{name.lower()}"] = _Call(counts=going_on, **buffers)
            calls[f"i{name.lower()}"] = _Call(counts=going_on)
    return calls


_CALLS = _calls()
_VOLUMES = ("sent_bytes", "received_bytes")
_COUNTS = (*dict.fromkeys(name for call in _CALLS.values() for name in call.counts), *_VOLUMES)
_MAKERS = ("Clone", "Create", "Dup", "Split", "Sub")


def process_of(comm: Any) -> dict[str, Any]:
    """Return what `segments` is to be told of the calling process, for profiles to be merged.

    Parameters
    ----------
    comm
        A communicator of mpi4py, of all processes of the program. All must call this.

    Returns
    -------
    dict
        ``process`` and ``processes``, its rank and how many there are, and ``run``, a name that
        all processes of this run share.
    """
    run = comm.bcast(secrets.token_hex(8) if comm.Get_rank() == 0 else None)
    return {"run": run, "process": comm.Get_rank(), "processes": comm.Get_size()}


def traced(comm: Any, segments: Segments) -> Any:
    """Return a communicator that ends a segment wherever all processes wait for each other.

    That is at the exit of each blocking all-to-all collective (``Allreduce``, ``Alltoall``,
    ``Allgather``, ``Reduce_scatter``, ``Barrier``, their variants, and what pickles): who comes
    late to it delays all, but nothing behind it. The segment is labelled with the call.

    On the way it counts what the segment communicates, as nominal features: sends and receives by
    whether they block, collectives by senders and receivers (1 to n, n to 1, n to n), and bytes.
    What is computed or waited for inside communication is not counted as the program's.

    Parameters
    ----------
    comm
        A communicator of mpi4py, of all processes of the program; it is not changed. Whatever
        needs the real one, such as opening a file, is to be given that.
    segments
        The recorder of this process; see `process_of`. Calls outside of its ``with``, or in
        another thread than its own, are passed on uncounted.

    Returns
    -------
    object
        What has all methods and attributes of ``comm``. Communicators made from it are traced as
        well. Those of fewer processes count, but end no segment.

    Notes
    -----
    Only calls made from Python through it are seen: none of a library in C, nor waiting for a
    request that did not block. Put that into ``with segments.paused():``, since it may spin.

    Bytes are those of the buffers given, so a receive counts as much as there is room for, and a
    broadcast counts as received. How large a pickled object is, is not known: it counts as a call.

    Source: Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on
    application performance' (Euro-Par 2018), section 2.

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
    for name in _COUNTS:  # so that all processes have the same columns, whatever they do
        segments.count(name, 0)
    return _Traced(comm, segments, comm.Get_size())


class _Traced:
    """Stands for a communicator; see `traced`."""

    def __init__(self, comm: Any, segments: Segments, processes: int) -> None:
        self._comm = comm
        self._segments = segments
        self._processes = processes

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._comm, name)
        if name in _CALLS:
            attribute = self._counted(name, attribute)
        elif name.startswith(_MAKERS):
            attribute = self._followed(attribute)
        else:
            return attribute
        self.__dict__[name] = attribute  # the next time without this detour
        return attribute

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        segments, call = self._segments, _CALLS[name]
        volumes = [
            (total, *where)
            for total, where in zip(_VOLUMES, (call.sends, call.receives), strict=True)
            if where is not None
        ]

        def counted(*args: Any, **named: Any) -> Any:
            if not segments.recording:
                return method(*args, **named)
            with segments.paused():
                result = method(*args, **named)
                for each in call.counts:
                    segments.count(each)
                for total, index, keyword in volumes:
                    given = args[index] if index < len(args) else named.get(keyword)
                    segments.count(total, _size_of(given))
            if call.cuts and self._comm.Get_size() == self._processes:
                segments.cut(name)
            return result

        return counted

    def _followed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def followed(*args: Any, **named: Any) -> Any:
            made = method(*args, **named)
            # A process that is not in the new communicator gets a false one.
            if not made or not hasattr(made, "Barrier"):
                return made
            return _Traced(made, self._segments, self._processes)

        return followed


def _size_of(given: Any) -> int:
    """Return how many bytes a buffer holds: an array, or a list of array, counts and type."""
    buffer, *rest = given if isinstance(given, list | tuple) and given else (given,)
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
