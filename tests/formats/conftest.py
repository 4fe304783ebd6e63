"""What a file of other tools holds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.written_files import DATA, put

import benchrigor as br
from benchrigor.model import Code, RunRecord


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
