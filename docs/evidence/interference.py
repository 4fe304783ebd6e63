"""How far the interference estimated from a single run can be trusted, and what recording costs.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/interference.py [--quick] [--seed N] [--only a,b]

Every section stands in a module of its own, interference_*.py; the simulated programs, whose
interference is known, in interference_programs.py. Every draw is default_rng([seed, section, row,
run]). Accuracy is 1 - |difference of the logistic probabilities of truth and estimate|. ``--quick``
runs fewer rows of the simulated sections, and fails when a bar is missed. The real sections want
a machine that does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "inside": ("Simulated runs inside the conditions", "interference_simulated"),
    "high_rate": ("Short segments with heavy-tailed times", "interference_simulated"),
    "continuous": ("Continuous interference", "interference_simulated"),
    "outside": ("Outside the conditions", "interference_simulated"),
    "composite": ("One profile of several runs", "interference_composite"),
    "injected": ("Real runs with injected delays", "interference_real"),
    "neighbours": ("Real runs with a busy neighbour", "interference_real"),
    "idle": ("Real runs without injection", "interference_real"),
    "overhead": ("What recording costs", "interference_cost"),
    "speed": ("A million segments", "interference_cost"),
}
"""Title of each section, and the module whose function of that name prints it."""

REAL = {"injected", "neighbours", "idle", "overhead", "speed"}

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20261206, not_quick=REAL))
