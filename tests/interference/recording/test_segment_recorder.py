"""Segments of real code, in every way there is to mark them."""

from __future__ import annotations

import enum
import functools
import gc
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.interference.made_profiles import written

from benchrigor.errors import InvalidInput
from benchrigor.interference import Segments, segments
from benchrigor.machine import kernel_files
from benchrigor.model import SegmentProfile


def test_all_ways_to_mark_segments_are_one_profile(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with segments(path, program="solver", run="7", process=1, processes=3) as run:

        @run.each
        def add(a: int, *, b: int) -> int:
            return a + b

        with run.segment("step"):
            pass
        run.cut("cut")
        assert list(run.over([4, 5], "loop")) == [4, 5]
        assert add(1, b=2) == 3
    assert add.__name__ == "add"
    profile = run.profile
    assert profile.nominal["label"].tolist() == ["step", "cut", "loop", "loop", "add"]
    assert (profile.program, profile.run, profile.process) == ("solver", "7", 1)
    assert profile.processes == 3
    assert path.read_text(encoding="utf-8") == written(profile)


def test_a_segment_that_fails_is_recorded_as_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"

    def fail() -> None:
        with segments(path) as run:
            with run.segment():
                pass
            with run.segment():
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert SegmentProfile.load(path).nominal["unfinished"].tolist() == [0, 1]


def test_a_loop_that_is_left_is_recorded_as_unfinished() -> None:
    with segments() as run:
        for step in run.over(range(5)):
            if step == 2:
                break
        run.cut()
    assert run.profile.nominal["unfinished"].tolist() == [0, 0, 1, 0]


def test_a_loop_that_is_left_and_kept_adds_nothing_after_the_end() -> None:
    with segments() as run:
        run.cut()
        loop = run.over(range(5))
        next(loop)
    loop.close()
    assert run.profile.n == 1


def test_a_profile_that_cannot_be_written_is_a_note_on_the_programs_own_error(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    def fail() -> None:
        with segments(folder / "run.csv") as run:
            run.cut()
            folder.rmdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert len(caught.value.__notes__) == 1


def test_counts_belong_to_the_segment_under_way() -> None:
    with segments() as run:
        run.count("sends", 0)
        with run.segment():
            run.count("sends")
            run.count("sends", 2)
        run.count("sends", 50)
        with run.segment(), run.paused(), run.paused():
            sum(range(100))
        run.count("sends", 4)
        run.count("mean", 0.5)  # of a feature that comes late
        run.cut()
    found = run.profile.nominal
    assert found["sends"].tolist() == [3, 0, 4]
    assert found["mean"].tolist() == [0.0, 0.0, 0.5]
    assert (found["sends"].dtype, found["mean"].dtype) == (np.int64, float)
    with pytest.raises(InvalidInput):
        run.count("reads")


def test_work_stands_alone_where_all_segments_have_it() -> None:
    with segments() as run:
        run.cut(work=2)
        run.cut(work=3)
        given = run.profile
        run.cut()
    assert given.computation["work"].tolist() == [2.0, 3.0]
    assert {"cpu_s", "instructions"} & given.evidence.keys()
    assert "work" not in run.profile.computation
    assert "work" in run.profile.facts


def _nested(run: Segments) -> None:
    with run.segment(), run.segment():
        pass


def _cut_inside(run: Segments) -> None:
    with run.segment():
        run.cut()


def _cut_in_pause(run: Segments) -> None:
    with run.paused():
        run.cut()


@pytest.mark.parametrize(
    "misuse",
    [
        *(_nested, _cut_inside, _cut_in_pause),
        lambda run: run.cut(3),  # type: ignore[arg-type]
        *(lambda run, work=work: run.cut(work=work) for work in (math.nan, True)),
        lambda run: run.count("x", math.nan),
        lambda run: run.__enter__(),
        lambda _: segments().__enter__(),  # there is one recorder in a thread
    ],
)
def test_misuse_is_refused_and_what_comes_after_is_recorded(
    misuse: Callable[[Segments], object],
) -> None:
    with segments() as run:
        with pytest.raises(InvalidInput):
            misuse(run)
        run.cut("after")
    assert run.profile.nominal["label"].tolist()[-1] == "after"


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_another_thread_is_refused() -> None:
    refused: list[bool] = []

    def cut() -> None:
        refused.append(run.recording)
        with pytest.raises(InvalidInput):
            run.cut()

    with segments() as run:
        in_a_thread(cut)
        assert run.recording
        run.cut()
    assert (refused, run.profile.n) == ([False], 1)


def test_outside_of_with_there_is_nothing_to_record() -> None:
    run = segments()
    assert not run.recording
    with pytest.raises(InvalidInput):
        run.cut()
    with run:
        pass
    with pytest.raises(InvalidInput):
        _ = run.profile


def test_whatever_can_be_called_is_a_segment() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a + 1

    async def later() -> None: ...

    with segments() as run:
        assert run.each(functools.partial(pow, 2))(5) == 32
        assert run.each(Adder())(5) == 6
        with pytest.raises(InvalidInput):
            run.each(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            run.each(functools.partial(later))
    assert run.profile.nominal["label"].tolist() == ["pow", "Adder"]


def test_numbers_and_strings_of_others_are_taken() -> None:
    class Step(enum.StrEnum):
        SOLVE = "solve"

    with segments() as run:
        run.count("sends", np.int32(3))
        run.cut(Step.SOLVE, work=np.int64(4))
        run.cut(np.str_("write"), work=np.float32(2))
        run.cut("read", work=Fraction(1, 2))
    assert run.profile.nominal["label"].tolist() == ["solve", "write", "read"]
    assert run.profile.computation["work"].tolist() == [4.0, 2.0, 0.5]
    assert run.profile.nominal["sends"].tolist() == [3, 0, 0]


def test_without_a_segment_no_file_is_written_with_a_warning(tmp_path: Path) -> None:
    with (
        pytest.warns(RuntimeWarning) as warnings,
        segments(tmp_path / "run.csv"),
    ):
        pass
    assert warnings[0].filename == __file__
    assert not list(tmp_path.iterdir())


def test_whatever_fails_at_the_end_the_programs_own_error_is_raised(monkeypatch) -> None:
    def broken() -> None:
        raise OSError("no space left")

    def fail() -> None:
        with segments() as run:
            run.cut()
            monkeypatch.setattr(time, "process_time_ns", broken)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert "no space" in caught.value.__notes__[0]
    monkeypatch.undo()
    with segments() as again:  # the thread is free
        again.cut()


def _in_a_thread() -> None:
    def burn() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.15:
            pass

    in_a_thread(burn)


def _in_a_child() -> None:
    code = "import time\nwhile time.process_time() < 0.15: pass"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)


@pytest.mark.parametrize("burn", [_in_a_thread, _in_a_child], ids=["thread", "child"])
def test_processor_time_elsewhere_is_a_fact_and_a_warning(burn: Callable[[], None]) -> None:
    with segments() as run, run.segment():
        burn()
    assert run.profile.facts["other_cpu_s"] >= 0.14
    assert run.profile.facts["thread_cpu_s"] < 0.1
    assert any(
        each.code == "delay-not-measured" and each.severity == "warning"
        for each in run.interference().notices
    )


# What Linux counts, exactly, by segment.

linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux counts")


def counted(*works: Callable[[], object], name: str = "reads") -> SegmentProfile:
    """Record what each does; skip where this system does not count it."""
    gc.collect()  # files of other tests are closed before, not while counting
    gc.disable()
    try:
        with segments() as run:
            for work in works:
                with run.segment():
                    work()
    finally:
        gc.enable()
    if name in run.profile.facts:
        pytest.skip(str(run.profile.facts[name]))
    return run.profile


def nominal(profile: SegmentProfile, index: int) -> dict[str, int]:
    return {name: each[index] for name, each in profile.nominal.items() if each[index]}


@pytest.mark.alone
@linux
def test_files_are_counted_exactly_and_reading_the_counters_does_not_show(tmp_path: Path) -> None:
    (tmp_path / "known").write_bytes(b"x" * 1000)
    opened = []

    def read() -> None:
        descriptor = os.open(tmp_path / "known", os.O_RDONLY)
        os.read(descriptor, 600)
        os.read(descriptor, 600)
        os.close(descriptor)

    def write() -> None:
        opened.append(os.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT))
        os.write(opened[0], b"12345")

    found = counted(read, write, lambda: os.close(opened[0]), *[lambda: None] * 5)
    assert [nominal(found, index) for index in range(found.n)] == [
        {"opens": 1, "closes": 1, "reads": 2, "read_bytes": 1000},
        {"opens": 1, "writes": 1, "written_bytes": 5},  # what stays open is not closed
        {"closes": 1},
        *[{}] * 5,
    ]


def test_opens_of_this_thread_count_in_whichever_way_and_those_of_others_do_not() -> None:
    def touch() -> None:
        os.close(os.open(os.devnull, os.O_RDONLY))

    def fail() -> None:
        with pytest.raises(FileNotFoundError):
            open("/nowhere/at/all")  # noqa: PTH123, SIM115

    works = (touch, lambda: Path(os.devnull).read_bytes(), fail, lambda: in_a_thread(touch))
    assert counted(*works, name="opens").nominal["opens"].tolist() == [1, 1, 1, 0]


def test_a_recorder_that_another_thread_ends_leaves_this_one_free() -> None:
    run = segments()
    run.__enter__()
    run.cut()
    in_a_thread(lambda: run.__exit__(None, None, None))
    with segments() as again:
        again.cut()
    assert (run.profile.n, again.profile.n) == (1, 1)


@pytest.mark.alone
@linux
def test_collections_are_counted_by_generation_and_switches_too() -> None:
    ends = socket.socketpair()

    def wait() -> None:
        ends[0].settimeout(0.001)
        with pytest.raises(TimeoutError):
            ends[0].recv(1)

    works = (functools.partial(gc.collect, each) for each in (0, 1, 2))
    found = counted(*works, wait)
    assert found.nominal["gc_young"].tolist() == [1, 1, 0, 0]
    assert found.nominal["gc_full"].tolist() == [0, 0, 1, 0]
    assert found.evidence["voluntary_switches"][3] >= 1
    assert not any("_count_collection" in str(each) for each in gc.callbacks)
    for end in ends:
        end.close()


@pytest.mark.alone
@linux
@pytest.mark.parametrize("counter", ["open_counter", "open_floating_point"])
def test_computation_is_the_threads_own_and_a_pause_does_not_count(
    counter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a counter of the kernel in place of one of the processor, which few machines show."""
    software, task_clock = 1, 1
    openers = {
        "open_counter": "benchrigor.interference.thread_counters.open_counter",
        "open_floating_point": ("benchrigor.interference.thread_counters.open_floating_point"),
    }
    monkeypatch.setattr(openers[counter], lambda: kernel_files.open_counter(software, task_clock))
    run = segments()

    def busy() -> None:
        sum(range(300_000))

    def pause() -> None:
        with run.paused():
            busy()

    with run:
        for work in (busy, pause, lambda: in_a_thread(busy), lambda: None) * 5:
            with run.segment():
                work()
    name = {"open_counter": "instructions", "open_floating_point": "floating_point"}[counter]
    if name in run.profile.facts:
        pytest.skip(str(run.profile.facts[name]))
    found = {**run.profile.computation, **run.profile.evidence}[name].reshape(5, 4).min(axis=0)
    assert found[0] > 5 * max(found[1], found[2])
    assert found[0] > 50 * max(found[3], 1_000)
