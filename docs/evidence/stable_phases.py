"""Whether the number is that of the stable phase, at every entry point, and how long that takes.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/stable_phases.py [--quick] [--seed N] [--only a,b]

A trace has a level of 1 that holds most of it, and up to three other levels at each end. What has
no such level (leaks, staircases, random walks) must be refused; of paces that come back the
interval must hold the mean over time.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "traces": ("Traces with a level that holds most readings", "stable_phases_traces"),
    "others": ("Traces without one", "stable_phases_traces"),
    "times": ("How long an analysis takes", "stable_phases_times"),
    "starts": ("Default runs of functions with a slow start", "stable_phases_times"),
    "windows": ("Windows of recordings, as files without references", "stable_phases_windows"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20261128))
