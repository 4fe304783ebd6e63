"""Drawing a `benchrigor.report.trace.Trace` into matplotlib axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchrigor.errors import MissingExtra
from benchrigor.model import Floats, PhaseLabel
from benchrigor.model.headline import counted, show_value
from benchrigor.report.trace import Trace
from benchrigor.units import digits_for, scale_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

# Okabe and Ito's colours, which the colour-blind tell apart; tints for areas, dark for text.
_INK, _PALE, _FRAME = "#262626", "#8c8c8c", "#a6a6a6"
_NUMBER, _CHANGE = "#0072b2", "#d55e00"
_TINTS = {
    PhaseLabel.WARM_UP: ("#fdebd0", "#9a5b00"),
    PhaseLabel.COOL_DOWN: ("#dcedf9", "#1c6496"),
    PhaseLabel.OTHER: ("#ededed", "#595959"),
}
_SMALL = 9.0
"""Size of text beside the axis labels, in points."""

_FEW = 6
"""So many shaded stretches are all named, where there is room."""
_GAP = 6.0
"""Between the axes and the words in the right margin, in points."""

_MOST_POINTS = 4000
"""Beyond about four points per pixel column they hide each other, and files grow."""
_MOST_COLUMNS = 1000
_MARKS = 150
"""So many marks side by side fill the edge."""
_LINE = 96
"""Characters of text that fit above the axes."""


def draw(trace: Trace, axes: Axes | None) -> Axes:
    """Draw a trace, into a new figure where no axes are given."""
    if axes is None:
        axes = _new_axes()
    low, high = trace.window
    axes.set_xlim(-0.5, trace.series.size - 0.5)
    axes.set_ylim(low, high)
    _shade(axes, trace)
    _mark_changes(axes, trace)
    if trace.series.size > _MOST_POINTS:
        _draw_columns(axes, trace.series)
    else:
        _draw_points(axes, trace)
    _draw_level(axes, trace)
    _mark_outliers(axes, trace)
    _label_phases(axes, trace)
    _write_words(axes, trace)
    _dress(axes, trace)
    return axes


def _new_axes() -> Axes:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # only who draws pays for it
    except ModuleNotFoundError as error:
        raise MissingExtra("drawing", package="matplotlib", extra="report") from error
    return Figure(
        figsize=(8.0, 4.0), dpi=150, facecolor="white", layout="constrained"
    ).add_subplot()


def _shade(axes: Axes, trace: Trace) -> None:
    for label, (tint, _) in _TINTS.items():
        spans = [span for span, each in trace.rejected if each == label]
        bars = [(start - 0.5, float(stop - start)) for start, stop in spans]
        if bars:
            axes.broken_barh(
                bars,
                (0.0, 1.0),
                transform=axes.get_xaxis_transform(),
                facecolor=tint,
                linewidth=0.0,
                zorder=0.0,
                label=str(label),
            )


def _mark_changes(axes: Axes, trace: Trace) -> None:
    rounds = [part.offset for part in trace.parts[1:]]
    _uprights(axes, rounds, color=_FRAME, label="round")
    _uprights(axes, trace.changes(material=True), color=_CHANGE, label="change point")
    _uprights(
        axes,
        trace.changes(material=False),
        color=_CHANGE,
        alpha=0.7,
        linestyle=(0.0, (1.0, 2.5)),
        label="immaterial change point",
    )


def _uprights(axes: Axes, indices: Sequence[int], **style: Any) -> None:
    """Draw vertical lines between each of these readings and the one before."""
    if indices:
        at = np.asarray(indices) - 0.5
        width = min(1.0, max(0.3, 12.0 / len(indices)))  # many lines must not be a wall
        across = axes.get_xaxis_transform()
        axes.vlines(at, 0.0, 1.0, transform=across, linewidth=width, zorder=1.0, **style)


def _draw_points(axes: Axes, trace: Trace) -> None:
    """Draw every reading, those that count darker than the others."""
    n = trace.series.size
    counting = np.zeros(n, dtype=np.bool_)
    for start, stop in trace.kept:
        counting[start:stop] = True
    size = min(5.0, max(2.0, 70.0 / math.sqrt(n)))
    for chosen, color, label in ((~counting, _PALE, "left out"), (counting, _INK, "kept")):
        at = np.flatnonzero(chosen)
        axes.plot(
            at,
            trace.series[at],
            linestyle="none",
            marker="o",
            markersize=size,
            markeredgewidth=0.0,
            color=color,
            alpha=0.7,
            zorder=2.0,
            label=label,
        )


def _draw_columns(axes: Axes, series: Floats) -> None:
    """Draw range, middle half and median of the readings that fall into each column."""
    borders = np.linspace(0, series.size, _columns(series.size) + 1).astype(np.int64)
    columns = np.split(series, borders[1:-1])
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    least, low, middle, high, most = np.array([np.quantile(each, shares) for each in columns]).T
    edges = borders - 0.5
    for bottom, top, alpha, label in ((least, most, 0.2, "range"), (low, high, 0.4, "middle half")):
        axes.stairs(
            top,
            edges,
            baseline=bottom,
            fill=True,
            color=_INK,
            alpha=alpha,
            linewidth=0.0,
            zorder=2.0,
            label=label,
        )
    axes.stairs(middle, edges, baseline=None, color=_INK, linewidth=0.8, zorder=2.0, label="median")


def _columns(n: int) -> int:
    """Choose columns as wide as a pixel, or wide enough for a median that means something."""
    return min(_MOST_COLUMNS, n // 25)


def _draw_level(axes: Axes, trace: Trace) -> None:
    if trace.level is None:
        return
    value, low, high = trace.level
    spans = [(start - 0.5, float(stop - start)) for start, stop in trace.kept]
    axes.broken_barh(
        spans,
        (low, high - low),
        facecolor=_NUMBER,
        alpha=0.3,
        linewidth=0.0,
        zorder=3.0,
        label="interval",
    )
    starts = [start for start, _ in spans]
    stops = [start + width for start, width in spans]
    axes.hlines(
        [value] * len(spans),
        starts,
        stops,
        color=_NUMBER,
        linewidth=1.6,
        zorder=4.0,
        label="number",
    )


def _mark_outliers(axes: Axes, trace: Trace) -> None:
    """Mark readings beyond the axes at their edge, without crowding, and count them."""
    low, high = axes.get_ylim()
    n, series = trace.series.size, trace.series
    for outside, height, marker, farthest in (
        (series > high, 0.98, "^", f"up to {show_value(float(series.max()), trace.unit)}"),
        (series < low, 0.02, "v", f"down to {show_value(float(series.min()), trace.unit)}"),
    ):
        at = np.flatnonzero(outside)
        if at.size == 0:
            continue
        marks = at[np.unique(at * _MARKS // n, return_index=True)[1]]
        axes.plot(
            marks,
            np.full(marks.size, height),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker=marker,
            markersize=4.0,
            markeredgewidth=0.0,
            color=_INK,
            clip_on=False,
            zorder=5.0,
            label="beyond",
        )
        place = "top" if marker == "^" else "bottom"
        _beside(
            axes, f"{counted(at.size)} beyond,\n{farthest}", round(height), va=place, color=_INK
        )


def _beside(axes: Axes, words: str, height: float, **style: Any) -> None:
    """Write into the right margin, at a share of the axes' height."""
    axes.annotate(
        words,
        (1.0, height),
        xycoords="axes fraction",
        xytext=(_GAP, 0.0),
        textcoords="offset points",
        fontsize=_SMALL,
        parse_math=False,
        **style,
    )


def _above(
    axes: Axes, words: str, points: float, *, at: float = 0.0, right: float = 0.0, **style: Any
) -> None:
    """Write above the axes, at a share of their width and so many points to the right of it."""
    axes.annotate(
        words,
        (at, 1.0),
        xycoords="axes fraction",
        xytext=(right, points),
        textcoords="offset points",
        va="bottom",
        parse_math=False,
        **style,
    )


def _label_phases(axes: Axes, trace: Trace) -> None:
    """Name the shaded stretches above them: all if few, else wide ones and one of each kind."""
    n = trace.series.size
    points = axes.get_window_extent().width * 72.0 / axes.figure.dpi
    taken: list[tuple[float, float]] = []
    written = set()
    for (start, stop), label in sorted(trace.rejected, key=lambda each: each[0][0] - each[0][1]):
        width = (0.55 * len(label) + 1.0) * _SMALL / points
        if label in written and len(trace.rejected) > _FEW and (stop - start) / n < width:
            continue
        centre = _free((start + stop) / 2.0 / n, width, taken)
        if centre is not None:
            taken.append((centre - width / 2.0, centre + width / 2.0))
            written.add(label)
            color = _TINTS[label][1]
            _above(axes, str(label), 3.0, at=centre, ha="center", fontsize=_SMALL, color=color)


def _free(wanted: float, width: float, taken: list[tuple[float, float]]) -> float | None:
    """Return the place nearest to the wanted one where nothing is written yet."""
    half = width / 2.0
    places = [wanted, half, 1.0 - half]
    places += [place for left, right in taken for place in (left - half, right + half)]
    for place in sorted(places, key=lambda place: abs(place - wanted)):
        within = half <= place <= 1.0 - half
        if within and all(right <= place - half or place + half <= left for left, right in taken):
            return place
    return None


def _write_words(axes: Axes, trace: Trace) -> None:
    low, high = axes.get_ylim()
    if trace.level is None:
        evidence, color = f"No number. {trace.words or 'Nothing was analysed yet.'}", _CHANGE
    else:
        height = min(max((trace.level[0] - low) / (high - low), 0.15), 0.8)
        _beside(axes, trace.words, height, va="center", color=_NUMBER)
        evidence, color = _evidence(trace), _TINTS[PhaseLabel.OTHER][1]
    bottom = 18.0 if trace.rejected else 6.0
    lines = textwrap.wrap(evidence, _LINE, max_lines=3, placeholder=" …")
    _above(axes, "\n".join(lines), bottom, fontsize=_SMALL, color=color)
    changes = _changes(trace)
    _above(axes, changes, 3.0, at=1.0, right=_GAP, fontsize=_SMALL, color=_CHANGE)
    title = textwrap.shorten(trace.title, _LINE * 3 // 4, placeholder=" …")
    points = bottom + 4.0 + 1.25 * _SMALL * len(lines)
    _above(axes, title, points, fontsize=11.0, color=_INK, fontweight="bold")


def _evidence(trace: Trace) -> str:
    kept = sum(stop - start for start, stop in trace.kept)
    margin = trace.series.size - kept - sum(stop - start for (start, stop), _ in trace.rejected)
    parts = [f"{counted(kept)} of {_many(trace.series.size, 'reading')} kept"]
    if margin:
        parts.append(f"{counted(margin)} left out as a margin")
    if len(trace.parts) > 1:
        parts.append(f"{counted(len(trace.kept))} of {_many(len(trace.parts), 'round')} count")
    return " · ".join(parts)


def _changes(trace: Trace) -> str:
    """Count the vertical lines, in their own colour: that names them."""
    small = len(trace.changes(material=False))
    if not small and not trace.changes(material=True):
        return ""
    words = _many(len(trace.changes(material=True)) + small, "change point")
    return f"{words},\n{counted(small)} immaterial (dotted)" if small else words


def _many(number: int, noun: str) -> str:
    return f"{counted(number)} {noun}{'' if number == 1 else 's'}"


def _dress(axes: Axes, trace: Trace) -> None:
    """Name and scale the axes, and take away what says nothing."""
    typical = trace.level[0] if trace.level else float(np.median(trace.series))
    scale = scale_for(typical, trace.unit)

    def tick(value: float, _position: object = None) -> str:
        low, high = axes.get_ylim()
        exact = 0.0 if abs(value) < 1e-9 * (high - low) else value
        return scale.show(exact, digits_for((high - low) / 2.0 * scale.factor, exact))

    order = "reading, in time order"
    if len(trace.parts) > 1:
        order = f"reading, {counted(len(trace.parts))} rounds in a row"
    if trace.series.size > _MOST_POINTS:
        order += (
            f" (range, middle half and median of {counted(_columns(trace.series.size))} columns)"
        )
    name = f"{trace.quantity} ({scale.name})" if scale.name else trace.quantity
    axes.set_xlabel(order, color=_INK, fontsize=10.0)
    axes.set_ylabel(name, color=_INK, fontsize=10.0, parse_math=False)
    axes.locator_params(axis="x", integer=True)
    if trace.series.size == 1:
        axes.set_xticks([0])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter(tick)
    axes.tick_params(color=_FRAME, labelcolor=_INK, labelsize=_SMALL)
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FRAME)
