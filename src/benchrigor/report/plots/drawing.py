"""Draws a `benchrigor.report.plots.trace.Trace` into matplotlib axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import MissingExtra
from benchrigor.model.analysis import PhaseLabel
from benchrigor.model.readings import Reason
from benchrigor.report.plots.trace import RED_ROUND, Ruler, Span, Trace
from benchrigor.safe_text import escaped, page
from benchrigor.units import counted, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Annotation

# How single readings, or segments, are drawn.
DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0.0, "alpha": 0.7}
# Okabe and Ito's colours, which the colour-blind can distinguish, dark enough for text.
PAPER, INK, PALE, FRAME = "#ffffff", "#262626", "#8c8c8c", "#a6a6a6"
NUMBER, CHANGE, OUTLYING = "#0072b2", "#b84e00", "#b34d83"
GOOD, DOUBTFUL, BAD, UNKNOWN = "#007a57", "#8a6d00", "#b3261e", "#595959"
_EARLY, _LATE = "#9a5b00", "#1c6496"
_EARLY_TINT, _LATE_TINT, _OTHER_TINT = "#fdebd0", "#dcedf9", "#ededed"
_RED_TINT = "#fbe0de"
_TINTS = {
    PhaseLabel.WARM_UP: (_EARLY_TINT, _EARLY),
    PhaseLabel.COOL_DOWN: (_LATE_TINT, _LATE),
    PhaseLabel.OTHER: (_OTHER_TINT, UNKNOWN),
    RED_ROUND: (_RED_TINT, BAD),
}
PALETTE = {
    "paper": (PAPER, "#15181c"),
    "ink": (INK, "#e6e6e6"),
    "pale": (PALE, "#858a90"),
    "frame": (FRAME, "#5d636a"),
    "number": (NUMBER, "#5cb8ee"),
    "change": (CHANGE, "#ff9650"),
    "outlying": (OUTLYING, "#ea8fbd"),
    "good": (GOOD, "#4cc596"),
    "doubtful": (DOUBTFUL, "#dcb62e"),
    "bad": (BAD, "#ff8a80"),
    "unknown": (UNKNOWN, "#aab0b7"),
    "early": (_EARLY, "#e5aa57"),
    "late": (_LATE, "#7fbbe6"),
    "early-tint": (_EARLY_TINT, "#3b2c14"),
    "late-tint": (_LATE_TINT, "#16303f"),
    "other-tint": (_OTHER_TINT, "#2a2f35"),
    "red-tint": (_RED_TINT, "#42201f"),
}
"""Each colour by a name, and its form on dark ground."""
SMALL = 9.0  # Size of text next to the axis labels, in points

_FEW = 6  # Up to this number of shaded phases, all are named if there is room
_GAP = 6.0  # Between the axes and the words in the right margin, in points

_MOST_POINTS = 4000  # More than about four points per pixel column hide each other, and files grow
_MOST_COLUMNS = 1000
_MARKS = 150  # Number of marks side by side that fills the edge
_CHARACTER = 0.55  # Width of a character, of its size
_NARROWED = 0.85  # Share of the axes' width that the words next to them leave


def draw(trace: Trace, axes: Axes | None) -> Axes:
    """Draw a trace, into a new figure if no axes are given."""
    axes = axes or new_axes()
    axes.set_xlim(-0.5, trace.series.size - 0.5)
    axes.set_ylim(*trace.window)
    _shade(axes, trace)
    _mark_changes(axes, trace)
    if trace.series.size > _MOST_POINTS:
        _draw_columns(axes, trace)
    else:
        _draw_points(axes, trace)
    _draw_level(axes, trace)
    _mark_outliers(axes, trace)
    _label_phases(axes, trace)
    write_words(axes, trace)
    _dress(axes, trace)
    return axes


def new_axes(width: float = 8.0, height: float = 4.0) -> Axes:
    """Return the axes of a new figure of this size in inches, unknown to the state of pyplot."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # only who draws pays for it
    except ModuleNotFoundError as error:
        raise MissingExtra("drawing", package="matplotlib", extra="report") from error
    return Figure(
        figsize=(width, height), dpi=150, facecolor=PAPER, layout="constrained"
    ).add_subplot()


def _shade(axes: Axes, trace: Trace) -> None:
    for label, (tint, _) in _TINTS.items():
        if spans := [span for span, name in trace.rejected if name == label]:
            whole = {"transform": axes.get_xaxis_transform(), "zorder": 0.0}
            _draw_bars(axes, spans, (0.0, 1.0), facecolor=tint, label=str(label), **whole)


def _draw_bars(axes: Axes, spans: Sequence[Span], ends: tuple[float, float], **style: Any) -> None:
    """Draw areas over these readings, between two heights."""
    places = [(start - 0.5, float(stop - start)) for start, stop in spans]
    axes.broken_barh(places, (ends[0], ends[1] - ends[0]), linewidth=0.0, **style)


def _mark_changes(axes: Axes, trace: Trace) -> None:
    _uprights(axes, [part.offset for part in trace.parts[1:]], color=FRAME, label="round")
    _uprights(axes, trace.changes(material=True), color=CHANGE, label="change point")
    dotted: dict[str, Any] = {"linestyle": (0.0, (1.0, 2.5)), "label": "immaterial change point"}
    _uprights(axes, trace.changes(material=False), color=CHANGE, alpha=0.7, **dotted)


def _uprights(axes: Axes, indices: Sequence[int], **style: Any) -> None:
    """Draw a vertical line to the left of these readings."""
    if indices:
        at = np.asarray(indices) - 0.5
        width = min(1.0, max(0.3, 12.0 / len(indices)))  # many lines must not be a wall
        across = axes.get_xaxis_transform()
        axes.vlines(at, 0.0, 1.0, transform=across, linewidth=width, zorder=1.0, **style)


def _draw_points(axes: Axes, trace: Trace) -> None:
    """Draw every reading; those that count are darker."""
    n, kept, disturbed = trace.series.size, trace.count, trace.are(Reason.DISTURBED)
    style: dict[str, Any] = {"markersize": min(5.0, max(2.0, 70.0 / math.sqrt(n))), **DOTS}
    for chosen, color, label in (
        (disturbed, OUTLYING, "disturbed"),
        (~kept & ~disturbed, PALE, "left out"),
        (kept, INK, "kept"),
    ):
        at = np.flatnonzero(chosen)
        axes.plot(at, trace.series[at], color=color, zorder=2.0, label=label, **style)


def _draw_columns(axes: Axes, trace: Trace) -> None:
    """Draw range, middle half and median of readings by column, darker if they count."""
    n = trace.series.size
    borders = np.linspace(0, n, _columns(n) + 1).astype(np.int64)
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    columns = np.split(trace.series, borders[1:-1])
    quantiles = np.array([np.quantile(column, shares) for column in columns]).T
    kept = np.add.reduceat(trace.count, borders[:-1], dtype=np.int64) * 2 >= np.diff(borders)
    edges = borders - 0.5
    for chosen, color, which in ((~kept, PALE, "left out"), (kept, INK, "kept")):
        if not chosen.any():
            continue
        least, low, middle, high, most = np.where(chosen, quantiles, np.nan)
        style: dict[str, Any] = {"color": color, "zorder": 2.0}
        filled = {**style, "fill": True, "linewidth": 0.0}
        axes.stairs(most, edges, baseline=least, alpha=0.2, label=f"range, {which}", **filled)
        axes.stairs(high, edges, baseline=low, alpha=0.4, label=f"middle half, {which}", **filled)
        axes.stairs(middle, edges, baseline=None, linewidth=0.8, label=f"median, {which}", **style)


def _columns(n: int) -> int:
    """Return the number of columns: a pixel wide, or wide enough for 25 readings."""
    return min(_MOST_COLUMNS, n // 25)


def _draw_level(axes: Axes, trace: Trace) -> None:
    if trace.level is None or not trace.kept:
        return
    value, low, high = trace.level
    _draw_bars(
        axes, trace.kept, (low, high), facecolor=NUMBER, alpha=0.3, zorder=3.0, label="interval"
    )
    starts, stops = np.array(trace.kept).T - 0.5
    values = np.full(starts.size, value)
    axes.hlines(values, starts, stops, color=NUMBER, linewidth=1.6, zorder=4.0, label="number")


def _mark_outliers(axes: Axes, trace: Trace) -> None:
    """Mark readings beyond the axes at their edge, without crowding, and count them."""
    low, high = axes.get_ylim()
    n, series = trace.series.size, trace.series
    for outside, top, farthest in (
        (series > high, True, f"up to {show_value(float(series.max()), trace.unit)}"),
        (series < low, False, f"down to {show_value(float(series.min()), trace.unit)}"),
    ):
        at = np.flatnonzero(outside)
        if at.size:
            marks = at[np.unique(at * _MARKS // n, return_index=True)[1]]
            mark_beyond(axes, marks, f"{counted(at.size)} beyond,\n{farthest}", INK, top=top)


def mark_beyond(axes: Axes, at: npt.ArrayLike, words: str, color: str, *, top: bool = True) -> None:
    """Mark what lies beyond the axes at their edge, with words next to it."""
    places = np.asarray(at)
    mark = {"marker": "^" if top else "v", "markersize": 4.0, "label": "beyond", "zorder": 5.0}
    style = {**DOTS, **mark, "alpha": 1.0, "clip_on": False}
    heights = np.full(places.size, 0.98 if top else 0.02)
    axes.plot(places, heights, transform=axes.get_xaxis_transform(), color=color, **style)
    beside(axes, words, float(top), va="top" if top else "bottom", color=color)


def entitle(axes: Axes, title: str) -> None:
    """Write the title on the left above axes that are otherwise empty there."""
    style: dict[str, Any] = {"color": INK, "fontsize": 11.0, "fontweight": "bold", "pad": 20.0}
    axes.set_title(escaped(title), loc="left", parse_math=False, **style)


def beside(axes: Axes, words: str, height: float, **style: Any) -> None:
    """Write into the right margin, at a share of the axes' height."""
    write(axes, words, (1.0, height), (_GAP, 0.0), fontsize=SMALL, **style)


def above(
    axes: Axes, words: str, points: float, *, at: float = 0.0, right: float = 0.0, **style: Any
) -> Annotation:
    """Write above the axes, ``right`` points to the right of a share of their width."""
    return write(
        axes, words, (at, 1.0), (right, points), va="bottom", **{"fontsize": SMALL, **style}
    )


def write(
    axes: Axes,
    words: str,
    at: tuple[float, float],
    points: tuple[float, float],
    xycoords: str = "axes fraction",
    **style: Any,
) -> Annotation:
    """Write at an offset in points from a place, which is in shares of the axes by default."""
    fixed: dict[str, Any] = {"xycoords": xycoords, "textcoords": "offset points"}
    shown = page(words.split("\n"))
    return axes.annotate(shown, at, xytext=points, parse_math=False, **fixed, **style)


def _label_phases(axes: Axes, trace: Trace) -> None:
    """Name the shaded phases above them: all if few, else wide ones and the widest per kind."""
    n = trace.series.size
    points = _NARROWED * _extent(axes)[0]
    by_size = sorted(trace.rejected, key=lambda phase: phase[0][1] - phase[0][0])
    widest = {label: span for span, label in by_size}
    free = 0.0  # the space to the left of it has words
    for (start, stop), label in trace.rejected:
        width = (_CHARACTER * len(label) + 1.0) * SMALL / points
        left = max(free, min((start + stop) / 2.0 / n - width / 2.0, 1.0 - width))
        has_room = len(trace.rejected) <= _FEW or (stop - start) / n >= width
        is_above = left <= stop / n
        if left + width <= 1.0 and (widest[label] == (start, stop) or (has_room and is_above)):
            free = left + width
            color = _TINTS[label][1]
            above(axes, str(label), 3.0, at=left + width / 2.0, ha="center", color=color)


def _extent(axes: Axes) -> tuple[float, float]:
    """Return width and height of the axes as they stand now, in points."""
    box = axes.get_window_extent()
    return box.width * 72.0 / axes.figure.dpi, box.height * 72.0 / axes.figure.dpi


def write_words(axes: Axes, trace: Trace) -> None:
    """Write the number next to the axes and, above them, row upon row: tally, evidence, title."""
    if trace.level is not None:
        _write_number(axes, trace.level[0], trace.words)
    row = 1.25 * SMALL
    tally = trace.tally
    above(axes, tally, 3.0, at=1.0, right=_GAP, color=CHANGE)
    bottom = 6.0 + row * (tally.count("\n") + 1 if tally else 1 if trace.rejected else 0)
    color = CHANGE if trace.level is None else _TINTS[PhaseLabel.OTHER][1]
    lines = _write_lines(axes, trace.evidence, bottom, most=3, color=color)
    bottom += 4.0 + row * lines
    bold = {"fontsize": 11.0, "fontweight": "bold"}
    _write_lines(axes, trace.title, bottom, most=1, color=INK, **bold)


def _write_number(axes: Axes, value: float, words: str) -> None:
    """Write the number at its height, clear of the words on readings beyond the axes."""
    low, high = axes.get_ylim()
    arrow = "↑ " if value > high else "↓ " if value < low else ""
    lines = 2.5 + (words.count("\n") + 1) / 2.0
    room = min(0.5, 1.25 * SMALL * lines / _extent(axes)[1])
    place = min(max((value - low) / (high - low), room), 1.0 - room)
    beside(axes, arrow + words, place, va="center", color=NUMBER)


def _write_lines(axes: Axes, words: str, points: float, *, most: int, **style: Any) -> int:
    """Write above the axes within their width, on up to ``most`` lines; return their number."""
    text = above(axes, words, points, **style)
    share = axes.get_window_extent().width / max(text.get_window_extent().width, 1.0)
    width = max(20, int(share * len(words)) - 1)
    words = escaped(words)
    cuts = textwrap.wrap(words, width) if most > 1 else [words[:width], words[width:]]
    lines = [cut for cut in cuts if cut]
    shown = lines[:most]
    if len(lines) > most:
        shown[-1] += "…"
    text.set_text(page(shown))
    return len(shown)


def _dress(axes: Axes, trace: Trace) -> None:
    """Name and scale the axes."""
    order = "reading, in time order"
    if len(trace.parts) > 1:
        order = f"reading, {counted(len(trace.parts))} rounds in a row"
    if trace.series.size > _MOST_POINTS:
        columns = counted(_columns(trace.series.size))
        order += f" (range, middle half and median of {columns} columns)"
    axes.locator_params(axis="x", integer=True)
    if trace.series.size == 1:
        axes.set_xticks([0])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter(ticks(axes.yaxis, trace.ruler))
    name_axes(axes, order, trace.ruler.name)


def ticks(axis: Axis, ruler: Ruler) -> Callable[[float, object], str]:
    """Return a writer for the ticks of an axis, with enough digits to distinguish them."""

    def tick(value: float, _: object) -> str:
        steps = np.diff(np.unique(axis.get_majorticklocs()))
        return ruler.show(value, float(steps.min(initial=np.ptp(axis.get_view_interval()))))

    return tick


def name_axes(axes: Axes, across: str, upwards: str) -> None:
    """Name the axes, and draw no more of their frame than is needed."""
    across, upwards = escaped(across), escaped(upwards)
    axes.set_xlabel(across, color=INK, fontsize=10.0, parse_math=False)
    axes.set_ylabel(upwards, color=INK, fontsize=10.0, parse_math=False)
    axes.tick_params(color=FRAME, labelcolor=INK, labelsize=SMALL)
    axes.set_facecolor(PAPER)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FRAME)
