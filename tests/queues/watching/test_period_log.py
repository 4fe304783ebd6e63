"""What is written down can be read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchrigor.queues.periods import Periods
from benchrigor.queues.recording.recordings import Recording
from benchrigor.queues.watching.sampler import period_log

BLOCK = Periods(period_s=0.05, items=12, blocked_s=0.01, cpu_s=0.004, delay_s=0.001)


def test_periods_come_back_by_stage(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with period_log(path, period_s=0.05) as record:
        record("hash", Periods(period_s=0.05, items=[12, 13], blocked_s=0.01))
        record("sink", Periods(period_s=0.05, items=3))
        record("hash", Periods(period_s=0.05, items=14))
        record("sink", BLOCK)
    with Recording.open(path) as recording:
        found = dict(recording.periods())
    assert recording.head.period_s == 0.05
    assert found["hash"].items.tolist() == [12, 13, 14]
    assert found["sink"].items.tolist() == [3, 12]
    assert found["sink"].cpu_s[1] == 0.004


def test_with_other_servers_a_stage_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with period_log(path, period_s=None) as record:
        for servers in (1, 3, 1):
            record("hash", Periods(period_s=0.05, items=12, servers=servers))
    with Recording.open(path) as recording:
        found = dict(recording.periods())
    assert {name: (each.n, each.servers) for name, each in found.items()} == {
        "hash": (2, 1),
        "hash (3 servers)": (1, 3),
    }


def test_each_period_is_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with period_log(path, period_s=0.05) as record:
        record("hash", BLOCK)
        assert path.read_text(encoding="utf-8").endswith("hash,1,0.05,12,0.01,0.004,0.001,0\n")


def test_a_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"), period_log(tmp_path / "nowhere/a", period_s=0.05):
        pass
