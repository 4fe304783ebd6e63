"""Up to which load servers keep their limits: what searches cost, and how right they are.

    python docs/evidence/peaks.py [--quick] [--seed N] [--only shapes,real] [--repetitions N]

The sections generator, real and rates are on this machine: make sure that it does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "shapes": ("Servers of eight shapes: error, coverage, cost", "peaks_simulated"),
    "users": ("Users who wait for answers", "peaks_users"),
    "rivals": ("What published policies and MLRsearch cost there", "peaks_rivals"),
    "orderings": ("The orderings of the paper", "peaks_rivals"),
    "bounds": ("Never and always saturated", "peaks_simulated"),
    "anomalies": ("Servers with something wrong", "peaks_simulated"),
    "speed": ("One decision, and one trial of a million responses", "peaks_speed"),
    "generator": ("The load generator", "peaks_real"),
    "real": ("Real servers of known peak", "peaks_real"),
    "rates": ("Servers of 1 to 2,000 requests a second, with all defaults", "peaks_rates"),
}
"""Title of each section, and the module whose function of that name prints it."""

NOT_QUICK = ("rivals", "orderings", "generator", "real", "rates")

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20320417, not_quick=NOT_QUICK))
