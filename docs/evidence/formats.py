"""What is read of other tools and written for them: how right, how robust, how fast.

    python docs/evidence/formats.py [--quick] [--seed N] [--only round-trip,samples]

Files are made with known readings, or are the samples of the tests. `suites` and `rows` measure the
command line: make sure that the machine does nothing else.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "round-trip": ("Written for pyperf, and read by its own loader", "formats_files"),
    "samples": ("Samples of other tools: what is warned of", "formats_files"),
    "mutants": ("Damaged files of all formats, read and compared", "formats_mutants"),
    "false": ("The same code, with 3 % between processes: verdicts", "formats_verdicts"),
    "metadata": ("What pyperf's metadata cost a run", "formats_speed"),
    "suites": ("Two suites compared on the command line", "formats_speed"),
    "rows": ("A large table on the command line", "formats_speed"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20401127))
