"""The picture of a line: ``docs/pictures/work.png``, from ``docs/pictures/work.json``.

The rounds are real, of a virtual machine with 2 cores of an Intel Xeon: an interpreter is started
that makes so many bytes and compresses them. Starting takes some 20 ms each time, which is
the overhead.

    python docs/pictures/work.py            # draw the recorded rounds
    python docs/pictures/work.py record     # run new ones first
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.report import plot_work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
RECORD = HERE / "work.json"
CODE = "import zlib; zlib.compress(b'%d GET /item/%d\\n' * ({work} // 16))"


def record() -> br.RunRecord:
    """Measure the command with growing inputs."""
    speed = br.Metric(name="speed", unit="B/s", direction=br.Direction.HIGHER)
    options = br.Options(work=(1_000, 10**9), target=0.005, budget_s=5.0)
    session = br.Session(options, (speed,), name="compressing, by a new interpreter", seed=1)
    return session.run(br.CommandWorkload([sys.executable, "-c", CODE], clock=WallClock()))


def main() -> None:
    """Draw the rounds."""
    if sys.argv[1:] == ["record"]:
        record().save(RECORD)
    axes = plot_work(br.RunRecord.load(RECORD))
    cast("Figure", axes.figure).savefig(HERE / "work.png", dpi=100)


if __name__ == "__main__":
    main()
