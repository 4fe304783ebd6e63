"""Damaged files of all formats: docs/evidence/formats.py --only mutants makes thousands of them."""

import importlib
from pathlib import Path

import pytest


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs/evidence")
    return importlib.import_module("formats")


def test_no_damaged_file_ends_in_a_traceback(mutants) -> None:
    assert mutants.batch((1, 0, 52)) == []


@pytest.mark.parametrize(
    ("seed", "index"),
    [
        *((20401127, 1611), (20401127, 1957), (20401127, 5272), (20401127, 9478)),
        (20401201, 3514),
    ],
)
def test_files_that_ended_in_a_traceback_do_not(mutants, seed, index) -> None:
    assert mutants.fault_of(seed, index) is None
