"""How often the intervals of benchrigor hold the truth, beside the arithmetic of other tools.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/coverage.py [--quick] [--seed N] [--only a,b]

Every section stands in a module of its own, coverage_*.py; the processes, whose truths are known,
in coverage_processes.py. Every draw is default_rng([seed, section, row, repetition]). ``--quick``
draws fewer repetitions of fewer rows, judges them by 99.9 % intervals, and fails when one misses.
"""

from __future__ import annotations

from front_door import print_sections

SECTIONS = {
    "fixed": ("The mean at fixed size", "coverage_fixed"),
    "levels": ("Other levels", "coverage_fixed"),
    "small": ("Small samples", "coverage_fixed"),
    "times": ("Skewed times", "coverage_times"),
    "sequential": ("Sessions that stop at 5%", "coverage_sequential"),
    "statistics": ("Sessions that stop on a quantile", "coverage_sequential"),
    "sessions": ("Sessions with warm-ups of several lengths", "coverage_sessions"),
    "quantiles": ("Quantiles at fixed size", "coverage_quantiles"),
    "invocations": ("Invocations", "coverage_invocations"),
    "rounds": ("Sessions of several rounds", "coverage_rounds"),
    "comparisons": ("Comparisons", "coverage_comparisons"),
    "speed": ("Speed", "coverage_speed"),
}
"""Title of each section, and the module whose function of that name prints it."""

if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, __doc__, seed=20261201))
