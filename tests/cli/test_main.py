import subprocess
import sys
from pathlib import Path

import pytest

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.verbs import VERBS

CODES = Path(__file__).parents[2] / "docs" / "codes.md"


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_fits_the_screen_and_gives_examples(cli, verb):
    result = cli(verb, "--help")
    assert result.exit_code == 0
    assert f"\n    benchrigor {verb}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\b" not in result.stdout


def test_the_help_documents_every_exit_code(cli):
    shown = cli("--help").stdout
    documented = CODES.read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"\n    {code:<3d}  " in shown
        assert f"\n| {code:d} | " in documented


def test_every_verb_prints_json(cli):
    for verb in VERBS:
        assert "--json" in cli(verb, "--help").stdout


def test_the_package_is_a_program():
    command = [sys.executable, "-m", "benchrigor", "--version"]
    done = subprocess.run(  # our own program
        command, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("python -m benchrigor, version ")
