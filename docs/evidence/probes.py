"""What probes cost, beside two bare readings of the clock, and whether they lose events.

    python docs/evidence/probes.py [--quick] [--only cost,exact,memory] [--repetitions N]

Others are measured beside it where they are installed: prometheus-client and opentelemetry-sdk.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "cost": ("Cost of an event, in pairs of bare readings of the clock", "probes_cost"),
    "threads": ("Processor time of an event in four threads", "probes_cost"),
    "exact": ("Events of eight threads beside a reader that resets", "probes_exact"),
    "memory": ("Memory of a probe that was used a hundred times, by form", "probes_exact"),
    "programs": ("K-means and motion JPEG with probes and without", "probes_exact"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20330511))
