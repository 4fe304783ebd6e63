"""Whether a speed found by work and duration is right, and what it costs.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/wps.py [--quick] [--seed N] [--only a,b]

Every section stands in a module of its own, wps_*.py; the simulated workloads, whose speeds are
known, in wps_processes.py. Every draw is default_rng([seed, section, row, repetition]).
``--quick`` draws fewer repetitions of fewer rows, judges them by 99.9 % intervals, leaves out what
has no bars and the real runs, and fails when a bar is missed.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "coverage": ("Coverage of the speed", "wps_coverage"),
    "sequential": ("Sessions that stop at a target", "wps_designs"),
    "designs": ("Other orders of the amounts", "wps_designs"),
    "merging": ("Neighbouring rounds merged before the fit", "wps_merging"),
    "width": ("Width", "wps_coverage"),
    "bias": ("Bias", "wps_coverage"),
    "cost": ("What it costs not to know the overhead", "wps_cost"),
    "growth": ("Names of growth", "wps_growth"),
    "speed": ("Speed", "wps_speed"),
    "real": ("Real runs beside direct measurement", "wps_real"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(
        print_sections(SECTIONS, __doc__, seed=20261205, not_quick={"designs", "merging", "real"})
    )
