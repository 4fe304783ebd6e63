"""A stream is one process over all rounds: nothing is lost, and nothing is left of it."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Metric, Options, Round, RoundPlan, StopReason
from benchrigor.protocols import LastingWorkload, Workload
from benchrigor.session import Session
from benchrigor.workloads import Pick, RoundRecorder, StreamWorkload

UNITS = Pick.parse("u=regex:u ([0-9.]+)", unit_readings=True)
OTHER = Pick.parse("v=regex:v ([0-9.]+)", unit_readings=True)
ENDLESS = "i=0; while :; do i=$((i + 1)); echo u 1.$((i * 5 % 7)); sleep 0.002; done"
Left = Callable[[], list[int]]
OPENED: list[StreamWorkload] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def shell(script: str, *picks: Pick, **given: Any) -> StreamWorkload:
    argv = ["sh", "-c", f"echo $$ >> groups; {script}"]
    given = {"clock": WallClock(), "grace_s": 0.3, **given}
    OPENED.append(StreamWorkload(argv, picks=picks or [UNITS], **given))
    return OPENED[-1]


def a_round(stream: StreamWorkload, readings: int, **plan: Any) -> Round:
    planned, recorder = RoundPlan(index=0, readings=readings, **plan), RoundRecorder()
    stream.run(planned, recorder)
    return recorder.finish(planned, elapsed_ns=1)


def test_it_is_a_workload_that_lasts() -> None:
    stream = StreamWorkload(["true"], picks=[UNITS], clock=WallClock())
    assert isinstance(stream, Workload)
    assert isinstance(stream, LastingWorkload)
    stream.close()  # nothing was started
    stream.stop()


@pytest.mark.slow
def test_rounds_take_what_they_plan_and_nothing_is_lost_or_changes_its_order(left: Left) -> None:
    n = 30_000
    stream = shell(f"seq -f 'u %.0f' {n}; seq -f 'v %.0f' 3", UNITS, OTHER)
    found: dict[str, list[float]] = {"u": [], "v": []}
    sizes = itertools.chain((1, 10, 7_000, 64), itertools.repeat(20_000))
    with suppress(StopIteration):  # at the end of the stream
        for size in sizes:
            finished = a_round(stream, size)
            assert finished.n_readings <= size  # fewer where the machine is busy
            for name, values in finished.unit_readings.items():
                found[name] += values.tolist()
    with pytest.raises(StopIteration):
        a_round(stream, 1)
    assert found == {"u": list(range(1, n + 1)), "v": [1, 2, 3]}
    stream.close()
    assert left() == []


def test_the_last_line_counts_without_its_end_if_the_command_ended_well(left: Left) -> None:
    assert a_round(shell("printf 'u 1\\nu 2'"), 9).unit_readings["u"].tolist() == [1.0, 2.0]


def test_readings_before_a_failure_are_kept_and_it_says_why(left: Left) -> None:
    stream = shell("printf 'u 1\\nu 2'; echo out of memory >&2; exit 4")
    assert a_round(stream, 9).unit_readings["u"].tolist() == [1.0]
    with pytest.raises(
        WorkloadFailed,
        match=r"exited with code 4, expected 0; its stderr ends:\n  \| out of memory",
    ):
        a_round(stream, 9)
    stream.close()


def test_a_stream_without_readings_says_what_was_printed(left: Left) -> None:
    with pytest.raises(WorkloadFailed, match="printed 6 B in 1 line, none of which holds a"):
        a_round(shell("echo hello"), 1)


def test_a_line_that_is_too_long_is_not_searched(left: Left) -> None:
    script = "echo u 1; head -c 3000000 /dev/zero | tr '\\0' 7; echo ' u 2'; echo u 3"
    assert a_round(shell(script), 9).unit_readings["u"].tolist() == [1.0, 3.0]


@pytest.mark.slow
def test_silence_is_no_failure_and_a_round_ends_with_what_there_is(
    left: Left, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    stream = shell(f"echo u 1; until test -e {go}; do sleep 0.05; done; echo u 2; exec sleep 600")
    first = a_round(stream, 5, seconds=1.0)
    silent = a_round(stream, 5, seconds=0.001)
    go.touch()
    assert (first.unit_readings["u"].tolist(), first.cut) == ([1.0], True)
    assert (silent.n_readings, silent.cut) == (0, True)
    assert silent.facts["printed"] == "4 B in 1 line"
    assert a_round(stream, 1, seconds=60.0).unit_readings["u"].tolist() == [2.0]
    stream.close()
    assert left() == []


@pytest.mark.slow
def test_a_command_that_prints_faster_than_it_is_read_waits(left: Left) -> None:
    stream = shell("i=0; while :; do i=$((i + 1)); echo u $i; done")
    a_round(stream, 1)
    time.sleep(0.3)
    searched = a_round(stream, 5_000).unit_readings["u"]
    assert searched.tolist() == list(range(2, 5_002))
    stream.close()
    assert left() == []


@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 600",
        "trap '' TERM; while :; do sleep 0.02; done",
        "(trap '' TERM; while :; do sleep 0.02; done) & exec sleep 600",
        "exec >/dev/null; exec sleep 600",
        "sleep 600 >/dev/null 2>&1 &",
        # What it says when asked to end is more than a pipe holds.
        "trap 'head -c 5000000 /dev/zero; exit' TERM; while :; do sleep 0.02; done",
    ],
)
def test_nothing_is_left_after_it_was_closed(left: Left, script: str) -> None:
    stream = shell(f"echo u 1; {script}")
    a_round(stream, 1)
    began = time.monotonic()
    stream.close()
    stream.close()
    assert time.monotonic() - began < 60.0
    assert left() == []


def test_a_stop_ends_the_round_under_way_with_what_there_is(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchrigor.workloads.stream.ROUND_S", 300.0)
    stream = shell("echo u 1; exec sleep 600")
    timer = threading.Timer(0.5, stream.stop)
    timer.start()
    began = time.monotonic()
    finished = a_round(stream, 9)
    assert time.monotonic() - began < 60.0
    assert finished.unit_readings["u"].tolist() == [1.0]
    assert a_round(stream, 9).n_readings == 0  # not exhausted: it was stopped
    stream.close()
    assert left() == []


def run(stream: StreamWorkload, **options: Any) -> Any:
    return Session(Options(**{"budget_s": 20.0, **options})).run(stream)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        (ENDLESS, {"target": 1e6, "preset": "quick"}, StopReason.SATISFIED),
        (ENDLESS, {"budget_s": 0.4}, StopReason.TIME_BUDGET),
        (ENDLESS, {"budget_readings": 7}, StopReason.READINGS_BUDGET),
        ("exec sleep 600", {"budget_s": 1.3, "max_rejected": 1}, StopReason.TIME_BUDGET),
        ("seq -f 'u %.0f' 20", {}, StopReason.EXHAUSTED),
    ],
)
def test_a_session_ends_it_for_whatever_reason(
    left: Left, script: str, options: dict[str, Any], reason: StopReason
) -> None:
    record = run(shell(script), **options)
    assert record.decision.reason is reason
    assert left() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, WorkloadFailed("no")])
def test_errors_end_it_too(left: Left, error: BaseException) -> None:
    def interrupt(_: RoundPlan) -> None:
        raise error

    stream = shell(ENDLESS)
    take = stream.run

    def failing(plan: RoundPlan, recorder: RoundRecorder) -> None:
        take(plan, recorder)
        if plan.index == 1:
            raise error

    stream.run = failing  # type: ignore[method-assign,assignment]
    with pytest.raises((KeyboardInterrupt, WorkloadFailed)):
        run(stream)
    assert left() == []


def test_a_description_makes_the_same_stream_again() -> None:
    stream = StreamWorkload(
        ["a", "{work}"], picks=[UNITS], accept_exit=[0, 3], env={"A": "b"}, clock=WallClock()
    )
    described = json.loads(json.dumps({**stream.describe(), "name": "mine"}))
    assert described["kind"] == "stream"
    again = StreamWorkload.from_description(described, clock=WallClock())
    assert again.describe() == stream.describe()
    assert again.name == "a '{work}'"


@pytest.mark.parametrize(
    ("picks", "found"),
    [
        ([], "picks hold none, expected picks of unit readings"),
        ([UNITS, Pick.parse("x=column:0")], "picks hold 'x=column:0' for a whole round, expected"),
        ([UNITS, UNITS], "two picks for metric 'u'"),
    ],
)
def test_a_stream_needs_unit_readings_and_takes_no_others(picks: list[Pick], found: str) -> None:
    with pytest.raises(InvalidInput, match=found):
        StreamWorkload(["true"], picks=picks, clock=WallClock())


@pytest.mark.slow
def test_a_command_that_failed_is_over_though_a_child_holds_its_output(left: Left) -> None:
    stream = shell("sleep 30 & echo u 1; exit 3")
    assert a_round(stream, 5).unit_readings["u"].tolist() == [1.0]
    with pytest.raises(WorkloadFailed, match="exited with code 3"):
        a_round(stream, 5)


@pytest.mark.slow
def test_rates_of_a_stream_are_averaged_over_time(left: Left) -> None:
    rate = Metric(name="u", unit="req/s")
    stream = shell("while :; do echo u 1; echo u 3; sleep 0.001; done")
    session = Session(Options(target=1e-9, budget_readings=300), (rate,), seed=1)
    estimate = session.run(stream).estimate()
    assert estimate is not None
    assert "harmonic" not in estimate.method
