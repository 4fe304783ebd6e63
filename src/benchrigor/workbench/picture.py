"""Pictures of a peak and of a map.

Of a peak: load against response, the trials of the search, and the interval. Of a map: predictions
with intervals, samples, and the errors of predictions.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from benchrigor.model import Estimate
from benchrigor.model.checks import is_number
from benchrigor.model.series import Floats
from benchrigor.model.text import show_estimate
from benchrigor.report.plots.drawing import (
    CHANGE,
    DOTS,
    INK,
    NUMBER,
    PALE,
    PAPER,
    SMALL,
    above,
    entitle,
    mark_beyond,
    name_axes,
    new_axes,
    ticks,
)
from benchrigor.report.plots.trace import Ruler
from benchrigor.safe_text import page
from benchrigor.units import Scale, percent, scale_for, shortened, show_value
from benchrigor.workbench.designs import Factor, Level, Measured, show_point, spread
from benchrigor.workbench.surface import Best, Surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from benchrigor.workbench.data import PeakRate

_LEAST, _GREATEST = 0.01, 10.0  # of the limit: values beyond stand at the edge
_NARROW, _WIDER = 4.0, 1.5  # the axis of loads is widened if its ratio is below this
_WIDTH, _HEIGHT = 4.4, 3.6  # of a panel, in inches
_STEPS = 49  # of a number, from its lowest to its highest level
_WIDE = 5.0  # the scale of answers is logarithmic from this ratio on
_ROUND = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # steps of contours on a logarithmic scale
_MARGIN = 1.1
_IN_AN_INCH, _IN_A_COLUMN = 13, 22  # characters of the heading, and of the legend
_LONGEST, _MOST, _TICKS = 12, 8, 5  # characters of a level, levels, and answers along an axis
_MEASURED = "measured"
_MARKS = {"peak not reached": ("^", CHANGE), "limits not kept": ("v", CHANGE)}
_MARKS["failed"] = ("X", CHANGE)
_BEST = "best"
_Which = Literal["x", "y"]
_STAR: dict[str, Any] = {"marker": "*", "color": PAPER, "markersize": 12.0, "clip_on": False}
_STAR |= {"markeredgecolor": INK, "markeredgewidth": 0.8, "alpha": 1.0, "zorder": 4.0}


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A response of a surface, to draw."""

    surface: Surface
    response: str
    best: Best
    scale: Scale

    @property
    def name(self) -> str:
        """Name of the response, with its unit."""
        return f"{self.response} ({self.scale.name})" if self.scale.name else self.response


def plot_map(surface: Surface, *, unit: str = "", title: str = "") -> Axes:
    """Draw the predictions of the first response of a surface, and its samples.

    Two numeric factors give contours of the prediction and of the half-width of its interval.
    Otherwise every factor has a panel, with the other factors at the best point: it shows the
    prediction with its interval, the samples there, and other samples in a paler color. The last
    panel compares the measured answers with their predictions from the other samples.

    Parameters
    ----------
    surface
        Of a `benchrigor.workbench.SurfaceMap`.
    unit
        Of the response.
    title
        Name of the measured subject.

    Returns
    -------
    matplotlib.axes.Axes
        The first panel; its figure has the others.

    Raises
    ------
    NotEstimable
        When samples are too few for a model.
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    name = next(iter(surface.responses), None)
    best = surface.best(name)
    drawing = _Drawing(surface, str(name), best, scale_for(best.estimate.value, unit))
    has_contours = [factor.is_category for factor in surface.factors] == [False, False]
    panels = _panels(3 if has_contours else len(surface.factors) + 1)
    if has_contours:
        _draw_contours(drawing, panels[:2])
    else:
        _draw_profiles(drawing, panels[:-1])
    _draw_check(drawing, panels[-1])
    shown = f"best: {show_point(best.point)}: {show_estimate(best.estimate, unit)}"
    _entitle(panels, [title, shown])
    return panels[0]


def _panels(count: int) -> list[Axes]:
    """Return ``count`` axes, up to three in a row."""
    columns = 2 if count == 4 else min(count, 3)  # two rows of two
    rows = math.ceil(count / columns)
    figure = cast("Figure", new_axes().figure)
    figure.clear()
    figure.set_size_inches(_WIDTH * columns, _HEIGHT * rows + 0.8)
    panels: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in panels[count:]:
        unused.remove()
    return panels[:count]


def _entitle(panels: Sequence[Axes], lines: Iterable[str]) -> None:
    """Write the heading above all panels, and the legend below them."""
    figure = cast("Figure", panels[0].figure)
    width = int(_IN_AN_INCH * figure.get_figure(root=True).get_figwidth())
    cuts = [cut for line in lines for cut in textwrap.wrap(page([line]), width)]
    style: dict[str, Any] = {"parse_math": False, "fontsize": 10.0, "color": INK}
    figure.suptitle("\n".join(cuts), x=0.01, ha="left", **style)
    named: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    below: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": SMALL}
    columns = max(1, min(len(named), width // _IN_A_COLUMN))
    figure.legend([*named.values()], [*named], ncols=columns, **below)


def _draw_contours(drawing: _Drawing, panels: Sequence[Axes]) -> None:
    """Draw predictions of two numbers, and the half-widths of their intervals."""
    across, upwards = drawing.surface.factors
    names = across.name, upwards.name
    xs, ys = spread(across, _STEPS), spread(upwards, _STEPS)
    points = [{across.name: x, upwards.name: y} for y in ys for x in xs]
    found = drawing.surface.intervals(points, drawing.response)
    value, low, high = found.reshape(3, len(ys), len(xs))
    confidence = percent(drawing.best.estimate.confidence, digits=10)
    half_width = 100.0 * (high - low) / 2.0 / value
    _fill(panels[0], (xs, ys, value * drawing.scale.factor), "viridis", drawing.name)
    _fill(panels[1], (xs, ys, half_width), "Purples", "% of the prediction")
    words = ("prediction", f"half-width of its {confidence} interval")
    for axes, shown in zip(panels, words, strict=True):
        name_axes(axes, *names)
        _scale_to(axes, "x", across)
        _scale_to(axes, "y", upwards)
        above(axes, shown, 4.0, color=INK)
        for kind, samples in _by_kind(drawing).items():
            places = [[found.sample.point[name] for name in names] for found in samples]
            edge = {"markeredgecolor": PAPER, "markeredgewidth": 0.8, "clip_on": False}
            _dots(axes, places, kind, **edge)
        _dots(axes, [[drawing.best.point[name] for name in names]], _BEST, **_STAR)


def _fill(axes: Axes, heights: tuple[Any, Any, Floats], colors: str, name: str) -> None:
    """Fill the areas between contours, and add a color scale."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415  # matplotlib is loaded by now
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415

    is_log = heights[2].max() > heights[2].min() * _WIDE
    norm = LogNorm() if is_log else None
    locator = LogLocator(subs=_ROUND, numticks=99) if is_log else MaxNLocator(8)
    filled = axes.contourf(*heights, locator=locator, cmap=colors, norm=norm, extend="both")
    axes.contour(*heights, levels=filled.levels, colors="white", linewidths=0.4)
    bar = axes.figure.colorbar(filled, ax=axes, format=lambda level, _: f"{level:.4g}")
    bar.set_ticks([*filled.levels], minor=False)
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=SMALL)
    bar.set_label(page([name]), parse_math=False, color=INK)


def _draw_profiles(drawing: _Drawing, panels: Sequence[Axes]) -> None:
    """Draw the predictions along every factor, with the others at the best point."""
    surface, best, kinds = drawing.surface, drawing.best.point, _by_kind(drawing)
    values = [found.estimates[drawing.response].value for found in kinds.get(_MEASURED, ())]
    ends = [*values]
    for axes, factor in zip(panels, surface.factors, strict=True):
        levels = factor.levels if factor.is_category else spread(factor, _STEPS)
        points = [{**best, factor.name: level} for level in levels]
        value, low, high = surface.intervals(points, drawing.response)
        values += value.tolist()
        ends += [*low.tolist(), *high.tolist()]
        at = [_place(factor, level) for level in levels]
        if factor.is_category:
            bars = np.abs(np.array([low, high]) - value)
            axes.errorbar(at, value, bars, fmt="none", ecolor=NUMBER, elinewidth=6.0, alpha=0.35)
            axes.plot(at, value, "_", color=NUMBER, markersize=16.0, label="prediction")
        else:
            axes.fill_between(at, low, high, color=NUMBER, alpha=0.25, linewidth=0.0)
            axes.plot(at, value, color=NUMBER, label="prediction")
        for kind, samples in kinds.items():
            _draw_samples(axes, drawing, factor, kind, samples)
        star = _place(factor, best[factor.name]), drawing.best.estimate.value
        _dots(axes, [star], _BEST, **_STAR)
        name_axes(axes, factor.name, drawing.name)
        _scale_to(axes, "x", factor)
    for axes in panels:
        _scale_answers(axes, "y", drawing.scale, values, ends)


def _draw_samples(
    axes: Axes, drawing: _Drawing, factor: Factor, kind: str, samples: Sequence[Measured]
) -> None:
    """Draw samples at their levels of a factor; those without a number at the lower edge."""
    at = [_place(factor, found.sample.point[factor.name]) for found in samples]
    if kind != _MEASURED:
        edge = {"transform": axes.get_xaxis_transform(), "clip_on": False}
        height = 0.03 + 0.05 * [*_MARKS].index(kind)  # kinds do not cover one another
        _dots(axes, [(place, height) for place in at], kind, **edge)
        return
    best = {**drawing.best.point, factor.name: None}
    places: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for place, found in zip(at, samples, strict=True):
        is_here = {**found.sample.point, factor.name: None} == best
        places[is_here].append((place, found.estimates[drawing.response].value))
    _dots(axes, places[False], "measured elsewhere", marker="o", color=PALE)
    _dots(axes, places[True], _MEASURED, marker="o", color=INK)


def _draw_check(drawing: _Drawing, axes: Axes) -> None:
    """Draw the measured answers against the predictions from the other samples."""
    pairs = drawing.surface.left_out(drawing.response)
    measured, predicted = [pair.measured for pair in pairs], [pair.predicted for pair in pairs]
    places = [(pair.predicted.value, pair.measured.value) for pair in pairs]
    style: dict[str, Any] = {"fmt": "none", "ecolor": PALE, "elinewidth": 0.8, "zorder": 1.0}
    across, upwards = zip(*places, strict=True)
    axes.errorbar(across, upwards, yerr=_ends(measured), xerr=_ends(predicted), **style)
    _dots(axes, places, _MEASURED, marker="o", color=INK)
    values = [value for place in places for value in place]
    ends = [end for estimate in [*measured, *predicted] for end in (estimate.low, estimate.high)]
    line = [min(ends), max(ends)]
    axes.plot(line, line, color=NUMBER, linewidth=0.8, zorder=0.5, label="equal")
    missed = percent(drawing.surface.missed(drawing.response) or 0.0, digits=2)
    name_axes(axes, f"{drawing.name}, predicted by the others", f"{drawing.name}, measured")
    above(axes, f"left out: missed by {missed} on average", 4.0, color=INK)
    which: _Which
    for which in ("x", "y"):
        _scale_answers(axes, which, drawing.scale, values, ends)


def _by_kind(drawing: _Drawing) -> dict[str, list[Measured]]:
    """Return the samples by kind: measured, beyond a limit, or failed."""
    kinds: dict[str, list[Measured]] = {}
    for found in drawing.surface.samples:
        if drawing.response in found.estimates:
            kind = _MEASURED
        elif found.at_least is not None:
            kind = "peak not reached"
        else:
            kind = "failed" if found.at_most is None else "limits not kept"
        kinds.setdefault(kind, []).append(found)
    return kinds


def _dots(axes: Axes, places: Sequence[Sequence[Any]], label: str, **style: Any) -> None:
    """Draw marks; samples without a number have the mark of their kind."""
    marker, color = _MARKS.get(label, ("o", INK))
    own = {**DOTS, "markersize": 5.5, "alpha": 0.9, "marker": marker, "color": color, "zorder": 3.0}
    if places:
        axes.plot(*np.transpose(places), label=label, **{**own, **style})


def _ends(estimates: Sequence[Estimate]) -> list[list[float]]:
    """Return the distances from values to the ends of their intervals."""
    low = [estimate.value - estimate.low for estimate in estimates]
    return [low, [estimate.high - estimate.value for estimate in estimates]]


def _place(factor: Factor, level: Level) -> float:
    return factor.coded(level) if factor.is_category else float(level)


def _scale_to(axes: Axes, which: _Which, factor: Factor) -> None:
    """Give an axis the scale of a factor, and label its levels."""
    axis: Axis = getattr(axes, f"{which}axis")
    if factor.scale == "linear":
        is_whole = all(float(level).is_integer() for level in factor.levels)
        axes.locator_params(axis=which, integer=is_whole, nbins=_MOST)
        axis.set_major_formatter(lambda level, _: f"{level:g}")
        return
    if not factor.is_category:
        getattr(axes, f"set_{which}scale")("log", base=2 if factor.scale == "log2" else 10)
    levels: list[Level] = []
    ordered = sorted(factor.levels, key=factor.coded)
    apart = (factor.coded(ordered[-1]) - factor.coded(ordered[0])) / _MOST
    for level in ordered:
        if not levels or factor.coded(level) >= factor.coded(levels[-1]) + apart:
            levels.append(level)
    texts = [f"{level:g}" if is_number(level) else str(level) for level in levels]
    shown = [shortened(text, _LONGEST) for text in texts]
    is_long = sum(map(len, shown)) > _IN_AN_INCH * _WIDTH / 2.0
    style: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    axis.set_ticks([_place(factor, level) for level in levels], shown, parse_math=False, **style)
    axis.set_ticks([], minor=True)
    if factor.is_category:
        axes.set_xlim(-0.5, len(factor.levels) - 0.5)


def _scale_answers(
    axes: Axes, which: _Which, scale: Scale, values: Sequence[float], ends: Sequence[float]
) -> None:
    """Fit an axis to answers, and to their intervals up to half and twice the answers.

    The axis is logarithmic if answers differ by much.
    """
    from matplotlib.ticker import LogLocator, NullLocator  # noqa: PLC0415  # it is loaded by now

    axis: Axis = getattr(axes, f"{which}axis")
    low, high = max(min(ends), min(values) / 2.0), min(max(ends), 2.0 * max(values))
    room = (_MARGIN - 1.0) * ((high - low) or high)
    limits = low - room, high + room
    if high > low * _WIDE:
        getattr(axes, f"set_{which}scale")("log")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda value, _: f"{value * scale.factor:.6g}")
        limits = low / _MARGIN, high * _MARGIN
    else:
        axes.locator_params(axis=which, nbins=_TICKS)
        axis.set_major_formatter(ticks(axis, Ruler(name="", scale=scale)))
    getattr(axes, f"set_{which}lim")(limits)


# --- the trials of a search


def plot_peak(peak: PeakRate, *, title: str = "") -> Axes:
    """Draw the trials of a search, and the interval of the peak.

    A dot is a trial: the ratio of its response to the limit. Dots above the line were saturated;
    trials beyond the axes, and crashes of the server, are marked at the edge.

    Parameters
    ----------
    peak
        The result of a `benchrigor.workbench.PeakSearch`.
    title
        Name of the server.

    Returns
    -------
    matplotlib.axes.Axes
        Loads across, responses over the limit upwards, both logarithmic.

    Raises
    ------
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    axes = new_axes()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(_LEAST, _GREATEST)
    axes.axhline(1.0, color=INK, linewidth=0.8, zorder=1.0, label="limit")
    counted = [(trial.asked.load, trial.ratio or _LEAST) for trial in peak.trials if trial.counts]
    shown = [pair for pair in counted if pair[1] <= _GREATEST]
    for word, color, is_saturated in (("kept", NUMBER, False), ("saturated", CHANGE, True)):
        dots = [(load, max(r, _LEAST)) for load, r in shown if (r >= 1.0) is is_saturated]
        style: dict[str, Any] = {**DOTS, "markersize": 6.0, "color": color, "label": word}
        axes.plot([load for load, _ in dots], [r for _, r in dots], **style)
    beyond = [load for load, ratio in counted if ratio > _GREATEST or math.isinf(ratio)]
    if beyond:
        mark_beyond(axes, beyond, "", CHANGE)
    words, color = str(peak).partition(" · ")[0], CHANGE
    if peak.load is not None:
        axes.axvspan(peak.load.low, peak.load.high, color=NUMBER, alpha=0.25, linewidth=0.0)
        axes.axvline(peak.load.value, color=NUMBER, linewidth=1.6, label="peak")
        color = NUMBER
    name_axes(axes, f"load ({peak.unit})", "response over its limit")
    axes.yaxis.set_major_formatter(lambda ratio, _: percent(ratio))
    axes.xaxis.set_major_formatter(lambda load, _: show_value(load, ""))
    axes.xaxis.set_minor_formatter(lambda load, _: _at_round(load))
    left, right = axes.get_xlim()
    if right < left * _NARROW:  # else there may be no round number on the axis
        axes.set_xlim(left / _WIDER, right * _WIDER)
    axes.tick_params(which="both", labelsize=SMALL)
    entitle(axes, title)
    above(axes, words, 6.0, color=color)
    axes.grid(visible=True, which="major", color=PALE, alpha=0.2)
    return axes


def _at_round(load: float) -> str:
    """Label 2 and 5 times the powers of ten."""
    return show_value(load, "") if f"{load:.1e}"[:3] in ("2.0", "5.0") else ""
