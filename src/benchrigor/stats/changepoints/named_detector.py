"""Detectors that options name, next to the built-in one: the published method, and PELT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy.typing as npt

from benchrigor.model import ChangePoints
from benchrigor.model.checks import refuse, wrong_choice
from benchrigor.model.series import as_series
from benchrigor.stats.changepoints.detector import MIN_SEGMENT, MIN_SEGMENTS, detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector
from benchrigor.stats.changepoints.unsettled import settle_ends
from benchrigor.stats.changepoints.variance_inflation import inflation_across
from benchrigor.stats.series.long_run_variance import batch_means

BUILT_IN, PUBLISHED, PELT = "ranks", "edm", "pelt"
# The cost is quadratic: pelt takes 1 s for so many readings, and a minute for ten times as many.
_MOST_POINTS = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDetector:
    """A detector with a name; PELT sees a long series as up to 2048 means of neighbours."""

    name: str
    search: Callable[[Any], ChangePoints]
    min_segment: int

    def __call__(self, values: npt.ArrayLike) -> ChangePoints:
        """Return the change points of readings, shape (n,), at whole multiples of a batch."""
        series = as_series(values)
        if takes_longest(self):
            return self.search(series)
        size = -(-series.size // _MOST_POINTS)
        points = self.search(batch_means(series, size))
        points = ChangePoints(
            indices=tuple(size * index for index in points.indices),
            n=series.size,
            level=None,
            inflation=inflation_across(series),
        )
        return settle_ends(series, points, self.min_segment)


def takes_longest(detector: object) -> bool:
    """Whether the longest segment between its change points counts whole, as published."""
    return isinstance(detector, NamedDetector) and detector.name == PUBLISHED


def detector_to_trim(name: str, trim: object) -> NamedDetector | None:
    """Return the detector of a name; refuse one that is unknown, or has nothing to cut."""
    problems = wrong_choice("detector", name, (BUILT_IN, PUBLISHED, PELT))
    if not (problems or trim or name == BUILT_IN):
        problems = [f"detector is {name!r}, expected one only where phases are looked for"]
    refuse(problems)
    return detector_named(name)


def detector_named(name: str, min_segment: int | None = None) -> NamedDetector | None:
    """Return the detector of a name in `Options`; None for the built-in one, which trims itself."""
    if name == BUILT_IN:
        return None
    min_segment = min_segment or MIN_SEGMENTS.get(name, MIN_SEGMENT)
    search: Callable[[Any], ChangePoints]
    if name == PUBLISHED:
        search = partial(detect_changes, method=name, min_segment=min_segment)
    else:
        ruptures: Any = import_module("ruptures")  # only who asks for it waits for it
        search = RupturesDetector(ruptures.Pelt(model="l2", min_size=min_segment))
    return NamedDetector(name=name, search=search, min_segment=min_segment)
