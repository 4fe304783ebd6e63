"""The picture of a stage's rate over time, its phases, and how much of the time it waited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from benchrigor.model import Floats, ServiceRate
from benchrigor.model.text import counted, percent, show_estimate, show_value
from benchrigor.queues.recording.outlines import Stretches
from benchrigor.report.plots.drawing import (
    CHANGE,
    DOTS,
    FRAME,
    INK,
    NUMBER,
    PALE,
    SMALL,
    beside,
    new_axes,
)
from benchrigor.report.rate_text import phases_of, speed_unit, standing
from benchrigor.units import Scale, scale_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_rates"]

_MARGIN = 0.08
_ROOM = 1.6
"""So many times as high as the highest interval the axis reaches; what is beyond is marked."""
_TIME = "time (s)"
_STYLES: dict[bool, dict[str, dict[str, Any]]] = {
    True: {
        "band": {"color": NUMBER, "alpha": 0.3, "linewidth": 0.0, "label": "interval"},
        "line": {"label": "rate"},
    },
    False: {
        "band": {
            "facecolor": "none",
            "edgecolor": NUMBER,
            "linestyle": "--",
            "linewidth": 0.8,
            "label": "interval, not converged",
        },
        "line": {"linestyle": "--", "label": "rate, not converged"},
    },
}
"""How what has converged is drawn, and what has not."""


def plot_rates(
    rates: Sequence[ServiceRate],
    stretches: Stretches,
    *,
    unit: str = "items",
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw how fast a stage was over time, while it did not wait.

    Each dot is a stretch of time. Bands are the intervals of the rates of phases, hollow where one
    has not converged. Below stands the share of the time that was spent waiting.

    Parameters
    ----------
    rates
        As `benchrigor.queues.ServiceRateEstimator` has them, in order.
    stretches
        What happened over time.
    unit
        What an item is called, in the plural.
    title
        Of the stage.
    axes
        To draw into; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Seconds across, items per second upwards.

    Raises
    ------
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    ours, axes = axes is None, new_axes() if axes is None else axes
    speed = speed_unit(unit)
    top = _scale(axes, stretches.rates, rates)
    _dots(axes, stretches, top)
    _bands(axes, phases_of(rates))
    _dress(axes, scale_for(top, speed))
    _words(axes, rates, speed, title)
    below = axes.inset_axes((0.0, -0.34, 1.0, 0.22), sharex=axes)
    _waiting(below, stretches)
    axes.tick_params(labelbottom=False)
    if ours:  # at second sight only the layout leaves room for what hangs below the axes
        cast("Figure", axes.figure).draw_without_rendering()
    return axes


def _scale(axes: Axes, values: Floats, rates: Sequence[ServiceRate]) -> float:
    """Let the axes show all there is, but for what lies far above; return where they end."""
    seen = values[np.isfinite(values)]
    found = [each.estimate for each in rates if each.estimate is not None]
    lows, highs = [each.low for each in found], [each.high for each in found]
    low = min([*lows, *([float(seen.min())] if seen.size else [])], default=0.0)
    high = max([*highs, *([float(seen.max())] if seen.size else [])], default=1.0)
    if highs:
        high = min(high, _ROOM * max(highs))
    room = _MARGIN * ((high - low) or high or 1.0)
    axes.set_ylim(max(0.0, low - room), high + room)
    return high


def _dots(axes: Axes, stretches: Stretches, top: float) -> None:
    """Draw each stretch in which it was busy; a mark at the edge for what is beyond."""
    middle_s = (stretches.start_s + stretches.stop_s) / 2.0
    beyond = stretches.rates > top
    shown = np.isfinite(stretches.rates) & ~beyond
    size = min(6.0, max(3.0, 60.0 / math.sqrt(max(shown.size, 1))))
    axes.plot(
        middle_s[shown],
        stretches.rates[shown],
        markersize=size,
        color=PALE,
        label="stretch",
        **DOTS,
    )
    if beyond.any():
        axes.plot(
            middle_s[beyond],
            np.full(np.count_nonzero(beyond), 0.98),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker="^",
            markersize=4.0,
            markeredgewidth=0.0,
            color=PALE,
            label="beyond",
        )


def _bands(axes: Axes, phases: Sequence[Sequence[ServiceRate]]) -> None:
    """Draw the rate of each phase with its interval, hollow where it has not converged."""
    axes.vlines(
        [phase[0].start_s for phase in phases[1:]],
        0.0,
        1.0,
        transform=axes.get_xaxis_transform(),
        color=CHANGE,
        linewidth=min(0.8, max(0.2, 12.0 / len(phases))) if phases else 0.0,
        label="phase",
    )
    known = [each for phase in phases for each in phase if each.estimate is not None]
    for converged, style in _STYLES.items():
        chosen = [each for each in known if bool(each.converged) is converged]
        found = [each.estimate for each in chosen if each.estimate is not None]
        starts, stops = [each.start_s for each in chosen], [each.stop_s for each in chosen]
        axes.bar(
            starts,
            [each.high - each.low for each in found],
            np.subtract(stops, starts),
            [each.low for each in found],
            align="edge",
            zorder=3.0,
            **style["band"],
        )
        axes.hlines(
            [each.value for each in found],
            starts,
            stops,
            color=NUMBER,
            linewidth=1.6,
            zorder=4.0,
            **style["line"],
        )


def _words(axes: Axes, rates: Sequence[ServiceRate], speed: str, title: str) -> None:
    """Say above the axes what came of it, and beside them how fast it is now."""
    bold: dict[str, Any] = {"fontweight": "bold", "pad": 20.0, "parse_math": False}
    axes.set_title(title, loc="left", color=INK, fontsize=11.0, **bold)
    now = rates[-1] if rates else None
    if now is None or now.estimate is None:
        said, color = "no number" if now is None else f"no number, {standing(now)}", CHANGE
    else:
        said = f"{show_estimate(now.estimate, speed)}, {standing(now)}"
        color = NUMBER if now.converged else CHANGE
        low, high = axes.get_ylim()
        place = (now.estimate.value - low) / (high - low)
        words = show_value(now.estimate.value, speed).replace(" ", "\n", 1)
        beside(axes, words, min(max(place, 0.1), 0.9), va="center", color=NUMBER)
    axes.annotate(
        said,
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(0.0, 6.0),
        textcoords="offset points",
        fontsize=SMALL,
        color=color,
        parse_math=False,
    )


def _dress(axes: Axes, scale: Scale) -> None:
    """Name the axes, and take away what says nothing."""
    axes.set_ylabel(scale.name, color=INK, fontsize=10.0, parse_math=False)
    axes.yaxis.set_major_formatter(lambda rate, _: f"{rate * scale.factor:.6g}")
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.tick_params(color=FRAME, labelcolor=INK, labelsize=SMALL)
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FRAME)


def _waiting(below: Axes, stretches: Stretches) -> None:
    """Draw below how much of the time was spent waiting."""
    if stretches.start_s.size:
        below.set_xlim(0.0, float(stretches.stop_s[-1]))
        edges = np.append(stretches.start_s, stretches.stop_s[-1])
        below.stairs(stretches.waiting, edges, fill=True, color=PALE, label="waiting")
    below.set_ylim(0.0, 1.0)
    below.set_ylabel("waiting", color=INK, fontsize=10.0)
    below.set_xlabel(_TIME, color=INK, fontsize=10.0)
    below.set_yticks([0.0, 0.5, 1.0])
    below.yaxis.set_major_formatter(lambda each, _: percent(each))
    below.xaxis.set_major_formatter(lambda each, _: counted(each) if each >= 1000 else f"{each:g}")
    _plain(below)
