"""A traced communicator passes everything on, counts it, and cuts where all processes meet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.interference import Segments, process_of, segments, traced

COUNTS = {
    *("blocking_sends", "nonblocking_sends", "blocking_receives", "nonblocking_receives"),
    *("collectives_1_n", "collectives_n_1", "collectives_n_n"),
    *("sent_bytes", "received_bytes"),
}


class FakeComm:
    """Answers every call with what it was given."""

    def __init__(self, size: int = 4, run: Segments | None = None) -> None:
        self.size, self.run = size, run

    def Get_size(self) -> int:  # noqa: N802 - as mpi4py has it
        return self.size

    def Get_rank(self) -> int:  # noqa: N802
        return 1

    def Split(self, color: int | None) -> FakeComm | None:  # noqa: N802
        return None if color is None else FakeComm(color)

    def Dup(self) -> FakeComm:  # noqa: N802
        return FakeComm(self.size)

    def Create_keyval(self) -> int:  # noqa: N802
        return 7

    def bcast(self, given: object, root: int = 0) -> object:
        return given or "of rank 0"

    def __getattr__(self, name: str) -> Any:
        if name == "nonsense":
            raise AttributeError(name)

        def call(*args: object, **named: object) -> object:
            if self.run is not None and self.run.recording:
                with pytest.raises(InvalidInput):  # it is inside of a pause
                    self.run.cut()
            return name, args, named

        return call


@pytest.fixture
def run() -> Iterator[Segments]:
    with segments() as recorder:
        yield recorder


@pytest.fixture
def comm(run: Segments) -> Any:
    return traced(FakeComm(run=run), run)


def told(run: Segments) -> tuple[list[str], dict[str, int]]:
    """Return the labels of segments so far, and what was counted in all of them."""
    run.cut("end")
    found = run.profile.nominal
    sums = {name: int(found[name].sum()) for name in COUNTS}
    return found["label"].tolist()[:-1], {name: each for name, each in sums.items() if each}


TEN = np.zeros(10)


@pytest.mark.parametrize(
    ("name", "args", "counts"),
    [
        ("Send", (TEN, 1), {"blocking_sends": 1, "sent_bytes": 80}),
        ("ssend", ({}, 1), {"blocking_sends": 1}),
        ("Isend", (TEN, 1), {"nonblocking_sends": 1, "sent_bytes": 80}),
        ("isend", ({}, 1), {"nonblocking_sends": 1}),
        ("Recv", (TEN,), {"blocking_receives": 1, "received_bytes": 80}),
        ("Irecv", (TEN,), {"nonblocking_receives": 1, "received_bytes": 80}),
        (
            "Sendrecv",
            (TEN, 1, 0, TEN[:3]),
            {
                "blocking_sends": 1,
                "blocking_receives": 1,
                "sent_bytes": 80,
                "received_bytes": 24,
            },
        ),
        ("Bcast", (TEN,), {"collectives_1_n": 1, "received_bytes": 80}),
        ("scatter", ([1, 2],), {"collectives_1_n": 1}),
        ("Gather", (TEN, None), {"collectives_n_1": 1, "sent_bytes": 80}),
        ("reduce", (1,), {"collectives_n_1": 1}),
        ("Scan", (TEN, TEN), {"collectives_n_n": 1, "sent_bytes": 80, "received_bytes": 80}),
        ("Iallreduce", (TEN, TEN), {"collectives_n_n": 1, "sent_bytes": 80, "received_bytes": 80}),
        ("Ibarrier", (), {"collectives_n_n": 1}),
    ],
)
def test_a_call_is_passed_on_and_counted_without_ending_a_segment(
    name: str, args: tuple[object, ...], counts: dict[str, int], run: Segments, comm: Any
) -> None:
    assert getattr(comm, name)(*args, tag=5) == (name, args, {"tag": 5})
    assert told(run) == ([], counts)


@pytest.mark.parametrize(
    "name",
    [
        *("Allreduce", "allreduce", "Allgather", "allgather", "Allgatherv", "Barrier", "barrier"),
        *("Alltoall", "alltoall", "Alltoallv", "Alltoallw"),
        *("Reduce_scatter", "Reduce_scatter_block"),
    ],
)
def test_a_blocking_all_to_all_collective_ends_a_segment_that_holds_it(
    name: str, run: Segments, comm: Any
) -> None:
    getattr(comm, name)()
    getattr(comm, name)()
    assert told(run) == ([name, name], {"collectives_n_n": 2})


def test_buffers_are_found_by_name(run: Segments, comm: Any) -> None:
    comm.Allreduce(recvbuf=TEN, sendbuf=TEN[:1])
    counts = told(run)[1]
    assert (counts["sent_bytes"], counts["received_bytes"]) == (8, 80)


class Datatype:
    def Get_size(self) -> int:  # noqa: N802
        return 100


class OnGPU:
    nbytes = 48


@pytest.mark.parametrize(
    ("buffer", "size"),
    [
        pytest.param(None, 0, id="none"),
        pytest.param(-1, 0, id="in-place"),
        pytest.param(bytearray(5), 5, id="bytes"),
        pytest.param([TEN], 80, id="alone"),
        pytest.param([TEN, "d"], 80, id="typed-by-letter"),
        pytest.param([TEN, Datatype()], 80, id="typed"),
        pytest.param([TEN, 3], 24, id="counted"),
        pytest.param([TEN, np.int32(3), "d"], 24, id="counted-and-typed"),
        pytest.param([TEN, 3, Datatype()], 300, id="own-type"),
        pytest.param([TEN, (3, 1), "d"], 24, id="displaced"),
        pytest.param([TEN, [3, 1]], 32, id="counts"),
        pytest.param((TEN, np.array([3, 1]), np.array([0, 3]), "d"), 32, id="counts-displacements"),
        pytest.param([TEN, ([3, 1], [0, 3]), "d"], 32, id="pair"),
        pytest.param([], 0, id="empty"),
        pytest.param(OnGPU(), 48, id="gpu"),
        pytest.param(np.zeros(2, "M8[s]"), 16, id="dates"),
        pytest.param(np.zeros((4, 4))[:, 1], 32, id="strided"),
    ],
)
def test_the_size_of_a_buffer_is_read_from_however_it_is_given(
    buffer: object, size: int, run: Segments, comm: Any
) -> None:
    comm.Send(buffer, 1)
    assert told(run)[1].get("sent_bytes", 0) == size


def test_a_communicator_of_some_processes_counts_but_ends_nothing(run: Segments, comm: Any) -> None:
    comm.Split(2).Barrier()
    comm.Split(4).Dup().Barrier()
    assert told(run) == (["Barrier"], {"collectives_n_n": 2})
    assert run.profile.nominal["collectives_n_n"].tolist() == [2, 0]
    assert comm.Split(None) is None
    assert comm.Create_keyval() == 7


def test_all_processes_have_the_same_columns_whatever_they_do(run: Segments, comm: Any) -> None:
    run.cut()
    assert run.profile.nominal.keys() > COUNTS
    assert comm.size == comm.Get_size() == 4
    with pytest.raises(AttributeError):
        comm.nonsense  # noqa: B018


def test_a_process_knows_its_place_in_the_run() -> None:
    assert process_of(FakeComm(4)) == {"run": "of rank 0", "process": 1, "processes": 4}


def test_a_recorder_that_does_not_run_is_left_alone(run: Segments) -> None:
    idle = segments()
    assert traced(FakeComm(run=idle), idle).Barrier() == ("Barrier", (), {})
    assert not idle.recording
