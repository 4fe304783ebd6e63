"""Whether anything is lost, left behind or believed that is damaged, whatever happens.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/trust.py [--quick] [--seed N] [--only a,b]

Trials that are done stand in trust.jsonl in the current folder: a script that was ended goes on
behind them. Needs Linux, for /proc.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "kills": ("Processes that are killed", "trust_kills"),
    "damage": ("Stores that are damaged", "trust_damage"),
    "inputs": ("Inputs that make no sense", "trust_inputs"),
    "signals": ("Signals", "trust_signals"),
    "workloads": ("Functions and commands that misbehave", "trust_workloads"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20361127))
