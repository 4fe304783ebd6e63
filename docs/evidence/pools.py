"""What a pool of hosts costs, and how busy it keeps them.

    python docs/evidence/pools.py [--quick] [--seed N] [--only cost,makespan]

Hosts are simulated by threads; that real workers of Dask never run two jobs is tested.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "cost": ("A hundred hosts, two thousand trials that take no time", "pools_simulated"),
    "makespan": ("Ten hosts, trials that take some", "pools_simulated"),
    "gangs": ("Two of three hosts at once, for four that ask", "pools_simulated"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20391128))
