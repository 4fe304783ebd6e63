"""The picture of a stage's service rate over time, its phases, and how much it waited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from benchrigor.model.series import Floats
from benchrigor.model.text import show_estimate
from benchrigor.queues.data import ServiceRate
from benchrigor.queues.recordings import Stretches
from benchrigor.queues.report import convergence, phases_of, speed_unit
from benchrigor.report.plots.drawing import (
    CHANGE,
    DOTS,
    NUMBER,
    PALE,
    above,
    beside,
    entitle,
    mark_beyond,
    name_axes,
    new_axes,
)
from benchrigor.units import counted, percent, scale_for, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARGIN = 0.08
_ROOM = 1.6  # the axis reaches this times the highest interval; values beyond it are marked


def plot_rates(
    rates: Sequence[ServiceRate],
    stretches: Stretches,
    *,
    unit: str = "items",
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw the service rate of a stage over time.

    A dot is a short part of the time. Bands are the intervals of the rates of phases, hollow for a
    rate that has not converged. Below is the share of the time that was spent waiting.

    Parameters
    ----------
    rates
        From `benchrigor.queues.ServiceRateEstimator`, in order.
    stretches
        The dots.
    unit
        Name of the items, in the plural.
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
    top = _set_limits(axes, stretches.rates, rates)
    _draw_dots(axes, stretches, top)
    _draw_phases(axes, phases_of(rates))
    scale = scale_for(top, speed)
    name_axes(axes, "", scale.name)
    axes.yaxis.set_major_formatter(lambda rate, _: f"{rate * scale.factor:.6g}")
    entitle(axes, title)
    _write_rate(axes, rates[-1] if rates else None, speed)
    _draw_waiting(axes.inset_axes((0.0, -0.34, 1.0, 0.22), sharex=axes), stretches)
    axes.tick_params(labelbottom=False)
    if ours:  # a second layout leaves room for the axes below
        cast("Figure", axes.figure).draw_without_rendering()
    return axes


def _set_limits(axes: Axes, values: Floats, rates: Sequence[ServiceRate]) -> float:
    """Let the axes show all but what lies far above; return the highest value shown."""
    estimates = [rate.estimate for rate in rates if rate.estimate is not None]
    seen = values[np.isfinite(values)].tolist()
    low = min([*seen, *(estimate.low for estimate in estimates)], default=0.0)
    high = max([*seen, *(estimate.high for estimate in estimates)], default=1.0)
    if estimates:
        high = min(high, _ROOM * max(estimate.high for estimate in estimates))
    room = _MARGIN * ((high - low) or high or 1.0)
    axes.set_ylim(max(0.0, low - room), high + room)
    return high


def _draw_dots(axes: Axes, stretches: Stretches, top: float) -> None:
    """Draw a dot for every stretch in which the stage was busy; a mark at the edge if beyond."""
    middle_s = (stretches.start_s + stretches.stop_s) / 2.0
    beyond = stretches.rates > top
    shown = np.isfinite(stretches.rates) & ~beyond
    size = min(6.0, max(3.0, 60.0 / math.sqrt(max(shown.size, 1))))
    style = {**DOTS, "markersize": size, "color": PALE, "label": "stretch"}
    axes.plot(middle_s[shown], stretches.rates[shown], **style)
    if beyond.any():
        mark_beyond(axes, middle_s[beyond], "", PALE)


def _draw_phases(axes: Axes, phases: Sequence[Sequence[ServiceRate]]) -> None:
    """Draw the beginnings of phases, and their rates with intervals."""
    axes.vlines(
        [phase[0].start_s for phase in phases[1:]],
        0.0,
        1.0,
        transform=axes.get_xaxis_transform(),
        color=CHANGE,
        linewidth=min(0.8, max(0.2, 12.0 / max(len(phases), 1))),
        label="phase",
    )
    rates = [rate for phase in phases for rate in phase]
    solid: dict[str, Any] = {"color": NUMBER, "alpha": 0.3, "linewidth": 0.0}
    hollow = {"facecolor": "none", "edgecolor": NUMBER, "linestyle": "--", "linewidth": 0.8}
    _draw_rates(axes, [rate for rate in rates if rate.converged], solid, "-", "")
    unsure = [rate for rate in rates if not rate.converged]
    _draw_rates(axes, unsure, hollow, "--", ", not converged")


def _draw_rates(
    axes: Axes, rates: Sequence[ServiceRate], band: dict[str, Any], linestyle: str, which: str
) -> None:
    known = [(rate, rate.estimate) for rate in rates if rate.estimate is not None]
    starts, stops = [rate.start_s for rate, _ in known], [rate.stop_s for rate, _ in known]
    axes.bar(
        starts,
        [estimate.high - estimate.low for _, estimate in known],
        np.subtract(stops, starts),
        [estimate.low for _, estimate in known],
        align="edge",
        zorder=3.0,
        label=f"interval{which}",
        **band,
    )
    axes.hlines(
        [estimate.value for _, estimate in known],
        starts,
        stops,
        color=NUMBER,
        linestyle=linestyle,
        linewidth=1.6,
        zorder=4.0,
        label=f"rate{which}",
    )


def _write_rate(axes: Axes, rate: ServiceRate | None, speed: str) -> None:
    """Write the last rate above the axes, and its value next to them."""
    words, color = "no number", CHANGE
    if rate is not None and rate.estimate is None:
        words = f"no number, {convergence(rate)}"
    elif rate is not None and rate.estimate is not None:
        words = f"{show_estimate(rate.estimate, speed)}, {convergence(rate)}"
        color = NUMBER if rate.converged else CHANGE
        low, high = axes.get_ylim()
        place = min(max((rate.estimate.value - low) / (high - low), 0.1), 0.9)
        value = show_value(rate.estimate.value, speed).replace(" ", "\n", 1)
        beside(axes, value, place, va="center", color=NUMBER)
    above(axes, words, 6.0, color=color)


def _draw_waiting(below: Axes, stretches: Stretches) -> None:
    """Draw how much of the time was spent waiting."""
    if stretches.start_s.size:
        below.set_xlim(0.0, float(stretches.stop_s[-1]))
        edges = np.append(stretches.start_s, stretches.stop_s[-1])
        below.stairs(stretches.waiting, edges, fill=True, color=PALE, label="waiting")
    below.set_ylim(0.0, 1.0)
    name_axes(below, "time (s)", "waiting")
    below.set_yticks([0.0, 0.5, 1.0])
    below.yaxis.set_major_formatter(lambda share, _: percent(share))
    below.xaxis.set_major_formatter(lambda at_s, _: counted(at_s) if at_s >= 1000 else f"{at_s:g}")
