"""Which configuration is best on several hosts: how good the choice is, how dear, how often wrong.

    python docs/evidence/choices.py [--quick] [--seed N] [--only choice,same] [--repetitions N]

Everything is simulated: servers whose answer in each configuration is known on each host.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "choice": ("The choice among those that lead a map, and what it costs", "choices_simulated"),
    "all": ("The choice among all configurations, without a map", "choices_simulated"),
    "same": ("All configurations are equal", "choices_simulated"),
    "ahead": (
        "One configuration is ahead: verdicts, and those that are wrong",
        "choices_simulated",
    ),
    "new": ("A host that was not measured", "choices_simulated"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20391127))
