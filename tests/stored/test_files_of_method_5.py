"""Later versions say of stored files what the version that wrote them said (``README.md``)."""

import json
from pathlib import Path

import pytest
from fence.comparing import differences
from tests.stored.said import COMMANDS, SAID, SINCE, apart, resume, say

SAID_SINCE = json.loads(SINCE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [*COMMANDS, "resume"])
def test_of_stored_files_is_said_what_was_said_before(name: str, tmp_path: Path) -> None:
    """``resume`` is a killed run that goes on."""
    found = resume(tmp_path) if name == "resume" else say(name, tmp_path)
    recorded = json.loads((SAID / f"{name}.json").read_text(encoding="utf-8"))
    first, since = apart(found)
    assert list(differences(recorded, first)) == []
    assert list(differences(SAID_SINCE[name], since)) == []
