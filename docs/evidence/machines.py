"""What two runs of the same code differ by on a machine whose pace changes, and what is found.

    python docs/evidence/machines.py record --folder F [--runs 12] [--seconds 10] [--minutes M]
    python docs/evidence/machines.py --folder F
    python docs/evidence/machines.py record --folder F --quick

The first measures, in rotation and each in a process of its own, and goes on where it was ended;
the second prints every bar from what is recorded so far. Full speed is that of the recording, kept
in F/data. ``record --only default`` takes the default runs of eight functions alone, of which the
bars of headlines are. ``--rivals PYTHON`` is an interpreter that has pyperf, pytest-benchmark and
numpy; ``--only`` chooses doors, workloads and conditions by name; ``--quick`` two default runs of
two functions, idle and beside one hog and two. Make sure that the machine does nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from machines_recording import Recording, record, run_cell
from machines_runs import CONDITIONS, DOORS, Cell, Machine

SEED = 20271207
QUICK = ("default", "empty", "loop", "idle", "one hog", "two hogs")


def main() -> int:
    """Record, or evaluate what is recorded."""
    if sys.argv[1:2] == ["cell"]:
        cell, machine = (json.loads(each) for each in sys.argv[2:])
        print(json.dumps(run_cell(Cell(*cell), Machine(*machine))))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("record", "evaluate"), default="evaluate")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=12, help="of every cell")
    parser.add_argument("--seconds", type=float, default=10.0, help="that a run lasts")
    parser.add_argument("--minutes", type=float, help="after which no further run begins")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rivals", default=sys.executable, help="interpreter of other tools")
    workloads = {each for door in DOORS.values() for each in door.workloads}
    known = [*DOORS, *CONDITIONS, *sorted(workloads)]
    parser.add_argument("--only", nargs="+", default=(), choices=known, metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.runs, asked.seconds, asked.only = 2, 3.0, QUICK
    if asked.what == "record":
        given = {name: getattr(asked, name) for name in Recording._fields}
        missing = record(Recording(**given))
        print(f"{missing} runs are missing")
        return 0
    from machines_figures import evaluate  # noqa: PLC0415  # what measures does without

    return evaluate(asked.folder, asked.seed)


if __name__ == "__main__":
    raise SystemExit(main())
