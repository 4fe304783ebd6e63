"""Suites of twelve tests against a revision: whether a planted slowdown is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from coverage_tables import Setting

__all__ = ["against"]

SLOWER = 1.15
PIECES = {
    "loop": "for i in range(20): i * i",
    "adding": "sum(range(300))",
    "sorting": "sorted(NUMBERS)",
    "mapping": "{i: i for i in range(40)}",
    "text": "' '.join(WORDS).upper().split()",
    "numerals": "[str(i) for i in range(20)]",
    "parsing": "json.loads(TEXT)",
    "writing": "json.dumps(TABLE)",
    "matching": "PATTERN.findall(LINE)",
    "hashing": "hashlib.sha256(BYTES).digest()",
    "packing": "zlib.compress(BYTES[:2000], 1)",
    "floats": "[math.sqrt(x) for x in range(40)]",
}
HEAD = """
import hashlib, json, math, re, zlib
NUMBERS = [7919 * i % 1009 for i in range(100)]
WORDS = [f"word{i}" for i in range(60)]
TABLE = {w: [1, 2.5, None] for w in WORDS[:10]}
TEXT, LINE, BYTES = json.dumps(TABLE), " ".join(WORDS), bytes(range(256)) * 20
PATTERN = re.compile("[a-z]+[0-9]")
"""
TIMES = 200  # that a function does its piece


def against(setting: Setting) -> None:
    """Print in how many suites the planted change is found, and in how many another one."""
    suites = setting.runs(20, 1)
    options = ["--bench-budget=3s"] if setting.quick else []
    rng = np.random.default_rng([setting.seed, 35])
    missed, false, alarmed = 0, 0, 0
    for number in range(suites):
        planted = str(rng.choice(list(PIECES)))
        found = changes_in(planted, options)
        is_missed = found.pop(f"test_{planted}", "") != "worse"
        missed += is_missed
        false += bool(found)
        alarms = changes_in(None, options)
        alarmed += bool(alarms)
        seen = "missed" if is_missed else "found"
        print(f"suite {number}: {planted} {seen}, others {found}, A/A {alarms}", flush=True)
    allowed = suites // 20
    hit = setting.verdict("planted changes", missed <= allowed)
    print(f"15 % planted in one of twelve tests: found in {suites - missed} of {suites}: {hit}")
    quiet = setting.verdict("A/A suites", alarmed <= allowed)
    print(f"the same code twice: a change in {alarmed} of {suites} suites: {quiet}")
    print(f"beside a planted change: another one in {false} of {suites} suites")


def changes_in(planted: str | None, options: list[str]) -> dict[str, str]:
    """Run a suite against its last commit, and return the verdicts that call a change."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, None)
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "before")
        write(folder, planted)
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        argv += ["--bench-against=HEAD", "--bench-json=all.json", *options]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        told = json.loads((folder / "all.json").read_text())
        if told["not_compared"] or len(told["against"]["verdicts"]) != len(PIECES):
            raise RuntimeError(done.stdout)
        changes = {
            test: verdict
            for test, verdict in told["against"]["verdicts"].items()
            if verdict in ("worse", "better")
        }
        if (done.returncode == 1) != ("worse" in changes.values()):
            raise RuntimeError(f"exit code {done.returncode}: {done.stdout}")
        return changes


def write(folder: Path, planted: str | None) -> None:
    """Write the package and its tests; the planted function does 15 % more."""
    functions, tests = [HEAD], ["import work\n"]
    for name, piece in PIECES.items():
        times = round(TIMES * (SLOWER if name == planted else 1.0))
        functions.append(f"def {name}():\n    for _ in range({times}):\n        {piece}\n")
        tests.append(f"def test_{name}(bench):\n    bench(work.{name})\n")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "work.py").write_text("\n\n".join(functions))
    (folder / "test_work.py").write_text("\n\n".join(tests))
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = src\n")


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
