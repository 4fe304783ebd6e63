"""How often the intervals of benchrigor hold the truth, beside the arithmetic of other tools.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/coverage.py [--quick] [--seed N] [--only a,b]

Every section stands in a module of its own, coverage_*.py; the processes, whose truths are known,
in coverage_processes.py. Every draw is default_rng([seed, section, row, repetition]). ``--quick``
draws fewer repetitions of fewer rows, judges them by 99.9 % intervals, and fails when one misses.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module

from coverage_tables import Setting
from machine import describe

import benchrigor as br

SECTIONS = {
    "fixed": ("The mean at fixed size", "coverage_fixed"),
    "levels": ("Other levels", "coverage_fixed"),
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


def asked(words: str) -> list[str]:
    """Return the sections named in a list with commas."""
    names = words.split(",")
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}, expected some of {', '.join(SECTIONS)}")
    return names


def main() -> int:
    """Print the sections asked for; return 1 when a quick run misses a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=20261201)
    parser.add_argument("--only", type=asked, default=list(SECTIONS))
    parser.add_argument("--repetitions", type=int, help="of every row, instead of the usual")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    setting = Setting(
        seed=options.seed,
        quick=options.quick,
        repetitions=options.repetitions,
        jobs=options.jobs,
    )
    print(describe())
    print(f"seed {options.seed}{', quick' if options.quick else ''}")
    for name in options.only:
        title, module = SECTIONS[name]
        print(f"\n## {title}\n", flush=True)
        start = time.perf_counter()
        try:
            getattr(import_module(module), name)(setting)
        except (ImportError, br.InvalidInput) as error:
            print(f"Not measured: {error}: {setting.verdict(name, met=False)}")
        print(f"\n{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"\n{setting.bars} bars, {len(setting.missed)} missed.")
    for each in setting.missed:
        print(f"* {each}")
    return 1 if options.quick and setting.missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
