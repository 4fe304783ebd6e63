"""Whether every door is right by default: commands, files, shares, rates, the light, budgets.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/doors.py [--quick] [--seed N] [--only a,b]

The first three sections are simulated: every draw is default_rng([seed, section, row,
repetition]). The last two run real commands: make sure that the machine does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "commands": ("Commands with warm-up, in sessions and files", "doors_commands"),
    "shares": ("Shares", "doors_shares"),
    "rates": ("Rates", "doors_rates"),
    "light": ("The light of commands", "doors_light"),
    "budgets": ("Budgets", "doors_budgets"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20270116))
