"""The content of the picture of a run: readings, phases, change points, and the number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from benchrigor.model.analysis import Phase, PhaseLabel, StablePhase
from benchrigor.model.readings import Reason
from benchrigor.model.series import Floats, Ints
from benchrigor.units import Scale, counted, many, scale_for

# Share of a phase's readings on either side that may lie far off without setting the range.
_FAR = 0.03
_ALIKE = 1e5  # Readings that differ by less than this part of themselves are shown as differences

RED_ROUND = "red round"
Span = tuple[int, int]  # First reading, and the first one after the last


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """A series with its own phases, and its offset among all readings."""

    series: Floats
    offset: int
    phases: StablePhase | None

    @property
    def labelled(self) -> tuple[Phase, ...]:
        """All phases; none without a cut."""
        return self.phases.phases if self.phases else ()

    @property
    def kept(self) -> Span | None:
        """The readings that count, or None."""
        if self.phases is None:
            return self.offset, self.offset + self.series.size
        if (inner := self.phases.measured) is None:
            return None
        return self.offset + inner.start, self.offset + inner.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """How numbers are written along an axis: in a scale, as differences from a base."""

    name: str
    scale: Scale
    base: float = 0.0

    def show(self, height: float, step: float) -> str:
        """Write a height with enough digits to distinguish it from heights a step away."""
        number, step = (height - self.base) * self.scale.factor, step * self.scale.factor
        digits = max(0, -math.floor(math.log10(step) + 1e-6))
        if not math.isclose(round(step, digits), step, rel_tol=1e-4):
            digits += 1  # a step of 2.5, not of 2
        exact = 0.0 if abs(number) < 1e-6 * step else round(number, digits)
        return f"{exact:,.{digits}f}" if digits < 10 else f"{exact:.15g}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """All that the picture shows."""

    series: Floats
    parts: tuple[Part, ...]
    quantity: str
    unit: str
    title: str = ""
    # The number and the ends of its interval; None without a number.
    level: tuple[float, float, float] | None = None
    words: str = ""  # The number in words, or the reason why it is missing
    delayed: str = ""  # How many readings do not count for their delay, and of how many
    # Of the readings of the parts, their places among all of ``series``; None for the same ones.
    places: Ints | None = None
    reasons: npt.NDArray[np.int8] | None = None  # Why readings of ``series`` count, if known

    def span(self, start: int, stop: int) -> Span:
        """Return readings of the parts as a span of all readings."""
        if self.places is None:
            return start, stop
        chosen = self.places[start:stop]
        return int(chosen.min()), int(chosen.max()) + 1

    def are(self, reason: Reason) -> npt.NDArray[np.bool_]:
        """Return which of all readings do not count for this reason, shape (n,)."""
        if self.reasons is None:
            return np.zeros(self.series.size, dtype=np.bool_)
        mask: npt.NDArray[np.bool_] = self.reasons == reason
        return mask

    @property
    def count(self) -> npt.NDArray[np.bool_]:
        """Which of all readings count, shape (n,)."""
        counting = np.zeros(self.series.size, dtype=np.bool_)
        for start, stop in self.kept:
            counting[start:stop] = True
        return counting & ~self.are(Reason.DISTURBED) & ~self.are(Reason.RED_ROUND)

    @property
    def kept(self) -> list[Span]:
        """The readings that count, and disturbed ones between them; empty without a number."""
        spans = [part.kept for part in self.parts if part.kept is not None and self.level]
        return [self.span(*kept) for kept in spans]

    @property
    def rejected(self) -> list[tuple[Span, str]]:
        """Red rounds, and adjacent phases of one label joined, but for the stable ones."""
        red = np.flatnonzero(np.diff(self.are(Reason.RED_ROUND), prepend=False, append=False))
        joined = [((int(ends[0]), int(ends[1])), RED_ROUND) for ends in red.reshape(-1, 2)]
        for part in self.parts:
            for label, group in groupby(part.labelled, key=lambda phase: phase.label):
                run = list(group)
                if label != PhaseLabel.STABLE:
                    span = self.span(part.offset + run[0].start, part.offset + run[-1].stop)
                    joined.append((span, str(label)))
        return sorted(joined)

    def changes(self, *, material: bool) -> list[int]:
        """Change points that end a phase, or those between phases that count as one."""
        points = []
        for part in self.parts:
            borders = {phase.start for phase in part.labelled}
            indices = part.phases.change_points.indices if part.phases else ()
            points += [part.offset + index for index in indices if (index in borders) is material]
        return points if self.places is None else self.places[points].tolist()

    @property
    def window(self) -> tuple[float, float]:
        """The range of the vertical axis: the bulk of every phase, and the number.

        The farthest 3 % of a phase's readings on either side do not widen it, unless they lie
        close. An interval widens it by up to its height, the number by up to twice its height.
        """
        bulks = [
            _bulk(part.series[phase.start : phase.stop])
            for part in self.parts
            for phase in part.labelled
        ] or [_bulk(self.series)]
        low, high = min(bulk[0] for bulk in bulks), max(bulk[1] for bulk in bulks)
        # If the bulk is one value, all the others are shown.
        reach = (high - low) / 2.0 or math.inf
        near = self.series[(self.series >= low - reach) & (self.series <= high + reach)]
        low, high = float(near.min()), float(near.max())
        if self.level is not None:
            reach, value = high - low, self.level[0]
            shown = value if low - 2.0 * reach <= value <= high + 2.0 * reach else low
            low, high = (
                min(low, shown, max(self.level[1], low - reach)),
                max(high, shown, min(self.level[2], high + reach)),
            )
        least = 1.0 / scale_for(0.0, self.unit).factor
        pad = 0.06 * (high - low) or 0.05 * abs(high) or least
        return low - pad, high + pad

    @property
    def ruler(self) -> Ruler:
        """In the scale of the number, as differences from a base if all readings are the same."""
        low, high = self.window
        farthest, height = max(abs(low), abs(high)), high - low
        typical = self.level[0] if self.level else float(np.median(self.series))
        scale = scale_for(max(abs(typical), farthest / 1000.0), self.unit)
        if farthest < _ALIKE * height:
            return Ruler(name=_in_unit(self.quantity, scale), scale=scale)
        step = 10.0 ** math.floor(math.log10(height))
        base = round((low + high) / 2.0 / step) * step
        digits = max(15, 1 + math.ceil(math.log10(farthest / step)))
        shown = f"{base * scale.factor:,.{digits}g} {scale.name}".rstrip()
        fine = scale_for(height / 2.0, self.unit)
        return Ruler(name=_in_unit(f"{self.quantity} minus {shown}", fine), scale=fine, base=base)

    @property
    def evidence(self) -> str:
        """The basis of the number, or the reason why it is missing."""
        if self.level is None:
            return f"No number. {self.words or 'Nothing was analysed yet.'}"
        kept = int(self.count.sum())
        cut = [part for part in self.parts if part.kept is not None and part.phases is not None]
        margin = sum(part.phases.n for part in cut if part.phases) - sum(
            stop - start for start, stop in (part.kept for part in cut if part.kept)
        )
        parts = [f"{counted(kept)} of {many(self.series.size, 'reading')} kept"]
        if margin:
            parts.append(f"{counted(margin)} left out as a margin")
        if self.delayed:
            parts.append(f"left out: {self.delayed}")
        if len(self.parts) > 1:
            parts.append(f"{counted(len(self.kept))} of {many(len(self.parts), 'round')} count")
        return " · ".join(parts)

    @property
    def tally(self) -> str:
        """How many change points there are, on two lines if some are dotted; else empty."""
        solid, dotted = len(self.changes(material=True)), len(self.changes(material=False))
        if not dotted:
            return many(solid, "change point") if solid else ""
        if not solid:
            return many(dotted, "immaterial\nchange point") + " (dotted)"
        return f"{many(solid + dotted, 'change point')},\n{counted(dotted)} immaterial (dotted)"


def _bulk(series: Floats) -> tuple[float, float]:
    """Return the range of a phase without its farthest readings: 3 %, or up to three."""
    if series.size < 10:
        return float(series.min()), float(series.max())
    left_out = math.ceil(max(_FAR * series.size, min(3.0, math.sqrt(series.size) / 3.0)))
    last = series.size - 1 - left_out
    parted = np.partition(series, (left_out, last))
    return float(parted[left_out]), float(parted[last])


def _in_unit(quantity: str, scale: Scale) -> str:
    return f"{quantity} ({scale.name})" if scale.name else quantity
