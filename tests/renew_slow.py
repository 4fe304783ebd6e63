"""Add to ``tests/slow.txt`` what is slow, on a machine that does nothing else.

    python tests/renew_slow.py            times all tests that are not in it
    python tests/renew_slow.py tests/cli  those of a folder

Tests of the table run with ``pytest -m slow``. A line is a folder, a module, a function, or one of
its cases.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

TABLE = Path(__file__).with_name("slow.txt")
SLOW_S = 0.1


class Timing:
    """A plugin of pytest that notes which tests are slow."""

    def __init__(self) -> None:
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test whose call was slow."""
        if report.when == "call" and report.duration > SLOW_S:
            self.slow.add(report.nodeid)


def renew(words: list[str]) -> None:
    """Run tests, and write the table."""
    timing = Timing()
    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *words], plugins=[timing])
    lines = timing.slow.union(TABLE.read_text(encoding="utf-8").splitlines())
    TABLE.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    click.echo(f"{len(timing.slow)} more tests are slow")


if __name__ == "__main__":
    renew(sys.argv[1:])
