"""What pytest costs with the plugin installed and unused: CPU time of whole runs, in turn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from coverage_tables import Setting
from everyday_start import cpu_ms

__all__ = ["plugin"]

MOST_MS = 15.0
SUITE = "def test_nothing():\n    pass\n"
BARE = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest")


def plugin(setting: Setting) -> None:
    """Print the CPU time of a run of one empty test, with the plugin and without."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "test_nothing.py").write_text(SUITE)
        cases = {"without": ("-p", "no:benchrigor"), "with": ()}
        found: dict[str, list[float]] = {name: [] for name in cases}
        rng = np.random.default_rng([setting.seed, 2])
        for _ in range(setting.runs(40, 5)):
            for name in rng.permutation(list(cases)):
                argv = [sys.executable, "-m", "pytest", *BARE, *cases[name]]
                found[name].append(
                    cpu_ms(
                        lambda argv=argv: subprocess.run(  # type: ignore[misc]
                            argv, check=True, capture_output=True, cwd=folder
                        )
                    )
                )
    without, used = (float(np.median(found[name])) for name in ("without", "with"))
    verdict = setting.verdict("plugin", used - without <= MOST_MS)
    least = min(found["with"]) - min(found["without"])
    print(f"pytest without it: {without:.1f} ms, median of {len(found['with'])}")
    print(
        f"with it: {used - without:.1f} ms more (of the fastest {least:.1f}), at most 15: {verdict}"
    )
