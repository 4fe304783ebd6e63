"""How fast a compression command compresses, apart from the time it takes to start.

The command tells nothing but how long it ran. It runs with inputs of various sizes, and the line
duration = overhead + work / speed through them parts the speed from the overhead.

    python examples/compress_growing.py
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

SPEED = br.Metric(name="speed", unit="B/s", direction=br.Direction.HIGHER)


def write_log(path: Path, size: int) -> None:
    """Write a log that compresses alike wherever one begins and however much one takes."""
    draw = random.Random(1)  # test data, no secret
    lines = (
        f"GET /item/{draw.randrange(5000)} {draw.choice((200, 200, 304))} {draw.random():.6f}\n"
        for _ in range(30_000)
    )
    block = "".join(lines).encode()  # far longer than what gzip looks back
    path.write_bytes((block * (size // len(block) + 1))[:size])


def command(log: Path) -> list[str]:
    """Return a command that compresses the first {work} bytes of a file."""
    if shutil.which("gzip"):
        return ["sh", "-c", 'head -c {work} "$1" | gzip > /dev/null', "sh", str(log)]
    code = "import gzip, sys; gzip.compress(open(sys.argv[1], 'rb').read({work}))"
    return [sys.executable, "-c", code, str(log)]


def main(budget_s: float = 30.0, *, size: int = 100_000_000) -> br.RunRecord:
    """Measure the command and return the record."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "access.log"
        write_log(log, size)
        options = br.Options(target=0.05, budget_s=budget_s, work=(1_000, size))
        session = br.Session(options, (SPEED,), name="gzip, growing inputs")
        workload = br.CommandWorkload(command(log), clock=WallClock(), timeout_s=60.0)
        return session.run(workload)


if __name__ == "__main__":
    print(render(main(*map(float, sys.argv[1:2]))))
