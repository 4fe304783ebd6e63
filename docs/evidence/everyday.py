"""What people type every day: what it costs, and how right it is.

    python docs/evidence/everyday.py [--quick] [--seed N] [--only start,turns,ab] [--repetitions N]

Everything is real and on this machine: make sure that it does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "start": ("What a fresh interpreter costs", "everyday_start"),
    "plugin": ("What the plugin of pytest costs where nothing uses it", "everyday_plugin"),
    "rivals": ("How far apart figures of the same code are", "everyday_rivals"),
    "ab": ("Two in turn: the same code", "everyday_ab"),
    "turns": ("Fresh interpreters by turns", "everyday_turns"),
    "found": ("Two in turn: 5 % more work, within a minute", "everyday_ab"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20310211, not_quick=("rivals",)))
