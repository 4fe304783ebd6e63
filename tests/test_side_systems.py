"""The core does without the side systems: neither needs them to be there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import benchrigor

SIDE_SYSTEMS = ["instrument", "interference", "queues", "workbench"]
ROOT = Path(__file__).parents[1]
CORE = ["cli", "machine", "model", "pytest_plugin", "report", "session", "stats", "storage"]
CORE += ["testing", "workloads"]
"""The rooms of the tests of the core."""
MEASURE = """
import benchrigor as br
from benchrigor.cli import main
print(br.measure(lambda: sum(range(100)), budget_s=0.2))
main(["--help"])
"""


def copied_without(names: list[str], folder: Path) -> dict[str, str]:
    """Copy the package without side systems; return an environment in which it is found."""
    package = Path(benchrigor.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, folder / "benchrigor", ignore=ignored)
    for name in names:
        shutil.rmtree(folder / "benchrigor" / name)
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    return environment | {"PYTHONPATH": str(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDE_SYSTEMS)
def test_the_core_measures_without_a_side_system(name: str, tmp_path: Path) -> None:
    environment = copied_without([name], tmp_path)
    words = [sys.executable, "-c", MEASURE]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "sum" in done.stdout or "<lambda>" in done.stdout
    assert "How long does a command or a function take?" in done.stdout


@pytest.mark.slow
def test_the_tests_of_the_core_pass_without_side_systems(tmp_path: Path) -> None:
    environment = copied_without(SIDE_SYSTEMS, tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, *(f"tests/{room}" for room in CORE)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
