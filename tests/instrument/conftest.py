from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[dict[str, str]], Path]

QUIET = {
    "proc/thread-self/schedstat": "1000 0 1\n",
    "proc/thread-self/io": "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\n",
    "proc/self/fd": "....",
    "proc/self/cgroup": "0::/bench\n",
    "proc/stat": "cpu  100 0 0 500 0 0 0 0 0 0\ncpu0 100 0 0 500 0 0 0 0 0 0\n",
    "sys/fs/cgroup/bench/cpu.stat": "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n",
    "sys/fs/cgroup/bench/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "sys/fs/cgroup/bench/io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "sys/fs/cgroup/bench/memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files of a made-up system, into the same files where they are there already."""

    def write(files: dict[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path

    return write


@pytest.fixture
def quiet(write: Write) -> Path:
    """Where nothing has been lost yet."""
    return write(QUIET)
