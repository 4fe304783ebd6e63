"""Draws load against response: the trials of a search, and the interval of the peak."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchrigor.model.text import percent, show_value
from benchrigor.report.plots.drawing import (
    CHANGE,
    DOTS,
    INK,
    NUMBER,
    PALE,
    SMALL,
    above,
    entitle,
    mark_beyond,
    name_axes,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchrigor.workbench.data import PeakRate

_LEAST, _MOST = 0.01, 10.0  # of the limit: values beyond stand at the edge
_NARROW, _WIDER = 4.0, 1.5  # the axis of loads is widened if its ratio is below this


def plot_peak(peak: PeakRate, *, title: str = "", axes: Axes | None = None) -> Axes:
    """Draw the trials of a search, and the interval of the peak.

    A dot is a trial: the ratio of its response to the limit. Dots above the line were saturated;
    trials beyond the axes, and crashes of the server, are marked at the edge.

    Parameters
    ----------
    peak
        The result of a `benchrigor.workbench.PeakSearch`.
    title
        Name of the server.
    axes
        To draw into; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Loads across, responses over the limit upwards, both logarithmic.

    Raises
    ------
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    axes = new_axes() if axes is None else axes
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(_LEAST, _MOST)
    axes.axhline(1.0, color=INK, linewidth=0.8, zorder=1.0, label="limit")
    counted = [(trial.asked.load, trial.ratio or _LEAST) for trial in peak.trials if trial.counts]
    shown = [pair for pair in counted if pair[1] <= _MOST]
    for word, color, is_saturated in (("kept", NUMBER, False), ("saturated", CHANGE, True)):
        dots = [(load, max(r, _LEAST)) for load, r in shown if (r >= 1.0) is is_saturated]
        style: dict[str, Any] = {**DOTS, "markersize": 6.0, "color": color, "label": word}
        axes.plot([load for load, _ in dots], [r for _, r in dots], **style)
    beyond = [load for load, ratio in counted if ratio > _MOST or math.isinf(ratio)]
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
