"""Whether a default run gives a number, and a true one, within ten seconds.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/ten_seconds.py [--quick] [--seed N] [--only a,b]

The first three sections are simulated: every draw is default_rng([seed, section, row, repetition]).
The others measure this machine: make sure that it does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "pace": ("A machine that changes its pace", "ten_seconds_pace"),
    "sessions": ("Default sessions on such a machine", "ten_seconds_pace"),
    "trends": ("What climbs or falls to the end", "ten_seconds_pace"),
    "start": ("What the command line costs before the first call", "imports"),
    "machine": ("Default runs on this machine", "ten_seconds_machine"),
    "pairs": ("Default comparisons on this machine", "ten_seconds_machine"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20270211))
