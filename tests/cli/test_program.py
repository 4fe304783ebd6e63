"""The command line as a program of its own: how it ends."""

import subprocess
import sys

import pytest

PROGRAM = """
from benchrigor import __main__ as program
import benchrigor.cli.leaving

def fail():
    raise {}

program.main = fail
program.run_program()
"""


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [("SystemExit(3)", 3, ""), ("SystemExit(None)", 0, ""), ("KeyError('x')", 1, "KeyError: 'x'")],
)
def test_the_program_ends_with_its_code_whatever_is_raised(error, code, printed):
    argv = [sys.executable, "-c", PROGRAM.format(error)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.strip().endswith(printed)
