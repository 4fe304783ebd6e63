"""By how much commands pass the budget of a session, and whether a process of theirs is left.

Each command runs in sessions of a budget of 1 s, with the usual grace of 2 s. What is measured is
the wall time of `Session.run`, from before the first process to after the last, minus the budget.
A second later the living processes of all its groups are counted, by /proc (Linux).

Bar: passed by at most 1 s, by 1 s and the grace where a process ignores the request to end; none
left.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from pathlib import Path

from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.workloads import CommandWorkload, Pick

BUDGET_S, GRACE_S, ALLOWED_S = 1.0, 2.0, 1.0
UNITS = Pick.parse("u:ms=regex:u ([0-9.]+)", unit_readings=True)
FUNCTION = f"{shlex.quote(sys.executable)} -c 'sum(i * i for i in range(10**9))'"
IGNORES = "trap '' TERM; while :; do sleep 0.05; done"
PRINTS = "i=0; while :; do i=$((i + 1)); echo u $i; sleep 0.02; done"
# What it does, how, whether it must be killed.
KINDS = (
    ("prints without end", PRINTS, False),
    ("sleeps", "exec sleep 600", False),
    ("ends often: 0.1 s a round", "sleep 0.1", False),
    ("ignores the request", IGNORES, True),
    ("has a child in the background", "sleep 600 & exec sleep 600", False),
    ("has one that ignores the request", f"({IGNORES}) & exec sleep 600", True),
    ("ends, and leaves a child behind", "sleep 600 & sleep 0.1", False),
    ("computes, in python -c", f"exec {FUNCTION}", False),
)


def left_of(groups: set[int]) -> int:
    """Count the processes of groups that are not dead."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group, _ = stat.read_text(errors="replace").rpartition(")")[2].split(None, 3)
        except OSError:
            continue
        found += int(group) in groups and state not in "ZX"
    return found


def measured(script: str) -> tuple[float, int, int]:
    """Return by how many seconds a session passed its budget, its readings, and processes left."""
    with tempfile.TemporaryDirectory() as folder:
        argv = ["sh", "-c", f"echo $$ >> groups; {script}"]
        picks = [UNITS] if script == PRINTS else []
        workload = CommandWorkload(argv, picks=picks, cwd=folder, clock=WallClock())
        options = br.Options(budget_s=BUDGET_S, target=1e-9)
        began = time.perf_counter()
        record = br.Session(options).run(workload)
        passed_s = time.perf_counter() - began - BUDGET_S
        if record.decision is None or record.decision.reason is not br.StopReason.TIME_BUDGET:
            raise AssertionError(f"{script}: {record.decision}")
        time.sleep(1.0)
        groups = set(map(int, Path(folder, "groups").read_text().split()))
        return passed_s, int(record.readings().size), left_of(groups)


def budgets(setting: Setting) -> None:
    """Print by how much budgets are passed, and what is left."""
    sessions = 1 if setting.quick else 5
    print(f"{sessions} sessions a row, budget {BUDGET_S:g} s, grace {GRACE_S:g} s.\n")
    heading(["the command", "readings", "budget passed by (least to most)", "bar", "left"])
    measured(PRINTS)  # imports what analyses need
    for name, script, is_killed in KINDS:
        found = [measured(script) for _ in range(sessions)]
        passed, readings, left = zip(*found, strict=True)
        bar = ALLOWED_S + GRACE_S * is_killed
        verdict = setting.verdict(name, max(passed) <= bar and not any(left))
        row(
            name,
            f"{min(readings):,} to {max(readings):,}",
            f"{min(passed):.3f} to {max(passed):.3f} s",
            f"{bar:g} s: {verdict}",
            sum(left),
        )
