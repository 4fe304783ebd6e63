"""The front door of a script whose sections stand in modules of their own."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping
from importlib import import_module

from coverage_tables import Setting
from machine import describe

import benchrigor as br

__all__ = ["Sections", "print_sections"]

Sections = Mapping[str, tuple[str, str]]
"""Title of each section, and the module whose function of that name prints it."""


def print_sections(
    sections: Sections, description: str | None, *, seed: int, not_quick: Collection[str] = ()
) -> int:
    """Print the sections asked for on the command line; return 1 when a quick run misses a bar."""

    def asked(words: str) -> list[str]:
        names = words.split(",")
        unknown = [name for name in names if name not in sections]
        if unknown:
            known = ", ".join(sections)
            raise argparse.ArgumentTypeError(f"{unknown[0]!r}, expected some of {known}")
        return names

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--only", type=asked)
    parser.add_argument("--repetitions", type=int, help="of every row, instead of the usual")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    setting = Setting(
        seed=options.seed,
        quick=options.quick,
        repetitions=options.repetitions,
        jobs=options.jobs,
    )
    usual = [name for name in sections if not (options.quick and name in not_quick)]
    print(describe())
    print(f"seed {options.seed}{', quick' if options.quick else ''}")
    for name in options.only or usual:
        title, module = sections[name]
        print(f"\n## {title}\n", flush=True)
        start = time.perf_counter()
        try:
            getattr(import_module(module), name.replace("-", "_"))(setting)
        except (ImportError, br.InvalidInput) as error:
            print(f"Not measured: {error}: {setting.verdict(name, met=False)}")
        print(f"\n{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"\n{setting.bars} bars, {len(setting.missed)} missed.")
    for each in setting.missed:
        print(f"* {each}")
    return 1 if options.quick and setting.missed else 0


SECTIONS = {
    "defaults": ("Runs with defaults", "front_door_defaults"),
    "against": ("Suites against a revision", "front_door_against"),
}


if __name__ == "__main__":
    raise SystemExit(print_sections(SECTIONS, "What is met first.", seed=35))
