"""Segments of real code, in every way there is to mark them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument import Segments, segments
from benchrigor.model import Interference, SegmentProfile


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
    assert SegmentProfile.load(path).same_as(
        SegmentProfile.load(_saved_again(profile, tmp_path / "again.csv"))
    )


def _saved_again(profile: SegmentProfile, path: Path) -> Path:
    profile.save(path)
    return path


def test_the_program_is_the_script_unless_it_is_said() -> None:
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


def test_a_segment_that_fails_is_recorded_and_told_apart(tmp_path: Path) -> None:
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


def test_a_loop_that_is_left_is_told_apart() -> None:
    with segments() as run:
        for step in run.over(range(5)):
            if step == 2:
                break
        run.cut()
    assert run.profile.nominal["unfinished"].tolist() == [0, 0, 1, 0]


def test_a_loop_that_is_left_and_kept_says_nothing_after_the_end() -> None:
    with segments() as run:
        run.cut()
        loop = run.over(range(5))
        next(loop)
    loop.close()
    assert run.profile.n == 1


def test_the_programs_own_error_passes_a_profile_that_cannot_be_written(tmp_path: Path) -> None:
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
        (lambda run: run.__enter__(), "entered before"),
        (lambda _: segments().__enter__(), "recorded already"),
    ],
    ids=["nested", "cut", "pause", "label", "nan", "text", "again", "second"],
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


def test_all_that_makes_no_sense_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        segments(tmp_path / "no" / "run.csv", process=2, processes=2)
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidInput, match="bins is 1"):
        segments(bins=1)
