from __future__ import annotations

import os
import re
from types import SimpleNamespace as Told

import psutil
import pytest

from benchrigor.session import examine


def process(pid: int, name: str | None, used_s: float | None) -> Told:
    times = None if used_s is None else Told(user=used_s, system=0.0)
    return Told(info={"pid": pid, "create_time": 1.0, "name": name, "cpu_times": times})


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others use ten seconds of processor time between two looks, or hide it."""
    looks = iter(([0.0, 5.0], [10.0, 15.0]))

    def look(_: object) -> list[Told]:
        first, second = next(looks)
        return [
            process(7, "g\x1bcc", first),
            process(8, None, second),
            process(9, "hidden", None),
            process(os.getpid(), "ourselves", first),
        ]

    monkeypatch.setattr(psutil, "process_iter", look)


def test_a_machine_is_examined(crowd: None) -> None:
    found = {each.name: each for each in examine(seconds=0.02)}
    assert found["clock"].verdict == "ok"
    assert re.search(r": gcc [\d,]+%, process 8 [\d,]+%$", found["others"].found)
    assert "under-used" not in found


def test_a_load_is_of_all_processors_however_few_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 8)
    monkeypatch.setattr(psutil, "getloadavg", lambda: (3.0, 3.0, 3.0))
    found = {each.name: each for each in examine(seconds=0.01)}
    assert found["load"].verdict == "ok"


def test_what_is_not_there_is_unknown_and_breaks_nothing(tmp_path) -> None:
    found = {each.name: each for each in examine(seconds=0.01, root=tmp_path)}
    assert found["turbo"].verdict is found["pressure"].verdict == "unknown"
    assert str(tmp_path) in found["turbo"].found
