"""A suite of pytest in one side: which tests run, and what its own options cannot do."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.gate.suites import TIME

from benchrigor.errors import WorkloadFailed
from benchrigor.gate import Pass, Sources, measure_gate, measuring
from benchrigor.gate.suite import suite_of
from benchrigor.workloads import worktrees
from benchrigor.workloads.processes.own_signals import EndedBySignal

TESTS = """
def test_breaks(bench): bench(unknown)
def test_two(bench):
    bench(lambda: sum(range(100)))
    bench(lambda: sum(range(200)))
def test_last(bench): bench(lambda: None)
def test_lost(bench, no_such_fixture): pass
"""
CONFTEST = """
import sys
for word in sys.argv:
    if word.startswith("--benchmark-json="):
        open(word.partition("=")[2], "w").close()
"""


def test_a_suite_runs_the_tests_of_measurements_whatever_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure does not end it, nor does one before choose its tests; the second is of a test."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    (tmp_path / "test_s.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -x --lf\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)  # as pytest-benchmark does with no results
    words = (sys.executable, "-m", "pytest")
    with (
        suite_of(words, None) as suite,
        Sources(words=words, folders=[tmp_path, tmp_path]).sides() as sides,
    ):
        given: Any = {"share_s": 0.01, "limit_s": 60.0}
        whole = suite.run(sides["old"], None, **given)
        assert whole.failed.keys() == {"test_s.py::test_breaks", "test_s.py::test_lost"}
        assert "no_such_fixture" in whole.failed["test_s.py::test_lost"]
        two = {"test_s.py::test_two", "test_s.py::test_two #2"}
        assert whole.values.keys() == two | {"test_s.py::test_last"}
        chosen = suite.run(sides["old"], ["test_s.py::test_two #2"], **given)
        assert chosen.values.keys() == two
        assert chosen.spent_s("test_s.py::test_two #2") == chosen.spent_s("test_s.py::test_two")


def test_what_cannot_be_imported_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    (tmp_path / "test_s.py").write_text("import unknown_module\n")
    sources = Sources(words=(sys.executable, "-m", "pytest"), folders=[tmp_path, tmp_path])
    with pytest.raises(WorkloadFailed, match="No module named 'unknown_module'"):
        measure_gate(sources, budget_s=60.0)


def test_a_killed_gate_leaves_no_folder_after_the_next_start() -> None:
    program = """
        import os
        from benchrigor.gate.suite import suite_of
        with suite_of(["pytest"], None) as suite:
            print(suite._folder, flush=True)
            os._exit(1)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    left = Path(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip())
    assert left.is_dir()
    with worktrees.marked_folder():
        assert not left.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EndedBySignal(signal.SIGTERM)])
def test_an_interrupt_gives_the_result_so_far_and_other_signals_end_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: KeyboardInterrupt
) -> None:
    class Interrupted:
        can_choose = True
        runs = 0

        def run(self, *_: object, **__: object) -> Pass:
            self.runs += 1
            if self.runs > 12:
                raise error
            return Pass(elapsed_s=0.01, values={"a": 1.0}, metrics={"a": TIME})

    monkeypatch.setattr(measuring, "suite_of", lambda *_: nullcontext(Interrupted()))
    sources = Sources(words=("pytest",), folders=[tmp_path, tmp_path])
    ends = isinstance(error, EndedBySignal)
    with pytest.raises(EndedBySignal) if ends else nullcontext():
        assert measure_gate(sources).blocks == 4
    assert error.record.blocks == 4  # type: ignore[attr-defined]


def test_the_share_of_each_call_leaves_room_for_six_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes nearly a sixth of the budget has no time for longer calls."""
    shares, limits = list[float](), list[float]()

    class Slow:
        can_choose = True

        def run(self, *_: object, share_s: float, limit_s: float) -> Pass:
            shares.append(share_s)
            limits.append(limit_s)
            return Pass(elapsed_s=0.55, values={"a": 1.0}, metrics={"a": TIME})

    monkeypatch.setattr(measuring, "suite_of", lambda *_: nullcontext(Slow()))
    measure_gate(Sources(words=("pytest",), folders=[tmp_path, tmp_path]), budget_s=10.0)
    assert {*shares} == {measuring.SHARE_S}
    assert max(limits) <= 10.0  # what hangs later does not take a minute of a budget of seconds
