"""Pictures of how sure a number is: the readings around it, and how its interval became narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchrigor.model import Analysis, Estimate, Metric, Options, RunRecord
from benchrigor.model.analysis import Kind
from benchrigor.model.series import Floats
from benchrigor.report.plots.drawing import (
    CHANGE,
    INK,
    NUMBER,
    PALE,
    SMALL,
    beside,
    name_axes,
    new_axes,
    ticks,
)
from benchrigor.report.plots.trace import Ruler
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
