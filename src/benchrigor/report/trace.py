"""What the picture of a run shows: readings, phases, change points, and the number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from benchrigor.model import Floats, Phase, PhaseLabel, StablePhase
from benchrigor.stats import trimmed

__all__ = ["Part", "Span", "Trace"]

Span = tuple[int, int]
"""First reading, and the first one behind."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """A series that was cut for itself, and where it stands among all readings."""

    series: Floats
    offset: int
    phases: StablePhase | None
    margin: bool = True
    """Whether the number leaves out a margin next to each cut."""

    @property
    def labelled(self) -> tuple[Phase, ...]:
        """All phases; none where nothing was cut."""
        return self.phases.phases if self.phases else ()

    @property
    def kept(self) -> Span | None:
        """The readings that the number stands on; None when there are none."""
        if self.phases is None:
            return self.offset, self.offset + self.series.size
        if self.phases.start is None or self.phases.stop is None:
            return None
        start, stop = self.phases.start, self.phases.stop
        if self.margin:
            inner = trimmed(np.arange(self.series.size, dtype=np.float64), self.phases)
            start, stop = int(inner[0]), int(inner[-1]) + 1
        return self.offset + start, self.offset + stop


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """All that the picture shows."""

    series: Floats
    parts: tuple[Part, ...]
    quantity: str
    unit: str
    title: str = ""
    level: tuple[float, float, float] | None = None
    """The number and the ends of its interval; None when there is no number."""
    words: str = ""
    """The number in words, or why there is none."""

    @property
    def kept(self) -> list[Span]:
        """The readings that the number stands on; none where there is no number."""
        return [part.kept for part in self.parts if part.kept is not None and self.level]

    @property
    def rejected(self) -> list[tuple[Span, PhaseLabel]]:
        """Stretches of adjacent phases with the same label, but for the stable ones."""
        found = []
        for part in self.parts:
            for label, group in groupby(part.labelled, key=lambda phase: phase.label):
                run = list(group)
                if label != PhaseLabel.STABLE:
                    span = (part.offset + run[0].start, part.offset + run[-1].stop)
                    found.append((span, label))
        return found

    def changes(self, *, material: bool) -> list[int]:
        """Change points that end a phase, or those between phases that count as one."""
        found = []
        for part in self.parts:
            borders = {phase.start for phase in part.labelled}
            indices = part.phases.change_points.indices if part.phases else ()
            found += [part.offset + each for each in indices if (each in borders) is material]
        return found

    @property
    def window(self) -> tuple[float, float]:
        """The range of the vertical axis: the bulk of every phase, and the number.

        A phase's few farthest readings do not widen it, unless they lie close by anyway; an
        interval widens it by no more than its size.
        """
        bulks = [
            _bulk(part.series[phase.start : phase.stop])
            for part in self.parts
            for phase in part.labelled
        ] or [_bulk(self.series)]
        low, high = min(bulk[0] for bulk in bulks), max(bulk[1] for bulk in bulks)
        reach = high - low
        least, most = float(self.series.min()), float(self.series.max())
        low = least if least >= low - reach / 2.0 else low
        high = most if most <= high + reach / 2.0 else high
        if self.level is not None:
            low = min(low, max(self.level[1], low - reach))
            high = max(high, min(self.level[2], high + reach))
        pad = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        return low - pad, high + pad


def _bulk(series: Floats) -> tuple[float, float]:
    """Return the range of a phase without its farthest readings: 0.5 %, or up to three."""
    if series.size < 10:
        return float(series.min()), float(series.max())
    left_out = math.ceil(max(0.005 * series.size, min(3.0, math.sqrt(series.size) / 3.0)))
    last = series.size - 1 - left_out
    parted = np.partition(series, (left_out, last))
    return float(parted[left_out]), float(parted[last])
