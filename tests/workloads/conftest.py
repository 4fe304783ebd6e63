"""Process groups of commands, as the kernel shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def living(group: int) -> list[int]:
    """Return the processes of a group that are not dead."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[2]) == group and words[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Return the processes left of all groups whose leaders wrote $$ to the file "groups"."""
    monkeypatch.chdir(tmp_path)

    def count() -> list[int]:
        groups = (tmp_path / "groups").read_text().split()
        assert groups
        return [each for group in groups for each in living(int(group))]

    return count
