"""A pool of hosts: what it costs its controller, and whether anything is measured twice.

    python docs/evidence/pools.py [--quick] [--seed N] [--only controller,kills]

Hosts are simulated, or processes of this machine.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "controller": ("A hundred hosts: what a trial costs the controller", "pools_controller"),
    "makespan": ("How long trials take together", "pools_controller"),
    "kills": ("A controller that is killed again and again", "pools_kills"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20390527))
