"""What a file of other tools holds, read from a sample or from a text."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.formats.written_files import DATA, put

import benchrigor as br
from benchrigor.model import Code, RunRecord


@cache
def records(name: str) -> list[RunRecord]:
    """Read a sample; as many tests want the same one."""
    return br.read_results(DATA / name)


@pytest.fixture
def sample() -> Callable[[str], Any]:
    """Read a sample; by name, which are unique."""

    def read(name: str) -> dict[str, RunRecord]:
        found = {each.name: each for each in records(name)}
        assert len(found) == len(records(name))
        return found

    return read


@pytest.fixture
def held(tmp_path: Path) -> Callable[[Any], Any]:
    """Read a text, or what is written as JSON."""
    return lambda content: br.read_results(put({"a": content}, tmp_path))


@pytest.fixture
def document() -> Callable[[str], Any]:
    """Load a sample of JSON, to be changed."""
    return lambda name: json.loads((DATA / name).read_text())


@pytest.fixture
def evidence() -> Callable[[RunRecord, Code], dict[str, Any]]:
    """Return the evidence of the only Notice of this code."""

    def of(record: RunRecord, code: Code) -> dict[str, Any]:
        (notice,) = (each for each in record.notices if each.code is code)
        return dict(notice.evidence)

    return of
