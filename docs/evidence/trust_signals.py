"""Signals that end programs, in every mode that measures: is anything left behind.

Each trial starts a mode, sends the signal when a child of it lives, and looks what is left: living
processes, files in the folder for temporary ones, worktrees. The modes are those of the tests.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from coverage_tables import Setting, heading, row
from trust_trials import done_trials

SIGNALS = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM"),
    *("SIGPROF", "SIGXCPU", "SIGPOLL", "SIGPWR", "SIGSTKFLT"),
)
QUICK = ("run/SIGHUP", "deaf/SIGQUIT", "peak/SIGTERM", "ab revisions/SIGINT", "fresh/SIGTERM")
SOON_S = 3.0  # from the signal to the end

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "simulations"))
signalled = import_module("signalled")


def signals(setting: Setting) -> None:
    """Print what signals leave behind."""
    every = [f"{mode}/{name}" for mode in signalled.MODES for name in SIGNALS]
    found = done_trials(setting, "signals", QUICK if setting.quick else every, signalled_trial)
    heading(["signal", "modes", "slowest end", "another exit code", "left running", "files left"])
    for name in SIGNALS:
        rows = {trial: kept for trial, kept in found.items() if trial.endswith(name)}
        if rows:
            slowest = max(kept["seconds"] for kept in rows.values())
            faults = [sum(kept[key] for kept in rows.values()) for key in ("code", "left", "files")]
            met = setting.verdict(name, not any(faults) and slowest <= SOON_S)
            row(name, len(rows), f"{slowest:.1f} s", *faults, met)
    for trial, kept in found.items():
        if kept["why"]:
            print(f"\n{trial}: {kept['why']}")


def signalled_trial(name: str) -> dict[str, Any]:
    """Send a signal to a mode, and return what is left."""
    mode, _, word = name.partition("/")
    number = signal.Signals[word]
    with tempfile.TemporaryDirectory() as folder:
        found = signalled.trial(mode, number, Path(folder))
    faults = {
        "code": int(found.code not in signalled.expected_codes(mode, number)),
        "left": len(found.left),
        "files": len(found.files),
    }
    why = f"exit code {found.code}: {found.stderr[-300:]}" if any(faults.values()) else ""
    return {**faults, "seconds": found.seconds, "why": why}
