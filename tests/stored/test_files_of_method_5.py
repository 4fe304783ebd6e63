"""Later versions say of stored files what the version that wrote them said (``README.md``)."""

import json
from pathlib import Path

import pytest
from fence.comparing import differences
from tests.stored.said import COMMANDS, SAID, resume, say


def recorded(name: str) -> object:
    return json.loads((SAID / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_of_stored_files_what_it_said(name: str, tmp_path: Path) -> None:
    assert list(differences(recorded(name), say(name, tmp_path))) == []


def test_a_killed_run_goes_on_from_its_stored_rounds(tmp_path: Path) -> None:
    assert list(differences(recorded("resume"), resume(tmp_path))) == []
