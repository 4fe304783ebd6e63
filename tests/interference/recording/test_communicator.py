"""A traced communicator passes everything on, counts it, and cuts where all processes meet."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from benchrigor.interference import process_of, traced


class FakeComm:
    """Answers every call with what it was given."""

    def __init__(self, size: int = 4, recorder: FakeRecorder | None = None) -> None:
        self.size = size
        self.recorder = recorder

    def Get_size(self) -> int:  # noqa: N802 - as mpi4py has it
        return self.size

    def Get_rank(self) -> int:  # noqa: N802
        return 1

    def Split(self, color: int | None) -> FakeComm | None:  # noqa: N802
        return None if color is None else FakeComm(color, self.recorder)

    def Dup(self) -> FakeComm:  # noqa: N802
        return FakeComm(self.size, self.recorder)

    def Create_keyval(self) -> int:  # noqa: N802
        return 7

    def bcast(self, given: object, root: int = 0) -> object:
        return given or "of rank 0"

    def __getattr__(self, name: str) -> Any:
        if name == "nonsense":
            raise AttributeError(name)

        def call(*args: object, **named: object) -> object:
            if self.recorder is not None:
                self.recorder.inside.append(self.recorder.is_paused)
            return name, args, named

        return call


class FakeRecorder:
    def __init__(self, *, recording: bool = True) -> None:
        self.recording = recording
        self.counts: Counter[str] = Counter()
        self.cuts: list[str] = []
        self.inside: list[bool] = []
        self.is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.is_paused = True
        yield
        self.is_paused = False

    def count(self, name: str, amount: int = 1) -> None:
        self.counts[name] += amount

    def cut(self, label: str = "") -> None:
        assert not self.is_paused
        self.cuts.append(label)


def counted(recorder: FakeRecorder) -> dict[str, int]:
    return {name: amount for name, amount in recorder.counts.items() if amount}


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
    name: str, args: tuple[object, ...], counts: dict[str, int]
) -> None:
    recorder = FakeRecorder()
    comm = traced(FakeComm(recorder=recorder), recorder)
    assert getattr(comm, name)(*args, tag=5) == (name, args, {"tag": 5})
    assert counted(recorder) == counts
    assert recorder.inside == [True]
    assert recorder.cuts == []


@pytest.mark.parametrize(
    "name",
    [
        *("Allreduce", "allreduce", "Allgather", "allgather", "Allgatherv", "Barrier", "barrier"),
        *("Alltoall", "alltoall", "Alltoallv", "Alltoallw"),
        *("Reduce_scatter", "Reduce_scatter_block"),
    ],
)
def test_a_blocking_all_to_all_collective_ends_a_segment_that_holds_it(name: str) -> None:
    recorder = FakeRecorder()
    comm = traced(FakeComm(recorder=recorder), recorder)
    getattr(comm, name)()
    getattr(comm, name)()
    assert recorder.cuts == [name, name]
    assert counted(recorder) == {"collectives_n_n": 2}


def test_buffers_are_found_by_name() -> None:
    recorder = FakeRecorder()
    comm = traced(FakeComm(), recorder)
    comm.Allreduce(recvbuf=TEN, sendbuf=TEN[:1])
    assert (recorder.counts["sent_bytes"], recorder.counts["received_bytes"]) == (8, 80)


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
def test_the_size_of_a_buffer_is_read_from_however_it_is_given(buffer: object, size: int) -> None:
    recorder = FakeRecorder()
    traced(FakeComm(), recorder).Send(buffer, 1)
    assert recorder.counts["sent_bytes"] == size


def test_a_communicator_of_some_processes_counts_but_ends_nothing() -> None:
    recorder = FakeRecorder()
    comm = traced(FakeComm(4), recorder)
    comm.Split(2).Barrier()
    assert recorder.cuts == []
    comm.Split(4).Dup().Barrier()
    assert recorder.cuts == ["Barrier"]
    assert counted(recorder) == {"collectives_n_n": 2}
    assert comm.Split(None) is None
    assert comm.Create_keyval() == 7


def test_all_processes_have_the_same_columns_whatever_they_do() -> None:
    recorder = FakeRecorder()
    traced(FakeComm(), recorder)
    assert set(recorder.counts) == {
        *("blocking_sends", "nonblocking_sends", "blocking_receives", "nonblocking_receives"),
        *("collectives_1_n", "collectives_n_1", "collectives_n_n"),
        *("sent_bytes", "received_bytes"),
    }


def test_what_is_not_communication_is_passed_on() -> None:
    comm = traced(FakeComm(), FakeRecorder())
    assert comm.size == comm.Get_size() == 4
    with pytest.raises(AttributeError):
        comm.nonsense  # noqa: B018


def test_a_recorder_that_does_not_run_is_left_alone() -> None:
    recorder = FakeRecorder(recording=False)
    comm = traced(FakeComm(recorder=recorder), recorder)
    assert comm.Barrier() == ("Barrier", (), {})
    assert (counted(recorder), recorder.cuts, recorder.inside) == ({}, [], [False])


def test_a_process_knows_its_place_in_the_run() -> None:
    assert process_of(FakeComm(4)) == {"run": "of rank 0", "process": 1, "processes": 4}


@pytest.mark.slow
def test_nothing_of_mpi_is_imported() -> None:
    code = (
        "import sys; from benchrigor.interference import traced; assert 'mpi4py' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
