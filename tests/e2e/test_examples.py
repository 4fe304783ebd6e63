"""Each example runs with a small budget and gives what it promises."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import benchrigor as br

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_refused(record: br.RunRecord) -> bool:
    """Return whether the run says why it has no number, as one on a busy machine may."""
    return any(notice.severity == "refusal" for notice in record.notices)


@pytest.mark.slow
def test_sqlite_inserts_take_microseconds_to_milliseconds() -> None:
    record = load("sqlite_insert").main(1.0)
    estimate = record.estimate()
    if estimate is None:
        assert is_refused(record)
    else:
        assert estimate.low < estimate.value < estimate.high
        assert 1e-6 < estimate.value < 1.0
        assert record.readings().size >= 100


@pytest.mark.slow
def test_a_compression_command_is_measured_by_its_wall_time() -> None:
    record = load("compress").main(1.0, lines=2000)
    assert record.facts["exit_code"] == 0
    estimate = record.estimate()
    if estimate is None:
        assert is_refused(record)
    else:
        assert 1e-4 < estimate.value < 5.0


@pytest.mark.slow
def test_a_compression_command_has_a_speed_apart_from_its_overhead() -> None:
    record = load("compress_growing").main(2.0, size=20_000_000)
    analysis = record.analysis()
    assert analysis is not None
    assert analysis.kind == "work amounts"
    assert analysis.n_kept >= 3
    if analysis.estimate is None:
        assert is_refused(record)
    else:
        assert 1e5 < analysis.estimate.value < 1e10


@pytest.mark.slow
def test_another_harness_is_wrapped_by_ask_and_tell() -> None:
    record = load("wrap_timeit").main(1.0)
    estimate = record.estimate()
    if estimate is None:
        assert is_refused(record)
    else:
        assert 1e-5 < estimate.value < 0.1
    assert record.provenance is None


def test_a_recording_is_cut_and_estimated() -> None:
    stable, estimate = load("analyse_recording").main()
    assert stable.start is not None
    assert stable.start > 0
    assert stable.phases[0].label == "warm-up"
    assert estimate.low < estimate.value < estimate.high
    assert estimate.n < 3000


@pytest.mark.slow
def test_what_a_loop_lost_is_told_from_its_one_run() -> None:
    found, injected = load("interference_of_a_loop").main(60)
    assert found.n == 120
    assert 0.0 < injected < 100.0
    doubtful = any(each.severity == "warning" for each in found.notices)
    assert doubtful or found.total_percent > 0.5 * injected


@pytest.mark.slow
def test_the_pytest_file_measures_in_its_own_pytest() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--bench-budget", "0.3", str(EXAMPLES / "test_json.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    table = done.stdout.split(" benchrigor ==", 1)[1]
    assert "test_dumping_and_loading_gives_the_document_back" in table
    assert sum(map(table.count, ("s [", "s ±", "  ~"))) >= 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gzip") is None, reason="the machine has no gzip command")
def test_the_command_line_measures_gzip(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("line\n" * 10_000)
    command = [sys.executable, "-m", "benchrigor", "run", "--store", str(tmp_path / "r.sqlite")]
    command += ["--target", "50%", "--max-rounds", "15", "--", "gzip", "-k", "-f", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 3, 4}, done.stderr
    assert ("95% confidence interval [" in done.stdout) == (
        done.returncode != 4
    )  # on a busy machine
