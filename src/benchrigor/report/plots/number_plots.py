"""Pictures of how sure numbers are: their readings, how intervals narrowed, many comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchrigor.model import Analysis, Estimate, Metric, Options, RunRecord
from benchrigor.model.analysis import Kind
from benchrigor.model.comparison import Comparison, Verdict, worst_first
from benchrigor.model.series import Floats
from benchrigor.report.plots.drawing import (
    BAD,
    CHANGE,
    FRAME,
    GOOD,
    INK,
    NUMBER,
    PALE,
    SMALL,
    UNKNOWN,
    beside,
    name_axes,
    new_axes,
    ticks,
)
from benchrigor.report.plots.trace import Ruler
from benchrigor.safe_text import escaped
from benchrigor.session.replays import recording_of
from benchrigor.stats.readings.asked_readings import Readings, wanted_half_width
from benchrigor.stats.readings.work_rounds import ByWork
from benchrigor.units import counted, percent, scale_for, shortened, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_FAR = 0.005  # share of the readings on either side that the histogram leaves out
_MOST_BINS = 80
_STEP, _FEWEST = 1.5, 8  # from one size to the next, and of the first one
_SIZE, _TICKS, _NAME = (4.9, 3.2), 5, 32


def plot_distribution(record: RunRecord, metric: str | None = None) -> Axes:
    """Draw how often readings that count have which value, the modes and the number.

    The half per cent of them that lie farthest out on either side are counted next to it.

    Parameters
    ----------
    record
        With readings of this metric.
    metric
        Name; None for the first metric that must be satisfied.
    """
    analysis = record.analysis(metric)
    assert analysis is not None  # noqa: S101  # it has readings
    values = readings_that_count(record, analysis)
    axes, unit = new_axes(*_SIZE), analysis.metric.unit
    far = _FAR if values.size * _FAR >= 1.0 else 0.0
    low, high = (float(end) for end in np.quantile(values, [far, 1.0 - far]))
    shown = values[(values >= low) & (values <= high)]
    if high == low:
        around = 0.05 * abs(high) or 1.0
        low, high = low - around, high + around
    bins = np.histogram_bin_edges(shown, bins="fd", range=(low, high)).size - 1
    edges = np.linspace(low, high, min(bins, _MOST_BINS) + 1)
    heights = np.histogram(shown, edges)[0]
    style: dict[str, Any] = {"fill": True, "color": PALE, "alpha": 0.6, "linewidth": 0.0}
    axes.stairs(heights, edges, label="readings", **style)
    if (known := analysis.estimate) is not None:
        axes.axvspan(known.low, known.high, color=NUMBER, alpha=0.3, linewidth=0.0)
        axes.axvline(known.value, color=NUMBER, linewidth=1.6, label="number")
    for mode in analysis.modes if len(analysis.modes) > 1 else ():
        axes.axvline(mode.value, color=CHANGE, linestyle=":", linewidth=1.2, label="mode")
        place: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": SMALL, "color": CHANGE}
        across = axes.get_xaxis_transform()
        axes.text(mode.value, 1.01, percent(mode.share, digits=2), transform=across, **place)
    if (beyond := values.size - shown.size) > 0:
        farthest = shortened(show_value(float(values.max()), unit), _NAME)
        beside(axes, f"{counted(beyond)} beyond,\nup to {farthest}", 0.0, va="bottom", color=INK)
    ruler = _ruler(analysis.metric, float(np.median(values)))
    axes.xaxis.set_major_formatter(ticks(axes.xaxis, ruler))
    axes.locator_params(axis="y", integer=True)
    name_axes(axes, ruler.name, "readings")
    return axes


def plot_convergence(
    found: Sequence[tuple[int, Estimate]], metric: Metric, options: Options, *, across: str
) -> Axes:
    """Draw the number and its interval as the first readings that count give them.

    Dashed lines are as far from the number as the interval was asked to be.

    Parameters
    ----------
    found
        As `estimates_so_far` returns them.
    metric, options
        Of the run.
    across
        What is counted.
    """
    axes = new_axes(*_SIZE)
    at = [n for n, _ in found]
    value, low, high = (
        np.array([getattr(estimate, end) for _, estimate in found])
        for end in ("value", "low", "high")
    )
    axes.set_xscale("log")
    axes.fill_between(at, low, high, color=NUMBER, alpha=0.3, linewidth=0.0, label="interval")
    axes.plot(at, value, color=NUMBER, linewidth=1.6, marker="o", markersize=3.0, label="number")
    last = found[-1][1]
    wanted = wanted_half_width(last, metric, options.asked)
    if math.isfinite(wanted):
        ends = [last.value - wanted, last.value + wanted]
        axes.hlines(ends, at[0], at[-1], color=INK, linestyle="--", linewidth=0.8, label="target")
    reach = 4.0 * (last.half_width or abs(last.value) or 1.0)
    axes.set_ylim(max(low.min(), last.value - reach), min(high.max(), last.value + reach))
    shown = f"half-width\n±{percent(last.relative_half_width, digits=2)}"
    beside(axes, shown, 0.5, va="center", color=NUMBER)
    ruler = _ruler(metric, last.value)
    axes.yaxis.set_major_formatter(ticks(axes.yaxis, ruler))
    axes.set_xticks(at[-1 :: -max(1, len(at) // _TICKS)])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda n, _: counted(n))
    name_axes(axes, across, ruler.name)
    return axes


def readings_that_count(record: RunRecord, analysis: Analysis) -> Floats:
    """Return the readings of a metric that its number stands on; all if none does."""
    name = analysis.metric.name
    values, selection = record.readings(name), record.selection(name)
    if selection is None or selection.n != values.size or not selection.counts.any():
        return values
    return values[selection.counts > 0]


def estimates_so_far(record: RunRecord, analysis: Analysis) -> list[tuple[int, Estimate]]:
    """Return the estimates of the first readings that count, by how many of them they are."""
    asked = recording_of(record, metric=analysis.metric.name)
    whole = replace(asked, phases=analysis.phases, disturbed=None, whole=None)
    kept = [row for row in whole.kept if row is not None]
    n = len(kept) if analysis.is_combined else kept[0].size - len(analysis.left_out)
    found = [] if analysis.estimate is None else [(n, analysis.estimate)]
    while (n := int(n / _STEP)) >= (2 if analysis.is_combined else _FEWEST):
        known = whole.unit.estimate(_first(whole, n, analysis)).estimate
        found += [] if known is None else [(n, known)]
    return found[::-1]


def _first(whole: Readings, n: int, analysis: Analysis) -> Readings:
    """Return the first n readings, rounds or invocations that count, cut as they are."""
    if analysis.kind is Kind.WORK:
        rounds = np.delete(np.arange(whole.series[0].size), list(analysis.left_out))[:n]
        return replace(whole, series=tuple(row[rounds] for row in whole.series), unit=ByWork())
    if analysis.is_combined:
        chosen = [index for index, row in enumerate(whole.kept) if row is not None][:n]
        phases = tuple(whole.phases[index] for index in chosen) if whole.phases else ()
        return replace(whole, series=tuple(whole.series[at] for at in chosen), phases=phases)
    stop, phases = n, whole.phases
    if phases and (inner := phases[0].measured) is not None:
        stop = inner.start + n
        points = phases[0].change_points.within(0, stop)
        phases = (replace(phases[0], stop=stop, change_points=points),)
    weights = None if whole.weights is None else whole.weights[:stop]
    return replace(whole, series=(whole.series[0][:stop],), weights=weights, phases=phases)


def _ruler(metric: Metric, typical: float) -> Ruler:
    scale, name = scale_for(typical, metric.unit), metric.name
    shown = f"{name} ({scale.name})" if scale.name else name
    return Ruler(name=shortened(shown, _NAME), scale=scale)


_COLORS = {Verdict.BETTER: GOOD, Verdict.WORSE: BAD, Verdict.EQUIVALENT: UNKNOWN}
_ROW, _AROUND = 0.22, 0.9  # inches of a row, and of the frame around them
_NAME = 36  # characters
_FARTHEST = 8.0  # an interval that is this many times wider than most is cut at the edge


def plot_forest(comparisons: Mapping[str, Comparison], verdicts: Mapping[str, Verdict]) -> Axes:
    """Draw the change of each comparison with its interval, the worst first.

    A dot is a ratio, the candidate over the baseline, and its line the interval. Changes within the
    shaded margin do not matter. Intervals that go on beyond the axes end in an arrow.

    Parameters
    ----------
    comparisons
        By name; those without a ratio are left out.
    verdicts
        By name, as a family gives them.

    Returns
    -------
    matplotlib.axes.Axes
        Changes in per cent across, a row for each comparison.

    Raises
    ------
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    names = [name for name in worst_first(comparisons, verdicts) if comparisons[name].ratio]
    axes = new_axes(8.0, _AROUND + _ROW * max(len(names), 2))
    ratios = [ratio for name in names if (ratio := comparisons[name].ratio) is not None]
    value, low, high = (
        100.0 * (np.array([getattr(ratio, end) for ratio in ratios]) - 1.0)
        for end in ("value", "low", "high")
    )
    margin = max(comparisons[name].margin for name in names)
    within = (100.0 * (1.0 / (1.0 + margin) - 1.0), 100.0 * margin)
    left, right = _range(value, low, high, within)
    axes.axvspan(*within, color=FRAME, alpha=0.3, linewidth=0.0, label="margin")
    axes.axvline(0.0, color=FRAME, linewidth=0.8, zorder=0.5)
    rows = np.arange(len(names))
    colors = [_COLORS.get(verdicts[name], NUMBER) for name in names]
    ends = np.maximum(low, left), np.minimum(high, right)
    axes.hlines(rows, *ends, colors=colors, linewidth=2.0, label="interval")
    style: dict[str, Any] = {"s": 22.0, "zorder": 3.0, "clip_on": True, "label": "ratio"}
    axes.scatter(value, rows, c=colors, **style)
    for marker, edge, beyond in (("<", left, low < left), (">", right, high > right)):
        axes.scatter(np.full(beyond.sum(), edge), rows[beyond], marker=marker, c=FRAME, s=16.0)
    for row, name in enumerate(names):
        height = 1.0 - (row + 0.5) / max(len(names), 2)
        beside(axes, comparisons[name].show_change(), height, va="center", color=colors[row])
    axes.set_xlim(left, right)
    axes.set_ylim(max(len(names), 2) - 0.5, -0.5)
    shown = [escaped(shortened(name, _NAME)) for name in names]
    name_axes(axes, "change of the candidate from the baseline (%)", "")
    axes.set_yticks(rows, shown, parse_math=False, fontsize=SMALL, color=INK)
    axes.tick_params(axis="y", length=0.0)
    axes.xaxis.set_major_formatter(lambda change, _: percent(change / 100.0).removesuffix("%"))
    return axes


def _range(value: Any, low: Any, high: Any, within: tuple[float, float]) -> tuple[float, float]:
    """Return the range of changes that is shown: all but intervals far wider than most."""
    reach = _FARTHEST * float(np.median(np.minimum(high, 1e6) - np.maximum(low, -100.0))) or 1.0
    left = min(within[0], float(np.maximum(low, value - reach).min()))
    right = max(within[1], float(np.minimum(high, value + reach).max()))
    room = 0.04 * (right - left)
    return left - room, right + room
