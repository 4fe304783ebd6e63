"""The picture of rounds of various work, and of the line through their durations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Analysis, RunRecord, WpsFit
from benchrigor.model.series import Floats
from benchrigor.model.text import no_number, show_estimate, show_overhead
from benchrigor.report.facts.work_facts import grown, outlying
from benchrigor.report.plots import drawing
from benchrigor.report.plots.trace import Ruler, Trace
from benchrigor.units import Scale, counted, many, percent, scale_for, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DECADES = 3.0  # Amounts that count over more decades are drawn on logarithmic axes
_FAR = 2.0  # An outlying round is marked at the edge if it is this factor above all others
_BEYOND = 1.05  # End of the line, as a multiple of the largest amount
_NAME_WIDTH = 6.0  # Width of the name of a round, relative to its size
# Overhead and slope are never taken to be more opposed than that: the band must not close.
_WAIST = 0.9
_STEPS = 200  # Points of the line
_HUGE = 1e15
_PLAIN = (1e-2, 1e6)  # Largest amounts that are written without a power of ten


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkLine(Trace):
    """The content of the picture: ``series`` are durations, ``level`` is the line's far end.

    ``work`` holds the work amounts of the rounds, ``counts`` whether they count.
    """

    work: Floats
    counts: npt.NDArray[np.bool_]
    analysis: Analysis

    @property
    def far(self) -> float:
        """The amount at which the line ends."""
        return _BEYOND * float(self.work[self.counts].max())

    def band(self, fit: WpsFit, work: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the line and the ends of its interval at these amounts.

        The variance of the line at w is the variance of the overhead, plus w^2 times the
        variance of the slope, plus 2 w times their covariance. In a least-squares line the slope
        and the level at the mean amount are uncorrelated, so the covariance is minus the mean
        amount times the variance of the slope.
        """
        start, slope = fit.overhead.half_width, fit.slope.half_width
        together = max(-float(self.work[self.counts].mean()) * slope**2, -_WAIST * start * slope)
        half = np.sqrt(np.maximum(start**2 + 2.0 * work * together + (work * slope) ** 2, 0.0))
        line = fit.overhead.value + fit.slope.value * work
        return line, line - half, line + half

    @property
    def logarithmic(self) -> bool:
        """Whether the amounts that count are too far apart for a ruler."""
        amounts = self.work[self.counts & (self.work > 0.0)]
        return amounts.size > 0 and float(amounts.max()) > 10.0**_DECADES * float(amounts.min())

    @property
    def window(self) -> tuple[float, float]:
        """The range of durations: all rounds but far outlying ones, the line, the overhead."""
        usual = np.ones(self.series.size, dtype=np.bool_)
        usual[list(outlying(self.analysis))] = False
        shown = self.series[usual]
        high = float(shown.max(initial=0.0))
        high = max(high, float(self.series[self.series <= _FAR * high].max(initial=high)))
        if self.level is not None:
            high = max(high, min(self.level[2], _FAR * high))
        if self.logarithmic:
            positive = self.series[self.series > 0.0]
            return 0.7 * float(positive.min()), 1.5 * high
        low = 0.0
        if self.analysis.wps is not None:
            low = min(0.0, max(self.analysis.wps.overhead.low, -0.5 * high))
        return low - (0.04 * (high - low) if low else 0.0), high + (0.06 * (high - low) or 1e-9)

    @property
    def across(self) -> Ruler:
        """The scale in which amounts of work are written."""
        unit = self.analysis.metric.unit.removesuffix("/s")
        largest = float(self.work.max())
        if unit == "B" and largest < _HUGE:
            scale = scale_for(largest, unit)
        elif _PLAIN[0] <= largest < _PLAIN[1]:
            scale = Scale(factor=1.0, name=unit)
        else:
            power = 3 * math.floor(math.log10(largest) / 3.0)
            scale = Scale(factor=10.0**-power, name=f"1e{power} {unit}".rstrip())
        return Ruler(name=f"work ({scale.name})" if scale.name else "work", scale=scale)

    @property
    def evidence(self) -> str:
        """The basis of the number, or the reason why it is missing."""
        n, kept = self.series.size, int(self.counts.sum())
        parts = [f"{counted(kept)} of {many(n, 'round')} count{'s' if kept == 1 else ''}"]
        if kept < n:
            parts[0] += " (the others are hollow)"
        fit = self.analysis.wps
        if fit is not None and fit.shape not in (None, "linear"):
            parts.append(grown(fit))
        elif fit is not None and self.level is not None:
            parts.append(f"each predicted from the others to {percent(fit.prediction_error)}")
        if self.level is None:
            parts.insert(0, f"No number. {no_number(self.analysis.notices)}")
        return " · ".join(parts)


def work_line(record: RunRecord, analysis: Analysis) -> WorkLine:
    """Take the rounds and the line from a record."""
    rounds = record.whole_rounds
    work = np.array([round_.plan.work or 0.0 for round_ in rounds], dtype=np.float64)
    counts = np.arange(work.size) < analysis.n
    counts[list(analysis.left_out)] = False
    line = WorkLine(
        series=np.array([round_.duration_s for round_ in rounds], dtype=np.float64),
        parts=(),
        quantity="duration",
        unit="s",
        title=record.name,
        work=work,
        counts=counts,
        analysis=analysis,
    )
    fit, estimate = analysis.wps, analysis.estimate
    if estimate is None or fit is None:
        return line
    value, low, high = (float(end[0]) for end in line.band(fit, np.array([line.far])))
    shown = show_estimate(estimate, analysis.metric.unit).replace(" [", "\n[", 1)
    return replace(line, level=(value, low, high), words=shown)


def draw_work(line: WorkLine, axes: Axes | None) -> Axes:
    """Draw rounds of various work, into a new figure if no axes are given."""
    axes = axes or drawing.new_axes()
    _scale(axes, line)
    _draw_rounds(axes, line)
    _ring(axes, line)
    if line.analysis.wps is not None:
        _draw_line(axes, line, line.analysis.wps)
        _mark_overhead(axes, line.analysis.wps)
    _mark_outliers(axes, line)
    drawing.write_words(axes, line)
    _dress(axes, line)
    return axes


def _scale(axes: Axes, line: WorkLine) -> None:
    largest = float(line.work.max())
    if line.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        smallest = float(line.work[line.work > 0.0].min())
        room = (largest / smallest) ** 0.03
        axes.set_xlim(smallest / room, largest * room)
    else:
        axes.set_xlim(0.0, _BEYOND * largest)
    axes.set_ylim(*line.window)


def _draw_rounds(axes: Axes, line: WorkLine) -> None:
    """Draw every round, those that do not count hollow."""
    size = min(6.0, max(3.0, 40.0 / math.sqrt(line.series.size)))
    hollow = {"markerfacecolor": "none", "markeredgecolor": drawing.PALE, "markeredgewidth": 0.8}
    solid = {"color": drawing.INK, "markeredgewidth": 0.0, "alpha": 0.7}
    for chosen, look, label in (
        (~line.counts, hollow, "left out"),
        (line.counts, solid, "counted"),
    ):
        style: dict[str, Any] = {"markersize": size, "zorder": 2.0, "label": label, **look}
        axes.plot(line.work[chosen], line.series[chosen], "o", **style)


def _ring(axes: Axes, line: WorkLine) -> None:
    """Ring the rounds far from the line, and name them if names do not collide."""
    low, high = axes.get_ylim()
    rings = [index for index in outlying(line.analysis) if low <= line.series[index] <= high]
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": drawing.OUTLYING}
    ring |= {"markersize": 11.0, "markeredgewidth": 1.2, "zorder": 5.0, "label": "outlying"}
    axes.plot(line.work[rings], line.series[rings], "o", **ring)
    places = axes.transData.transform(np.column_stack([line.work[rings], line.series[rings]]))
    reach = np.array([_NAME_WIDTH, 1.3]) * drawing.SMALL * axes.figure.dpi / 72.0
    named: list[npt.NDArray[np.float64]] = []
    for index, place in zip(rings, places, strict=True):
        if any((np.abs(place - other) < reach).all() for other in named):
            continue
        named.append(place)
        is_late = axes.transAxes.inverted().transform(place)[0] > 0.5
        side, points = ("right", -9.0) if is_late else ("left", 9.0)
        style = {"ha": side, "va": "center", "fontsize": drawing.SMALL, "color": drawing.OUTLYING}
        at = (line.work[index], line.series[index])
        drawing.write(axes, f"round {index}", at, (points, 0.0), "data", **style)


def _draw_line(axes: Axes, line: WorkLine, fit: WpsFit) -> None:
    """Draw the line with its interval, pale if it gives no number."""
    left, right = axes.get_xlim()
    at = np.geomspace(left, right, _STEPS) if line.logarithmic else np.linspace(0.0, right, _STEPS)
    value, low, high = line.band(fit, at)
    if line.logarithmic:  # values below 0 have no place
        value, low = np.where(value > 0.0, value, np.nan), np.maximum(low, axes.get_ylim()[0])
    color = drawing.NUMBER if line.level else drawing.PALE
    axes.fill_between(
        at, low, high, color=color, alpha=0.3, linewidth=0.0, zorder=3.0, label="interval"
    )
    axes.plot(at, value, color=color, linewidth=1.6, zorder=4.0, label="line")


def _mark_overhead(axes: Axes, fit: WpsFit) -> None:
    """Mark the overhead with its interval on the vertical axis."""
    overhead = fit.overhead
    bottom, top = axes.get_ylim()
    if overhead.value > bottom and overhead.low < top:
        style: dict[str, Any] = {"color": drawing.CHANGE, "clip_on": False}
        style["transform"] = axes.get_yaxis_transform()
        bar: dict[str, Any] = {
            "linewidth": 3.0,
            "solid_capstyle": "butt",
            "label": "interval of the overhead",
        }
        ends = [max(overhead.low, bottom), min(overhead.high, top)]
        axes.plot([0.0, 0.0], ends, zorder=6.0, **bar, **style)
        point: dict[str, Any] = {
            "markersize": 6.0,
            "markeredgecolor": drawing.PAPER,
            "label": "overhead",
        }
        axes.plot([0.0], [overhead.value], "D", zorder=7.0, **point, **style)
    shown = show_overhead(overhead).replace(" [", "\n[", 1)
    drawing.beside(axes, f"overhead\n{shown}", 0.0, va="bottom", color=drawing.CHANGE)


def _mark_outliers(axes: Axes, line: WorkLine) -> None:
    """Mark outlying rounds above the axes at their edge, and say how far up they are."""
    above = np.flatnonzero(line.series > axes.get_ylim()[1])
    if above.size == 0:
        return
    farthest = show_value(float(line.series.max()), "s")
    words = f"{many(above.size, 'round')} beyond,\nup to {farthest}"
    if above.size == 1:
        words = f"round {above[0]} beyond,\nat {farthest}"
    drawing.mark_beyond(axes, line.work[above], words, drawing.OUTLYING)


def _dress(axes: Axes, line: WorkLine) -> None:
    """Name and scale the axes."""
    if not line.logarithmic:
        for axis, ruler in ((axes.xaxis, line.across), (axes.yaxis, line.ruler)):
            axis.set_major_formatter(drawing.ticks(axis, ruler))
        drawing.name_axes(axes, line.across.name, line.ruler.name)
        return
    unit = line.analysis.metric.unit.removesuffix("/s")
    axes.xaxis.set_major_formatter(lambda work, _: _power(work, unit))
    axes.yaxis.set_major_formatter(lambda seconds, _: show_value(seconds, "s"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter("")
    drawing.name_axes(axes, f"work ({unit})" if unit else "work", "duration")


def _power(work: float, unit: str) -> str:
    """Write a power of ten, as short as it stands next to the next one."""
    if unit == "B" and 1.0 <= work < _HUGE:
        return show_value(work, unit)
    return f"{work:,.0f}" if 1.0 <= work < _PLAIN[1] else f"1e{round(math.log10(work))}"
