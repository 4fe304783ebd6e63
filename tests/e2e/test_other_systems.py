"""Systems that lack what Linux has, as far as Linux can pretend to be one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_functions_and_files_are_measured_and_what_is_missing_is_named(system, tmp_path):
    options = ("-o", "addopts=", "-p", "no:benchmark", "-p", "no:xdist", "--bench-budget=0.2")
    ran = subprocess.run(
        [sys.executable, HERE / "other_system.py", system, *options, HERE / "another_system.py"],
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=380,  # of a busy machine
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
