"""What works where Linux's capabilities are missing; `other_system` runs this file."""

import importlib
import pkgutil
import queue
import shlex
import sys
from pathlib import Path

import click.testing
import pytest

import benchrigor as br
from benchrigor import clocks
from benchrigor.cli import main
from benchrigor.errors import InvalidInput
from benchrigor.queues import Tap
from benchrigor.storage import Journal

IS_WINDOWS = sys.argv[1] == "win32"
JOB = """
def quick():
    return sum(range(100))

def slow():
    return sum(range(1000))
"""
# A busy machine may leave the target open, and may even leave no number.
RESULT = {0, 3, 4}
VERDICT = {*RESULT, 7}


def quick():
    return sum(range(100))


def slow():
    return sum(range(1000))


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Call the command line in a folder that holds a module and two files of readings."""
    (tmp_path / "other_job.py").write_text(JOB)
    for name, least in (("old.csv", 100), ("new.csv", 110)):
        readings = (least + step % 7 for step in range(300))
        (tmp_path / name).write_text("\n".join(map(str, readings)))
    monkeypatch.setenv("BENCHRIGOR_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "other_job", raising=False)
    runner = click.testing.CliRunner()
    return lambda line: runner.invoke(main, shlex.split(line))


def test_this_is_another_system():
    assert not hasattr(clocks.os, "sched_getaffinity")
    assert not Path("/proc/self/stat").exists()
    with pytest.raises(FileNotFoundError):
        Path("/proc/self/stat").read_text()


def test_every_module_can_be_imported():
    names = {module.name for module in pkgutil.walk_packages(br.__path__, "benchrigor.")}
    names.remove("benchrigor.__main__")
    assert len(names) > 200
    for name in names:
        assert importlib.import_module(name).__name__ == name


def test_functions_are_compared():
    assert br.measure_pair(quick, slow, budget_s=0.5).ratio.value > 1.0
    records = br.measure_many({"quick": quick, "slow": slow}, budget_s=0.3)
    assert br.compare_runs(records["quick"], records["slow"]).ratio.value > 1.0


def test_calls_that_last_too_long_are_ended_or_the_limit_is_refused():
    if IS_WINDOWS:
        with pytest.raises(InvalidInput, match="no timer"):
            br.measure(quick, timeout_s=1.0)
    else:
        assert br.measure(quick, budget_s=0.1, timeout_s=1.0).readings().size > 1


def test_segments_are_recorded():
    with br.segments(program="sums") as recorder:
        for _ in range(100):
            with recorder.segment("sum"):
                slow()
    assert str(recorder.interference().light) in {"green", "yellow", "red", "grey"}


def test_queues_are_tapped_or_what_is_missing_is_named():
    if IS_WINDOWS:
        with pytest.raises(InvalidInput, match=r"fcntl\.flock"):
            Tap(queue.Queue(), name="work")
    else:
        with Tap(queue.Queue(), name="work") as tap:
            tap.queue.put(1)


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("analyze old.csv --unit ms", {0}),
        ("changes old.csv", {0}),
        ("compare old.csv new.csv --unit ms --fail-on worse", {7}),
        ("run --budget 0.3 other_job:quick other_job:slow", VERDICT),
        ("ab --budget 0.5 other_job:quick other_job:slow", VERDICT),
        ("timeit --budget 0.3 sum(range(100))", RESULT),
        ("doctor", RESULT),
    ],
)
def test_verbs_of_files_and_functions_work(cli, line, codes):
    result = cli(line)
    assert result.exit_code in codes, result.output


def test_a_stored_run_is_listed_shown_explained_planned_exported_and_resumed(cli):
    kept = cli("run --budget 0.3 other_job:quick")
    assert kept.exit_code in RESULT
    with Journal("runs.sqlite") as journal:
        (run_id,) = (stored["run_id"] for stored in journal.runs())
    for words in (
        "list",
        "show {}",
        "explain {}",
        "plan {}",
        "export {} -o out",
        "resume {} --budget 0.6",
    ):
        result = cli(words.format(run_id))
        assert result.exit_code in RESULT, (words, result.output)


@pytest.mark.parametrize(
    "line",
    [
        "run --budget 0.3 -- {python} -c pass",
        "run --budget 0.3 --fresh other_job:quick",
        "ab --budget 0.3 --fresh other_job:quick other_job:slow",
        "commands --budget 0.3 true 'sleep 0'",
    ],
)
def test_processes_are_measured_or_what_is_missing_is_named(cli, line):
    result = cli(line.format(python=sys.executable))
    if IS_WINDOWS:
        assert result.exit_code == 2
        missing = "os.killpg, os.wait4, select.poll, signal.SIGKILL"
        assert missing in result.output
        assert not Path("runs.sqlite").exists()
    else:
        assert result.exit_code in VERDICT, result.output


def test_the_fixture_measures_and_compares(bench):
    assert bench.ratio(quick, slow).value > 1.0


def test_the_fixture_returns_what_the_function_returns(bench):
    assert bench(quick) == 4950
    assert bench.record.readings().size > 1
