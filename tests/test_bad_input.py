"""The table of bad input: what goes in, what must come out, and the phrase that names it.

A row fails when the bad input reaches numpy: when numpy raises, or warns, on the way.
"""

import asyncio
import sqlite3
import sys
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
    ClockFailed,
    InvalidInput,
    NotEstimable,
    PlanMismatch,
    StoreFailed,
    WorkloadFailed,
)
from benchrigor.model import Code, Notice, RunRecord
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock
from benchrigor.workbench.maps.life_cycle import LifeCycle, Server
from benchrigor.workbench.maps.map_file import read_map
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.designs import d_optimal
from benchrigor.workbench.surfaces.factors import Factor, Space
from benchrigor.workbench.surfaces.samples import Sample
from benchrigor.workloads import CallableWorkload, CommandWorkload, Pick

Notices = Sequence[Notice]


class Ticking(FakeClock):
    """A clock of which every look costs a microsecond."""

    def __init__(self) -> None:
        super().__init__(cost_ns=1000)


def session_of(values: object, rounds: int = 1) -> Notices:
    """Tell rounds of the same unit readings and return the Notices of the result."""
    session = br.Session(br.Options(max_rounds=rounds), seed=1)
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


def python(code: str, **given: object) -> Notices:
    """Measure a Python one-liner as a command."""
    argv = [sys.executable, "-c", code]
    workload = CommandWorkload(argv, clock=Ticking(), **given)  # type: ignore[arg-type]
    options = br.Options(max_rounds=2)
    return br.Session(options, seed=1).run(workload).notices


def timed(func: Callable[[], object], clock: FakeClock) -> Notices:
    workload = CallableWorkload(func, clock=clock)
    return br.Session(br.Options(max_rounds=2), seed=1, clock=clock).run(workload).notices


def raising() -> None:
    raise ZeroDivisionError("a unit of work failed")


def corrupt(folder: Path) -> Path:
    path = folder / "runs.sqlite"
    path.write_bytes(b"this is no database " * 500)
    return path


def kept_in(path: Path) -> None:
    """Measure into a store; nothing is measured when the store cannot be used."""
    calls: list[int] = []
    try:
        br.measure(lambda: calls.append(1), seed=1, store=path)
    finally:
        assert calls == []


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


READS_X = (Pick.parse("x=regex:x=([0-9.]+)"),)
TALKATIVE = "import sys\nfor _ in range(10): sys.stdout.buffer.write(b'junk line\\n' * 100_000)"
SUICIDE = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

READINGS = [
    ("an empty list", [], "values is empty"),
    ("NaN", [1.0, float("nan")], r"values\[1\] is nan"),
    ("infinity", [1.0, 2.0, float("inf")], r"values\[2\] is inf"),
    ("minus infinity in an array", np.array([-np.inf, 1.0]), r"values\[0\] is -inf"),
    ("a number too large to square", [1e200, 1.0], r"values\[0\] is 1e\+200"),
    ("a string", "1.0 2.0", "values is '1.0 2.0'"),
    ("a list with a string", [1.0, "2"], r"values\[1\] is '2'"),
    ("None among the values", [1.0, None], r"values\[1\] is None"),
    ("nothing at all", None, "values is None"),
    ("a single number", 3.0, "values is 3.0"),
    ("a 2-D array", np.ones((3, 4)), r"values has shape \(3, 4\)"),
    ("a nested list", [[1.0, 2.0], [3.0, 4.0]], r"values\[0\] is \[1.0, 2.0\]"),
    ("a ragged list", [1.0, [2.0]], r"values\[1\] is \[2.0\]"),
    ("complex numbers", [1.0, 2j], r"values\[1\] is 2j"),
    ("an array of strings", np.array(["1", "2"]), r"values\[0\] is np.str_\('1'\)"),
    ("an array of objects", np.array([1.0, object()], dtype=object), r"values\[1\] is <object"),
    ("an array of complex numbers", np.array([1 + 1j]), r"values\[0\] is np.complex128"),
    ("a masked array", np.ma.masked_array([1.0, 2.0], [False, True]), "masked"),
    ("a dict", {"time": 1.0}, "values is {'time': 1.0}"),
    ("dates", np.array(["2026-01-01"], dtype="datetime64[D]"), r"values\[0\] is"),
]
FUNCTIONS = {
    "estimate_mean": stats.estimate_mean,
    "detect_changes": stats.detect_changes,
    "find_stable_phase": stats.find_stable_phase,
    "merge_subsessions": stats.merge_subsessions,
    "autocorrelation": stats.autocorrelation,
}

TABLE: list[tuple[str, Callable[[Path], object], type[BenchrigorError] | Code, str]] = [
    ("one reading", lambda _: stats.estimate_mean([1.0]), NotEstimable, "1 reading, expected"),
    (
        "two readings",
        lambda _: stats.estimate_mean([1.0, 2.0]).notices,
        Code.FEW_READINGS,
        "Only 2 readings",
    ),
    (
        "constant readings",
        lambda _: stats.estimate_mean([5.0] * 40).notices,
        Code.CONSTANT,
        "All 40 readings are 5",
    ),
    ("an empty round", lambda _: session_of([]), InvalidInput, r"unit_readings\['time'\] is empty"),
    ("one reading told", lambda _: session_of([1.0]), Code.TOO_FEW_READINGS, "1 reading, expected"),
    ("two readings told", lambda _: session_of([1.0, 1.1]), Code.FEW_READINGS, "Only 2 readings"),
    ("constant readings told", lambda _: session_of([2.0] * 50), Code.CONSTANT, "are 2"),
    ("NaN told", lambda _: session_of([1.0, float("nan")]), InvalidInput, r"\[1\] is nan"),
    ("a 2-D array told", lambda _: session_of([[1.0]]), InvalidInput, "two dimensions"),
    ("a negative duration told", lambda _: session_of([1.0, -3.0]), InvalidInput, r"is -3\.0 s"),
    (
        "a negative time of a round",
        lambda _: br.Round(plan=br.RoundPlan(index=0), elapsed_ns=-5),
        InvalidInput,
        "elapsed_ns is -5",
    ),
    (
        "a reading that is no number",
        lambda _: br.Round(plan=br.RoundPlan(index=0), elapsed_ns=5, readings={"x": "fast"}),  # type: ignore[dict-item]
        InvalidInput,
        r"readings\['x'\]\[0\] is 'fast'",
    ),
    ("an endless count", lambda _: br.Options(max_rounds=float("inf")), InvalidInput, "is inf"),  # type: ignore[arg-type]
    ("a count of NaN", lambda _: br.Options(budget_readings=float("nan")), InvalidInput, "is nan"),  # type: ignore[arg-type]
    ("half a count", lambda _: br.Options(min_rounds=1.5), InvalidInput, "min_rounds is 1.5"),  # type: ignore[arg-type]
    (
        "a statistic in a list",
        lambda _: br.Options(statistic=["mean"]),  # type: ignore[arg-type]
        InvalidInput,
        r"statistic is \['mean'\]",
    ),
    (
        "a width that is no number",
        lambda _: br.Metric(name="x", absolute_half_width="wide"),  # type: ignore[arg-type]
        InvalidInput,
        "is 'wide'",
    ),
    (
        "a direction sideways",
        lambda _: br.Metric(name="x", direction="sideways"),  # type: ignore[arg-type]
        InvalidInput,
        "'sideways'",
    ),
    (
        "change points that are out of order",
        lambda _: stats.find_stable_phase(
            [1.0] * 100,
            change_points=br.ChangePoints(indices=(70, 30), n=100, level=0.01, inflation=1.0),
        ),
        InvalidInput,
        r"\(70, 30\)",
    ),
    ("a target of 0", lambda _: br.Options(target=0), InvalidInput, "target is 0,"),
    ("a confidence of 1", lambda _: br.Options(confidence=1), InvalidInput, "confidence is 1,"),
    (
        "a confidence of 1 for a mean",
        lambda _: stats.estimate_mean([1.0, 2.0], confidence=1.0),
        InvalidInput,
        r"confidence is 1\.0",
    ),
    (
        "a target of 0 for a prediction",
        lambda _: stats.required_readings(stats.estimate_mean([1.0, 2.0]), 0.0),
        InvalidInput,
        r"target is 0\.0",
    ),
    ("a level of 0", lambda _: stats.detect_changes([1.0], level=0.0), InvalidInput, "level is 0"),
    (
        "a segment of 1",
        lambda _: stats.detect_changes([1.0], min_segment=1),
        InvalidInput,
        "min_segment is 1",
    ),
    (
        "a number for a detector",
        lambda _: br.Session(detector=0.01),  # type: ignore[arg-type]
        InvalidInput,
        "detector is 0.01, expected a function",
    ),
    (
        "a function that raises",
        lambda _: timed(raising, Ticking()),
        WorkloadFailed,
        "ZeroDivisionError: a unit of work failed",
    ),
    (
        "a command that hangs",
        lambda _: python("import time; time.sleep(60)", timeout_s=0.3),
        WorkloadFailed,
        r"longer than 0\.3 s",
    ),
    (
        "a command that goes on when the budget is spent",
        lambda _: (
            br.Session(br.Options(budget_s=0.2))
            .run(CommandWorkload(["sleep", "60"], clock=WallClock()))
            .notices
        ),
        Code.CUT_ROUND,
        "Round 0 was ended after 200 ms, because the budget was spent: nothing of it counts",
    ),
    (
        "a command that prints nothing",
        lambda _: python("pass", picks=READS_X),
        WorkloadFailed,
        "printed nothing",
    ),
    (
        "a command that exits with an error",
        lambda _: python("import sys; sys.exit('no such file: big.log')"),
        WorkloadFailed,
        "(?s)exited with code 1.*no such file: big.log",
    ),
    (
        "a command that prints 10 MB of junk",
        lambda _: python(TALKATIVE, picks=READS_X),
        WorkloadFailed,
        r"printed 10 MB",
    ),
    (
        "a command that kills itself",
        lambda _: python(SUICIDE),
        WorkloadFailed,
        "was killed by SIGKILL",
    ),
    (
        "a command that is not there",
        lambda _: CommandWorkload(["/no/such/program"], clock=Ticking()).run(
            br.RoundPlan(index=0),
            None,  # type: ignore[arg-type]
        ),
        WorkloadFailed,
        "/no/such/program",
    ),
    (
        "a command that prints no number",
        lambda _: python("print('x=1..2')", picks=READS_X),
        WorkloadFailed,
        r"line 1 .*'1\.\.2' is picked for metric 'x'",
    ),
    (
        "a clock that goes backwards",
        lambda _: timed(lambda: None, FakeClock(script=range(10**6, 0, -1))),
        ClockFailed,
        "went backwards by",
    ),
    (
        "a clock that stands still",
        lambda _: timed(lambda: None, FakeClock()),
        ClockFailed,
        "st(ands|ood) still",
    ),
    (
        "a record of another program",
        lambda _: RunRecord.from_dict({"name": "x"}),
        InvalidInput,
        "no schema version",
    ),
    (
        "a record of a newer version",
        lambda _: RunRecord.from_dict({"schema": 99}),
        InvalidInput,
        "schema 99",
    ),
    (
        "a corrupt journal",
        lambda folder: kept_in(corrupt(folder)),
        StoreFailed,
        r"runs\.sqlite: file is not a database",
    ),
    (
        "a journal below a file",
        lambda folder: kept_in(corrupt(folder) / "runs.sqlite"),
        StoreFailed,
        r"runs\.sqlite/runs\.sqlite: .*choose another path",
    ),
    (
        "a folder in place of the journal",
        kept_in,
        StoreFailed,
        "unable to open database file",
    ),
    (
        "a file system that takes no files",
        lambda _: kept_in(Path("/proc/runs.sqlite")),
        StoreFailed,
        r"/proc/runs\.sqlite",
    ),
    ("a full disk", fill, StoreFailed, "full.*free some disk space"),
    (
        "a lambda for a fresh interpreter",
        lambda _: br.InterpreterWorkload(lambda: None),
        InvalidInput,
        "is a lambda: a fresh interpreter cannot import it; move it into a module",
    ),
    (
        "a module that raises when it is imported",
        lambda folder: fresh(folder, "1 / 0"),
        WorkloadFailed,
        "job:work raised ZeroDivisionError",
    ),
    (
        "a module that exits when it is imported",
        lambda folder: fresh(folder, "raise SystemExit(3)"),
        WorkloadFailed,
        "job:work raised SystemExit: 3",
    ),
    (
        "a module that hangs when it is imported",
        lambda folder: fresh(folder, "import time; time.sleep(60)", timeout_s=0.5),
        WorkloadFailed,
        "ran longer than 0.5 s and was killed",
    ),
    (
        "a fresh interpreter that is killed",
        lambda folder: fresh(folder, "def work(): import os; os.kill(os.getpid(), 9)"),
        WorkloadFailed,
        "was killed by signal 9 before it told its readings",
    ),
    (
        "a fresh interpreter whose pipe is closed",
        lambda folder: fresh(folder, "def work(): import os; os.closerange(3, 99)"),
        WorkloadFailed,
        "before it told its readings",
    ),
    (
        "an interpreter that is missing",
        lambda _: br.InterpreterWorkload("job:work", python="python2.0"),
        InvalidInput,
        "python is 'python2.0', expected the path or name of an interpreter",
    ),
    (
        "a setup that returns something else",
        lambda _: br.measure(abs, setup=lambda: (1, 2, 3), budget_s=0.01),
        InvalidInput,
        r"setup of abs returned \(1, 2, 3\), expected nothing, or \(args, kwargs\)",
    ),
    (
        "a setup whose arguments do not fit",
        lambda _: br.measure(abs, setup=lambda: ((1, 2), {}), budget_s=0.01),
        WorkloadFailed,
        "abs raised TypeError",
    ),
    (
        "a plain function to be awaited",
        lambda _: asyncio.run(br.measure_async(lambda: None)),  # type: ignore[arg-type, return-value]
        InvalidInput,
        "expected a coroutine function: measure takes others",
    ),
    (
        "an await without a loop",
        lambda _: br.measure_async(later).send(None),
        InvalidInput,
        "no event loop of asyncio runs here",
    ),
    (
        "a command whose hook fails",
        lambda _: python("pass", hooks={"prepare": ["false"]}),
        WorkloadFailed,
        "prepare false exited with code 1",
    ),
    (
        "a hook of a place that nobody knows",
        lambda _: python("pass", hooks={"before": ["true"]}),
        InvalidInput,
        "hooks has 'before', expected some of setup, prepare, conclude, cleanup",
    ),
]


def assert_not_from_numpy(error: BaseException | None) -> None:
    while error is not None:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert not any("numpy" in name for name in files), f"reached numpy: {error!r}"
        error = error.__cause__ or error.__context__


def check_row(
    action: Callable[[], object], expected: type[BenchrigorError] | Code, phrase: str
) -> None:
    if isinstance(expected, Code):
        notices = action()
        assert isinstance(notices, tuple)
        sentences = [each.sentence for each in notices if each.code is expected]
        assert len(sentences) == 1, f"{expected} not in {notices}"
        assert phrase in sentences[0]
        return
    with pytest.raises(expected, match=phrase) as caught:
        action()
    assert type(caught.value) is expected
    assert_not_from_numpy(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("values", "phrase"), [row[1:] for row in READINGS], ids=[r[0] for r in READINGS]
)
def test_bad_readings_are_named_by_every_function(
    function: str, values: object, phrase: str
) -> None:
    with np.errstate(all="raise"):
        check_row(lambda: FUNCTIONS[function](values), InvalidInput, phrase)  # type: ignore[operator]


def told(*answer: float) -> object:
    """Tell the first sample of a map an answer."""
    search = SurfaceMap([Factor("a", levels=[1, 2, 4])], design="full")
    return search.tell(search.ask(), answer)  # type: ignore[arg-type]


SPACE = Space([Factor("a", levels=[1, 2, 4])])


def predicted(system: str) -> object:
    """Predict the answer of a file system from those of two."""
    search = SurfaceMap([Factor("fs", levels=["ext4", "xfs"])], design="full")
    while (sample := search.ask()) is not None:
        search.tell(sample, (5.0, 4.0, 6.0))
    return search.result().predict({"fs": system}, "response")


def tell_unknown() -> None:
    """Tell a map of a sample that it did not ask for."""
    search = SurfaceMap([Factor("a", levels=[1, 2, 4])], design="full")
    search.tell(Sample(id=7, point={"a": 1}), (5.0, 4.0, 6.0))


def await_nothing() -> object:
    """Wait for a server that takes no connection."""
    life = LifeCycle(start=["sleep", "9"], ready_command=["false"], timeouts={"ready": 0.1})
    return Server(life, {}).__enter__()


def map_file(folder: Path, text: str) -> object:
    """Read the file of a map."""
    (folder / "map.toml").write_text(text)
    return read_map(folder / "map.toml")


MAPS = [
    ("a factor without levels", lambda _: Factor("a", levels=[]), "levels of a are"),
    ("a factor with one level", lambda _: Factor("a", levels=[4]), "expected at least two"),
    ("the log of 0", lambda _: Factor("a", levels=[0, 1], scale="log2"), "a level of a is 0"),
    ("equal levels", lambda _: Factor("a", levels=[1, 1.0]), "levels of a are"),
    ("an answer below 0", lambda _: told(-1.0, -2.0, 1.0), "response.value is -1.0"),
    ("an infinite answer", lambda _: told(np.inf, 1.0, np.inf), "inf"),
    ("low above high", lambda _: told(5.0, 6.0, 4.0), "6.0"),
    ("an unseen category", lambda _: predicted("zfs"), "fs is 'zfs', expected 'ext4' or 'xfs'"),
    ("fewer samples than terms", lambda _: d_optimal(SPACE, 2, seed=1), "samples is 2, .* from 3"),
    (
        "fewer samples than terms in a file",
        lambda folder: map_file(
            folder,
            '[factors.a]\nlevels = [1, 2, 4]\n[response]\ncommand = "x {a}"\n'
            '[design]\nkind = "d-optimal"\nsamples = 2',
        ),
        "map.toml:7: samples is 2, expected a whole number from 3, the terms of the model",
    ),
    (
        "a level that makes no port",
        lambda folder: map_file(
            folder,
            '[factors.a]\nlevels = [1, 777]\n[response]\ncommand = "x {a}"\n'
            '[server]\nstart = "y"\nport = "80{a}"',
        ),
        "map.toml:7: port is '80777', expected a number from 1 to 65535",
    ),
    (
        "a place of no factor",
        lambda folder: map_file(
            folder, '[factors.a]\nlevels = [1, 2]\n[response]\ncommand = "x {b}"'
        ),
        r"map.toml:4: response.command.1 has a place for b(.|\n)*map.toml:1: a is unused|"
        r"map.toml:1: a is unused(.|\n)*map.toml:4: response.command",
    ),
]


@pytest.mark.parametrize(("action", "phrase"), [row[1:] for row in MAPS], ids=[r[0] for r in MAPS])
def test_bad_input_of_maps_is_named(
    action: Callable[[Path], object], phrase: str, tmp_path: Path
) -> None:
    with np.errstate(all="raise"):
        check_row(lambda: action(tmp_path), InvalidInput, phrase)


TABLE += [
    ("a sample never asked for", lambda _: tell_unknown(), PlanMismatch, "was never asked for"),
    (
        "a server that is never ready",
        lambda _: await_nothing(),
        WorkloadFailed,
        "ready took longer than 100 ms: false: exited with code 1",
    ),
]
DEAR = {"a command that prints 10 MB of junk"}


@pytest.mark.parametrize(
    ("action", "expected", "phrase"),
    [
        pytest.param(*row, id=name, marks=[pytest.mark.slow] * (name in DEAR))
        for name, *row in TABLE
    ],
)
def test_bad_input_is_named(
    action: Callable[[Path], object],
    expected: type[BenchrigorError] | Code,
    phrase: str,
    tmp_path: Path,
) -> None:
    with np.errstate(all="raise"):
        check_row(lambda: action(tmp_path), expected, phrase)


@pytest.mark.slow
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
    clock = Ticking()
    calls = iter(range(10**9))

    def breaks_later() -> None:
        clock.advance(300_000_000)
        if next(calls) == 12:
            raise OSError("the device is gone")

    with pytest.raises(WorkloadFailed, match="the device is gone"):
        br.measure(breaks_later, clock=clock, store=path, seed=1)
    (run,) = Journal(path).runs()
    record = Journal(path).load(run["run_id"])
    assert len(record.rounds) >= 2
    assert record.decision is not None
    assert record.decision.reason is br.StopReason.WORKLOAD_FAILED
