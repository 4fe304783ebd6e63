"""How long a compression command takes on a file of log lines.

Each round runs the command once; its wall time is the reading.

    python examples/compress.py
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.report import render


def write_log(path: Path, lines: int) -> None:
    """Write a log that compresses about as well as a real one."""
    draw = random.Random(1)  # test data, no secret
    with path.open("w", encoding="utf-8") as log:
        for number in range(lines):
            status = draw.choice((200, 200, 200, 304, 404))
            log.write(f"{number} GET /item/{draw.randrange(5000)} {status} {draw.random():.6f}\n")


def main(budget_s: float = 20.0, *, lines: int = 20_000) -> br.RunRecord:
    """Measure the command and return the record."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "access.log"
        write_log(log, lines)
        gzip = shutil.which("gzip")
        argv = [gzip, "-k", "-f", str(log)] if gzip else [sys.executable, "-m", "gzip", str(log)]
        workload = br.CommandWorkload(argv, clock=WallClock(), timeout_s=60.0)
        session = br.Session(br.Options(target=0.05, budget_s=budget_s), name="gzip access.log")
        return session.run(workload)


if __name__ == "__main__":
    print(render(main(*map(float, sys.argv[1:2]))))
