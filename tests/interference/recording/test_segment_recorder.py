"""Segments of real code, in every way there is to mark them."""

from __future__ import annotations

import enum
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.interference import Segments, segments
from benchrigor.interference.recording.thread_recording import Recording
from benchrigor.model import Interference, SegmentProfile, codec


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
    again = SegmentProfile.load(_saved_again(profile, tmp_path / "again.csv"))
    assert codec.encode(SegmentProfile.load(path)) == codec.encode(again)


def _saved_again(profile: SegmentProfile, path: Path) -> Path:
    profile.save(path)
    return path


def test_the_program_is_the_script_unless_it_is_given() -> None:
    with segments() as run:
        run.cut()
    assert run.profile.program == Path(sys.argv[0]).name


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux counts")
def test_reads_of_each_segment_are_its_own(tmp_path: Path) -> None:
    data = tmp_path / "known"
    data.write_bytes(b"x" * 100)
    with segments() as run:
        for times in (1, 0, 3):
            with run.segment():
                for _ in range(times):
                    assert len(data.read_bytes()) == 100
    found = run.profile.nominal
    if "reads" not in found:
        pytest.skip(str(run.profile.facts["reads"]))
    assert found["opens"].tolist() == [1, 0, 3]
    assert found["read_bytes"].tolist() == [100, 0, 300]
    # Python asks once more, to see that this was all.
    assert found["reads"].tolist() == [2, 0, 6]


def test_interference_is_estimated() -> None:
    with segments() as run:
        for _ in run.over(range(20)):
            sum(range(1_000))
    found = run.interference(reference=run.profile)
    assert isinstance(found, Interference)
    assert found.n == 20
    assert found.continuous_percent == pytest.approx(0.0)


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
    assert "could not be written" in caught.value.__notes__[0]


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
        run.cut()
    assert run.profile.nominal["sends"].tolist() == [3, 0, 4]
    with pytest.raises(InvalidInput, match="counted already"):
        run.count("reads")


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
    ("misuse", "message"),
    [
        (_nested, "inside of another segment"),
        (_cut_inside, "inside of another segment"),
        (_cut_in_pause, "inside of a pause"),
        (lambda run: run.cut(3), "label is 3, expected a string"),
        (lambda run: run.cut(work=float("nan")), "work is nan, expected a finite number"),
        (lambda run: run.segment(work="much"), "work is 'much', expected a finite number"),
        (lambda run: run.cut(work=True), "work is True, expected a finite number"),
        (lambda run: run.cut(work=1e151), "work is 1e[+]151, expected .* at most 1e150"),
        (lambda run: run.cut(work=10**400), "work is a whole number beyond 1e150"),
        (lambda run: run.cut("\ud800"), "label is '.ud800', which has half of a character"),
        (lambda run: run.count("x", float("nan")), "amount is nan, expected a finite number"),
        (lambda run: run.count("x", "1"), "amount is '1', expected a finite number"),
        (lambda run: run.count(3), "name is 3, expected a string"),
        (lambda run: run.count(""), "name is '', expected one without space"),
        (lambda run: run.__enter__(), "entered before"),
        (lambda _: segments().__enter__(), "recorded already"),
    ],
    ids=[
        *("nested", "cut", "pause", "label", "nan", "text", "truth", "huge", "huge-whole"),
        *("surrogate", "count-nan", "count-text", "count-name", "count-no-name"),
        *("again", "second"),
    ],
)
def test_misuse_is_refused_and_what_comes_after_is_recorded(
    misuse: Callable[[Segments], object], message: str
) -> None:
    with segments() as run:
        with pytest.raises(InvalidInput, match=message):
            misuse(run)
        run.cut("after")
    assert run.profile.nominal["label"].tolist()[-1] == "after"


def test_another_thread_is_refused() -> None:
    refused: list[str] = []

    def cut() -> None:
        assert not run.recording
        try:
            run.cut()
        except InvalidInput as error:
            refused.append(str(error))

    with segments() as run:
        thread = threading.Thread(target=cut)
        thread.start()
        thread.join()
        assert run.recording
        run.cut()
    assert "another thread" in refused[0]
    assert run.profile.n == 1


def test_outside_of_with_there_is_nothing_to_record() -> None:
    run = segments()
    assert not run.recording
    with pytest.raises(InvalidInput, match="not running"):
        run.cut()
    with run:
        pass
    with pytest.raises(InvalidInput, match="no segment was recorded"):
        _ = run.profile


def test_functions_that_do_not_run_when_called_are_refused() -> None:
    async def later() -> None: ...

    def items():
        yield 1

    for func in (later, items):
        with pytest.raises(InvalidInput, match="does not run when called"):
            segments().each(func)


def test_whatever_can_be_called_is_a_segment() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a + 1

    async def later() -> None: ...

    with segments() as run:
        assert run.each(functools.partial(pow, 2))(5) == 32
        assert run.each(Adder())(5) == 6
        with pytest.raises(InvalidInput, match="func is 5, expected a function"):
            run.each(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="later does not run when called"):
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
        pytest.warns(RuntimeWarning, match="no segment was recorded") as warnings,
        segments(tmp_path / "run.csv"),
    ):
        pass
    assert warnings[0].filename == __file__
    assert not list(tmp_path.iterdir())


def test_whatever_fails_at_the_end_the_programs_own_error_is_raised(monkeypatch) -> None:
    def broken(self: Recording) -> None:
        stop(self)
        raise OSError("no space left")

    def fail() -> None:
        with segments() as run:
            run.cut()
            raise ZeroDivisionError

    stop = Recording.stop
    monkeypatch.setattr(Recording, "stop", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert "could not be written: no space left" in caught.value.__notes__[0]
    monkeypatch.undo()
    with segments() as again:  # the thread is free
        again.cut()


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        segments(tmp_path / "no" / "run.csv", program="\ud800", process=2, processes=2)
    assert len(caught.value.problems) == 3
    for process in (0.0, True, "0"):
        with pytest.raises(InvalidInput, match=r"process is .*, expected a whole number"):
            segments(process=process)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (5, "path is 5, expected a str or Path"),
        ("", "path is '', expected a str or Path"),
        (".", "which is a folder"),
        ("a\0b", "expected a str or Path that names a file"),
    ],
    ids=["number", "empty", "folder", "nul"],
)
def test_a_path_that_is_none_is_refused_before_anything_runs(path: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        segments(path)


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInput, match="a folder that can be written to"):
        segments(tmp_path / "run.csv")


def _in_a_thread() -> None:
    def burn() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.15:
            pass

    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()


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
