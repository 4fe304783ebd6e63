"""What ``import benchrigor`` and the pytest plugin cost, and what they load.

CPU time (user + system) of whole interpreters, the smallest of 15 alternations, above a bare one.

    python docs/evidence/imports.py

Bar: at most 30 ms above bare Python, and no numpy or anything heavier loaded.
"""

from __future__ import annotations

import resource
import subprocess
import sys

from machine import describe

HEAVY = (
    "numpy", "scipy", "statsmodels", "ruptures", "pyperf", "matplotlib", "pandas", "asyncio",
)  # fmt: skip
CASES = {
    "bare": "pass",
    "import benchrigor": "import benchrigor",
    "bare pytest": "import pytest",
    "pytest plugin": "import pytest, benchrigor.pytest_plugin",
}


def cpu_seconds(code: str) -> float:
    """Return the CPU time of an interpreter that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the figures."""
    print(describe())
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(15):
        for name, code in CASES.items():
            found[name].append(cpu_seconds(code))
    least = {name: min(times) * 1e3 for name, times in found.items()}
    for name, base in (("import benchrigor", "bare"), ("pytest plugin", "bare pytest")):
        extra = least[name] - least[base]
        code = f"{CASES[name]}; import sys; print([m for m in {HEAVY} if m in sys.modules])"
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
        met = "met" if extra <= 30 and loaded == "[]" else "MISSED"
        print(f"{name}: {extra:.1f} ms above {base} ({least[base]:.0f} ms), heavy: {loaded}, {met}")


if __name__ == "__main__":
    main()
