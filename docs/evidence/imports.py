"""What ``import benchrigor``, the pytest plugin and the command line cost, and what they load.

CPU time (user + system) of whole interpreters, the smallest of 15 alternations: imports above a
bare interpreter, calls of the command line in all, ``run`` until the first call of its function.

    python docs/evidence/imports.py

Bars: imports at most 30 ms above bare Python, and no numpy or anything heavier loaded; --version
and --help at most 100 ms; at most 500 ms before the first call of a function that is measured.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from coverage_tables import Setting
from machine import describe

HEAVY = (
    "numpy", "scipy", "statsmodels", "ruptures", "pyperf", "matplotlib", "pandas", "asyncio",
)  # fmt: skip
FIRST_CALL = "import os\ndef f(): os._exit(0)"  # what is counted ends with it, as a failure
CALLS = {
    "benchrigor --version": (["--version"], 100),
    "benchrigor --help": (["--help"], 100),
    "benchrigor run, before the first call": (["run", "--no-store", "first_call:f"], 500),
}
CASES = {
    "bare": "pass",
    "import benchrigor": "import benchrigor",
    "bare pytest": "import pytest",
    "pytest plugin": "import pytest, benchrigor.pytest_plugin",
}


def cpu_seconds(*words: str, cwd: str | None = None) -> float:
    """Return the CPU time of an interpreter, and of its children, with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *words]
    quiet = subprocess.DEVNULL
    subprocess.run(command, check=cwd is None, cwd=cwd, stdout=quiet, stderr=quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def start(setting: Setting) -> None:
    """Print what the command line costs."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "first_call.py").write_text(FIRST_CALL)
        for name, (words, most) in CALLS.items():
            call = ["-m", "benchrigor", *words]
            spent = min(cpu_seconds(*call, cwd=folder) for _ in range(15)) * 1e3
            print(f"{name}: {spent:.0f} ms, at most {most}: {setting.verdict(name, spent <= most)}")


def main() -> None:
    """Print the figures."""
    print(describe())
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(15):
        for name, code in CASES.items():
            found[name].append(cpu_seconds("-c", code))
    least = {name: min(times) * 1e3 for name, times in found.items()}
    for name, base in (("import benchrigor", "bare"), ("pytest plugin", "bare pytest")):
        extra = least[name] - least[base]
        code = f"{CASES[name]}; import sys; print([m for m in {HEAVY} if m in sys.modules])"
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
        met = "met" if extra <= 30 and loaded == "[]" else "MISSED"
        print(f"{name}: {extra:.1f} ms above {base} ({least[base]:.0f} ms), heavy: {loaded}, {met}")
    start(Setting(seed=0))


if __name__ == "__main__":
    main()
