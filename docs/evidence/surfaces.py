"""What a map predicts of configurations that it did not measure: how right, how sure, how fast.

    python docs/evidence/surfaces.py [--quick] [--seed N] [--only accuracy,best] [--repetitions N]

Everything is simulated but the sections real, slow, opened and speed.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "accuracy": (
        "Errors over all configurations, and coverage of those unmeasured",
        "surfaces_fit",
    ),
    "best": ("The best configuration: regret, and its stated interval", "surfaces_fit"),
    "sensitivities": ("What matters: intervals that hold the true ratio", "surfaces_fit"),
    "crossovers": ("Where two file systems change places", "surfaces_fit"),
    "adaptive": ("Maps that choose their samples: errors and coverage", "surfaces_maps"),
    "regret": ("The best configuration of maps that choose 12 samples", "surfaces_maps"),
    "moved": ("Maps of surfaces whose limits meet anywhere", "surfaces_maps"),
    "hosts": ("Samples of several hosts, each with an effect of its own", "surfaces_hosts"),
    "cost": ("All configurations by seeded searches", "surfaces_costs"),
    "opened": ("A map of 1,000 samples opens, and one of 60 goes on", "surfaces_maps"),
    "real": ("A real server, killed once", "surfaces_real"),
    "slow": ("The same server, three times slower", "surfaces_real"),
    "speed": ("A fit, and the next of 1,000 candidates", "surfaces_fit"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20380412))
