"""What a file of other tools holds, read from a sample or from a text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchrigor.formats.recognition import results_in

DATA = Path(__file__).parent / "data"


@pytest.fixture
def sample() -> Callable[[str], Any]:
    """Read a sample; by name, which are unique."""

    def read(name: str) -> dict[str, Any]:
        results = results_in(DATA / name)
        assert results is not None
        assert len({each.name for each in results}) == len(results)
        return {each.name: each for each in results}

    return read


@pytest.fixture
def held(tmp_path: Path) -> Callable[[Any], Any]:
    """Read a text, or what is written as JSON."""

    def read(content: Any, name: str = "results") -> Any:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return results_in(path)

    return read


@pytest.fixture
def document() -> Callable[[str], Any]:
    """Load a sample of JSON, to be changed."""
    return lambda name: json.loads((DATA / name).read_text())
