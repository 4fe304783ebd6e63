"""The table of bad input: what goes in, and what must come out.

A row fails when the bad input reaches numpy: when numpy raises, or warns, on the way.
"""

import sqlite3
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import benchrigor as br
from benchrigor import stats
from benchrigor.clocks import WallClock
from benchrigor.errors import (
    BenchrigorError,
    InvalidInput,
    NotEstimable,
    StoreFailed,
    WorkloadFailed,
)
from benchrigor.model import Code, Notice
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock
from benchrigor.workloads import CommandWorkload

Notices = Sequence[Notice]


def session_of(*values: object) -> Notices:
    """Tell rounds of the same unit readings and return the Notices of the result."""
    session = br.Session(br.Options(max_rounds=1), seed=1)
    while (plan := session.ask()) is not None:
        session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))  # type: ignore[dict-item]
    return session.result().notices


def fresh(folder: Path, source: str, **given: Any) -> Notices:
    """Measure the function ``work`` of a module in fresh interpreters."""
    (folder / "job.py").write_text(source)
    workload = br.InterpreterWorkload("job:work", cwd=folder, **given)
    return br.Session(br.Options(max_rounds=2), seed=1).run(workload).notices


async def later() -> None:
    """Do nothing, when it is awaited."""


def endless() -> Notices:
    """Measure a command that goes on when the budget is spent."""
    workload = CommandWorkload(["sleep", "60"], clock=WallClock())
    return br.Session(br.Options(budget_s=0.2)).run(workload).notices


def kept_in(path: Path) -> None:
    """Measure into a store; nothing is measured when the store cannot be used."""
    calls: list[int] = []
    try:
        br.measure(lambda: calls.append(1), seed=1, store=path)
    finally:
        assert calls == []


def below_a_file(folder: Path) -> None:
    """Measure into a journal below a file."""
    (folder / "file").touch()
    kept_in(folder / "file" / "runs.sqlite")


def fill(folder: Path) -> None:
    """Run a session on a disk that is full after three rounds or so."""
    connect = sqlite3.connect

    def connect_to_small_disk(*words: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*words, **options)
        connection.execute("PRAGMA max_page_count = 60")
        return connection

    session = br.Session(br.Options(max_rounds=500), seed=1, store=folder / "runs.sqlite")
    with mock.patch("sqlite3.connect", connect_to_small_disk):
        while (plan := session.ask()) is not None:
            values = np.linspace(1.0, 2.0, 5000)
            session.tell(br.Round(plan=plan, elapsed_ns=1, unit_readings={"time": values}))


DEAF = "def work(): import os; os.closerange(3, 99)"
CHANGES = br.ChangePoints(indices=(70, 30), n=100, level=0.01, inflation=1.0)
FIRST = br.RoundPlan(index=0)

READINGS: dict[str, tuple[object, str]] = {
    "an empty list": ([], "values"),
    "NaN": ([1.0, float("nan")], "values[1]"),
    "infinity": ([1.0, 2.0, float("inf")], "values[2]"),
    "minus infinity in an array": (np.array([-np.inf, 1.0]), "values[0]"),
    "a number too large to square": ([1e200, 1.0], "values[0]"),
    "a string": ("1.0 2.0", "'1.0 2.0'"),
    "a list with a string": ([1.0, "2"], "values[1]"),
    "None among the values": ([1.0, None], "values[1]"),
    "nothing at all": (None, "None"),
    "a single number": (3.0, "3.0"),
    "a 2-D array": (np.ones((3, 4)), "(3, 4)"),
    "a nested list": ([[1.0, 2.0], [3.0, 4.0]], "values[0]"),
    "a ragged list": ([1.0, [2.0]], "values[1]"),
    "complex numbers": ([1.0, 2j], "values[1]"),
    "an array of strings": (np.array(["1", "2"]), "values[0]"),
    "an array of objects": (np.array([1.0, object()], dtype=object), "values[1]"),
    "an array of complex numbers": (np.array([1 + 1j]), "values[0]"),
    "a masked array": (np.ma.masked_array([1.0, 2.0], [False, True]), "masked"),
    "a dict": ({"time": 1.0}, "{'time': 1.0}"),
    "dates": (np.array(["2026-01-01"], dtype="datetime64[D]"), "values[0]"),
}
FUNCTIONS = (
    *(stats.estimate_mean, stats.detect_changes, stats.find_stable_phase),
    *(stats.merge_subsessions, stats.autocorrelation),
)
TABLE: list[tuple[str, Callable[[Path], object], type[BenchrigorError] | Code, str]] = [
    ("one reading", lambda _: stats.estimate_mean([1.0]), NotEstimable, "1 reading"),
    ("an empty round", lambda _: session_of(), InvalidInput, "unit_readings['time']"),
    ("one reading told", lambda _: session_of(1.0), Code.TOO_FEW_READINGS, "1 reading"),
    ("two readings told", lambda _: session_of(1.0, 1.1), Code.FEW_READINGS, "2 readings"),
    ("constant readings told", lambda _: session_of(*[2.0] * 50), Code.CONSTANT, "are 2"),
    ("NaN told", lambda _: session_of(1.0, float("nan")), InvalidInput, "[1]"),
    ("a 2-D array told", lambda _: session_of([1.0]), InvalidInput, "dimensions"),
    ("a negative duration told", lambda _: session_of(1.0, -3.0), InvalidInput, "-3.0 s"),
    ("a negative time", lambda _: br.Round(plan=FIRST, elapsed_ns=-5), InvalidInput, "-5"),
    (
        "a reading that is no number",
        lambda _: br.Round(plan=FIRST, elapsed_ns=5, readings={"x": "fast"}),  # type: ignore[dict-item]
        InvalidInput,
        "readings['x'][0]",
    ),
    ("endless rounds", lambda _: br.Options(max_rounds=float("inf")), InvalidInput, "inf"),  # type: ignore[arg-type]
    ("NaN readings", lambda _: br.Options(budget_readings=float("nan")), InvalidInput, "nan"),  # type: ignore[arg-type]
    ("half a count", lambda _: br.Options(min_rounds=1.5), InvalidInput, "min_rounds"),  # type: ignore[arg-type]
    ("a listed statistic", lambda _: br.Options(statistic=["mean"]), InvalidInput, "['mean']"),  # type: ignore[arg-type]
    ("a target of 0", lambda _: br.Options(target=0), InvalidInput, "target"),
    ("a confidence of 1", lambda _: br.Options(confidence=1), InvalidInput, "confidence"),
    (
        "a width that is no number",
        lambda _: br.Metric(name="x", absolute_half_width="wide"),  # type: ignore[arg-type]
        InvalidInput,
        "'wide'",
    ),
    ("a direction", lambda _: br.Metric(name="x", direction="sideways"), InvalidInput, "sideways"),  # type: ignore[arg-type]
    (
        "change points that are out of order",
        lambda _: stats.find_stable_phase([1.0] * 100, change_points=CHANGES),
        InvalidInput,
        "(70, 30)",
    ),
    ("a number for a detector", lambda _: br.Session(detector=0.01), InvalidInput, "0.01"),  # type: ignore[arg-type]
    ("a command beyond the budget", lambda _: endless(), Code.CUT_ROUND, "200 ms"),
    ("a journal below a file", below_a_file, StoreFailed, "file/runs.sqlite"),
    ("a folder in place of the journal", kept_in, StoreFailed, "database file"),
    ("a file system without files", lambda _: kept_in(Path("/proc/a")), StoreFailed, "/proc/a"),
    ("a full disk", fill, StoreFailed, "full"),
    (
        "a module that hangs when it is imported",
        lambda folder: fresh(folder, "import time; time.sleep(60)", timeout_s=0.5),
        WorkloadFailed,
        "500 ms",
    ),
    ("an interpreter without a pipe", lambda folder: fresh(folder, DEAF), WorkloadFailed, "before"),
    (
        "a setup that returns something else",
        lambda _: br.measure(abs, setup=lambda: (1, 2, 3), budget_s=0.01),
        InvalidInput,
        "(1, 2, 3)",
    ),
    (
        "a setup whose arguments do not fit",
        lambda _: br.measure(abs, setup=lambda: ((1, 2), {}), budget_s=0.01),
        WorkloadFailed,
        "TypeError",
    ),
    ("no loop", lambda _: br.measure_async(later).send(None), InvalidInput, "asyncio"),
    (
        "a hook of a place that nobody knows",
        lambda _: CommandWorkload(["true"], clock=WallClock(), hooks={"before": ["true"]}),
        InvalidInput,
        "'before'",
    ),
]


def assert_not_from_numpy(error: BaseException | None) -> None:
    while error is not None:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert not any("numpy" in name for name in files), f"reached numpy: {error!r}"
        error = error.__cause__ or error.__context__


def check_row(
    action: Callable[[], object], expected: type[BenchrigorError] | Code, named: str
) -> None:
    if isinstance(expected, Code):
        notices = action()
        assert isinstance(notices, tuple)
        (sentence,) = (each.sentence for each in notices if each.code is expected)
        assert named in sentence
        return
    with pytest.raises(expected) as caught:
        action()
    assert type(caught.value) is expected
    assert named in str(caught.value)
    assert_not_from_numpy(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", READINGS)
def test_bad_readings_are_named_by_every_function(
    function: Callable[[object], object], name: str
) -> None:
    values, named = READINGS[name]
    with np.errstate(all="raise"):
        check_row(lambda: function(values), InvalidInput, named)


@pytest.mark.parametrize(
    ("action", "expected", "named"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_bad_input_is_named(
    action: Callable[[Path], object],
    expected: type[BenchrigorError] | Code,
    named: str,
    tmp_path: Path,
) -> None:
    with np.errstate(all="raise"):
        check_row(lambda: action(tmp_path), expected, named)


def test_a_full_disk_keeps_the_rounds_before(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed):
        fill(tmp_path)
    journal = Journal(tmp_path / "runs.sqlite")
    (run,) = journal.runs()
    rounds = journal.load(run["run_id"]).rounds
    assert len(rounds) >= 3
    assert [each.plan.index for each in rounds] == list(range(len(rounds)))


def test_finished_rounds_stay_in_the_store_when_the_workload_fails(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    clock = FakeClock(cost_ns=1000)
    calls = iter(range(10**9))

    def breaks_later() -> None:
        clock.advance(300_000_000)
        if next(calls) == 12:
            raise OSError("gone")

    with pytest.raises(WorkloadFailed, match="gone"):
        br.measure(breaks_later, clock=clock, store=path, seed=1)
    (run,) = Journal(path).runs()
    record = Journal(path).load(run["run_id"])
    assert len(record.rounds) >= 2
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.WORKLOAD_FAILED
