"""The core does without each side system."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import benchrigor

SIDE_SYSTEMS = ["instrument", "interference", "queues", "workbench"]
MEASURE = """
import benchrigor as br
from benchrigor.cli import main
print(br.measure(lambda: sum(range(100)), budget_s=0.2))
main(["--help"])
"""


def copied_without(name: str, folder: Path) -> dict[str, str]:
    """Copy the package without a side system; return an environment in which it is found."""
    package = Path(benchrigor.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, folder / "benchrigor", ignore=ignored)
    shutil.rmtree(folder / "benchrigor" / name)
    return os.environ | {"PYTHONPATH": str(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDE_SYSTEMS)
def test_the_core_measures_without_a_side_system(name: str, tmp_path: Path) -> None:
    environment = copied_without(name, tmp_path)
    words = [sys.executable, "-c", MEASURE]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True, timeout=300.0
    )
    assert "sum" in done.stdout or "<lambda>" in done.stdout
    assert "How long does a command" in done.stdout
