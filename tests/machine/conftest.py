from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.machine.made_up import FakeMachine, put_smartctl


@pytest.fixture
def psutil_of(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """Put a fake machine behind psutil."""
    machine = FakeMachine()
    for name, function in machine.functions().items():
        monkeypatch.setattr(psutil, name, function, raising=False)
    return machine


@pytest.fixture
def smartctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a shell script in the place of smartctl, and nothing else on the path."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return partial(put_smartctl, tmp_path / "bin")
