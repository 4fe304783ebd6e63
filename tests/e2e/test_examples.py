"""Each example runs with a small budget and gives what it promises."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "given", "least", "most"),
    [
        ("sqlite_insert", {}, 1e-6, 1.0),
        ("compress", {"lines": 2000}, 1e-4, 5.0),
        ("compress_growing", {"size": 20_000_000}, 1e5, 1e10),
        ("wrap_timeit", {}, 1e-5, 0.1),
    ],
)
def test_a_number_is_found_that_makes_sense(
    name: str, given: dict[str, int], least: float, most: float
) -> None:
    record = load(name).main(2.0 if "size" in given else 1.0, **given)
    assert (record.provenance is None) == (name == "wrap_timeit")
    kind = getattr(record.analysis(), "kind", None)
    assert (kind == "work amounts") == (name == "compress_growing")
    assert record.facts.get("exit_code", 0) == 0
    estimate = record.estimate()
    if estimate is None:  # as on a busy machine
        assert any(notice.severity == "refusal" for notice in record.notices)
    else:
        assert estimate.low < estimate.value < estimate.high
        assert least < estimate.value < most


def test_a_recording_is_cut_and_estimated() -> None:
    stable, estimate = load("analyse_recording").main()
    assert stable.start is not None
    assert stable.start > 0
    assert stable.phases[0].label == "warm-up"
    assert estimate.low < estimate.value < estimate.high
    assert estimate.n < 3000


def test_what_a_loop_lost_is_told_from_its_one_run() -> None:
    found, injected = load("interference_of_a_loop").main(60)
    assert found.n == 120
    assert 0.0 < injected < 100.0
    doubtful = any(each.severity == "warning" for each in found.notices)
    assert doubtful or found.total_percent > 0.5 * injected


def test_the_pytest_file_measures_in_its_own_pytest() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--bench-budget", "0.3", str(EXAMPLES / "test_json.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    table = done.stdout.split(" benchrigor ==", 1)[1]
    assert "test_dumping_and_loading_gives_the_document_back" in table
    assert sum(map(table.count, ("s [", "s ±", "  ~"))) >= 2
