"""Readings for the cases: real ones, recorded once, and synthetic ones, drawn from a seed."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
from scipy import signal

from benchrigor.model import SegmentProfile

__all__ = [
    "ROOT",
    "column",
    "correlated",
    "drifting",
    "invocations",
    "profile",
    "skewed",
    "small_steps",
    "stepping",
    "warming",
]

ROOT = Path(__file__).parents[3]
READINGS = Path(__file__).parents[1] / "readings"
INVOCATIONS = 12


@cache
def column(name: str, title: str = "seconds") -> np.ndarray:
    """Return a column of a recorded file, of `readings` or of the examples."""
    with _where(name).open(newline="", encoding="utf-8") as lines:
        return np.array([float(row[title]) for row in csv.DictReader(lines)])


def invocations(side: str) -> list[np.ndarray]:
    """Return the readings of encoding, one series per interpreter, of either side."""
    return [column("encoding_invocations.csv", f"{side} {each}") for each in range(INVOCATIONS)]


@cache
def profile(name: str) -> SegmentProfile:
    """Return a recorded profile of segments."""
    return SegmentProfile.load(_where(name))


def correlated(n: int, *, seed: int, phi: float = 0.0, cv: float = 0.05) -> np.ndarray:
    """Draw normal readings of mean 1 that remember a share ``phi`` of the one before."""
    shocks = np.random.default_rng(seed).standard_normal(n + 100)
    noise = signal.lfilter([np.sqrt(1.0 - phi**2)], [1.0, -phi], shocks)[100:]
    return np.asarray(1.0 + cv * noise)


def warming(n: int, *, seed: int, phi: float = 0.5, fading: float = 60.0) -> np.ndarray:
    """Draw readings that begin at twice their level and come down to it exponentially."""
    return correlated(n, seed=seed, phi=phi) + np.exp(-np.arange(n) / fading)


def stepping(n: int, *, seed: int, at: int, by: float = 0.3) -> np.ndarray:
    """Draw readings whose level rises at an index."""
    return correlated(n, seed=seed) + by * (np.arange(n) >= at)


def small_steps(n: int, *, seed: int) -> np.ndarray:
    """Draw readings whose level is higher in the beginning, by less than one per cent."""
    return correlated(n, seed=seed, cv=0.003) + 0.004 * (np.arange(n) < 0.15 * n)


def drifting(n: int, *, seed: int) -> np.ndarray:
    """Draw readings that grow by half from the first to the last."""
    return correlated(n, seed=seed) + np.linspace(0.0, 0.5, n)


def skewed(n: int, *, seed: int) -> np.ndarray:
    """Draw readings above 1 with an exponential tail."""
    return 1.0 + np.random.default_rng(seed).standard_exponential(n)


def _where(name: str) -> Path:
    places = (READINGS, ROOT / "examples", ROOT / "tests" / "model" / "data")
    return next(place / name for place in places if (place / name).exists())
