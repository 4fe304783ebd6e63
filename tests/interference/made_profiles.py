"""Runs of three kinds of segments, of which some are hit by a delay."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchrigor.model import SegmentProfile

LABELS = ("exchange", "solve", "write")


def profile(
    seed: int = 1,
    *,
    hit: float = 0.0,
    by_s: float = 0.05,
    slower: float = 1.0,
    delayed: bool = True,
    **given: Any,
) -> SegmentProfile:
    """Return 600 segments, of which a share ``hit`` lasts longer."""
    rng = np.random.default_rng(seed)
    n = 600
    kind = np.arange(n) % 3
    duration_s = slower * np.array([0.004, 0.010, 0.025])[kind] * rng.normal(1.0, 0.01, n)
    duration_s += by_s * (rng.random(n) < hit)
    waited_s = 0.01 * (rng.random(n) < 0.02)
    columns = {
        "duration_s": duration_s + waited_s * delayed,
        "computation": {"instructions": np.array([1e6, 3e6, 9e6])[kind]},
        "nominal": {"label": np.array(LABELS)[kind]},
        "delays": {"run queue": waited_s} if delayed else {},
        "program": "heat",
    }
    return SegmentProfile(**{**columns, **given})


def written(profile: SegmentProfile) -> str:
    """Return what the file of a profile holds."""
    with tempfile.TemporaryDirectory() as folder:
        profile.save(Path(folder) / "run.csv")
        return (Path(folder) / "run.csv").read_text(encoding="utf-8")
