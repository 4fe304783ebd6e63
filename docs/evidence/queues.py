"""How far service rates of queued stages can be trusted, and what watching costs.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/queues.py [--quick] [--seed N] [--only a,b]

Every section stands in a module of its own, queues_*.py. Simulated stages, whose rate is known,
are `benchrigor.testing.SyntheticStage`: one server, arrivals at random, 100,000 items a run. Noisy:
1 in 1000 items stalls by 20 service times in the mean, 2 % of the periods are stretched by half,
1 % of the counts miss an item. Every draw is default_rng([seed, section, row, run]). ``--quick``
runs fewer rows of the simulated sections, and fails when a bar is missed. The other sections want a
machine that does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "busy": ("Busy time: simulated stages", "queues_simulated"),
    "quantile": ("The quantile method: simulated stages", "queues_simulated"),
    "phases": ("A rate that halves midway", "queues_simulated"),
    "moments": ("Moments of the service time", "queues_simulated"),
    "series": ("A million periods", "queues_speed"),
    "taps": ("What a tap costs", "queues_taps"),
    "monitor": ("What watching costs", "queues_monitor"),
    "applications": ("Matrix multiply and Rabin-Karp search", "queues_applications"),
}
"""Title of each section, and the module whose function of that name prints it."""

REAL = {"moments", "series", "taps", "monitor", "applications"}

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20261207, not_quick=REAL))
