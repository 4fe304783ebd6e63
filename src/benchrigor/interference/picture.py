"""The picture of a run's segments: durations, disturbed segments, measured delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from benchrigor.interference.report import show_parts, warnings_of
from benchrigor.model import Interference, SegmentProfile
from benchrigor.model.interference import Light
from benchrigor.model.series import Floats
from benchrigor.report.facts.machine_facts import show_total
from benchrigor.report.plots.drawing import (
    CHANGE,
    DOTS,
    FRAME,
    INK,
    NUMBER,
    SMALL,
    above,
    entitle,
    name_axes,
    new_axes,
)
from benchrigor.stats.interference.grouping import segment_thresholds
from benchrigor.units import show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_GROUPS = 20
_MOST_DOTS = 4000  # More dots become an image in the file, which would grow with them
_WIDE = 20.0  # A longest segment of that many medians makes the axis logarithmic
_TIME = "time in segments (s)"
# Dark enough for text.
_LIGHTS = {Light.GREEN: "#007a57", Light.YELLOW: "#8a6d00", Light.RED: "#b3261e"}
_LIGHTS[Light.UNKNOWN] = "#5f6368"


def plot_interference(
    profile: SegmentProfile,
    interference: Interference,
    *,
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw the segments of a run over time, with the disturbed ones highlighted.

    A dot is a segment: its start time, and its duration without measured delay. Dots are paler if
    the segment has no group. Short lines at the right edge are the thresholds of the groups with
    most excess. Measured delay is drawn below, if there is any.

    Parameters
    ----------
    profile
        The segments.
    interference
        Of this profile (`benchrigor.stats.profile_interference`).
    title
        Of the run; empty for the program's name.
    axes
        To draw into; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Seconds across, durations upwards.

    Raises
    ------
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.
    """
    is_new, axes = axes is None, new_axes() if axes is None else axes
    delay_s = profile.delay_s
    own_s = profile.duration_s - delay_s
    began_s = np.cumsum(profile.duration_s) - profile.duration_s
    thresholds_s = segment_thresholds(profile, interference.groups)
    for chosen, color, size, label in (
        (np.isnan(thresholds_s), FRAME, 2.5, "in no group"),
        (own_s <= thresholds_s, INK, 2.5, "undisturbed"),
        (own_s > thresholds_s, CHANGE, 4.0, "disturbed"),
    ):
        style = {**DOTS, "markersize": size, "color": color, "rasterized": profile.n > _MOST_DOTS}
        shown = label if chosen.any() else None
        axes.plot(began_s[chosen], own_s[chosen], label=shown, **style)
    highest_s = [group.threshold_s for group in interference.groups[:_MOST_GROUPS]]
    edge = axes.get_yaxis_transform()
    axes.hlines(highest_s, 0.98, 1.0, NUMBER, linewidth=1.2, transform=edge, label="threshold")
    _scale(axes, own_s)
    name_axes(axes, "" if delay_s.any() else _TIME, "segment")
    _write(axes, interference, title or profile.program)
    if delay_s.any():
        _draw_delays(axes, began_s, delay_s)
        if is_new:  # only a second layout leaves room for the labels below the axes
            cast("Figure", axes.figure).draw_without_rendering()
    return axes


def _scale(axes: Axes, own_s: Floats) -> None:
    """Scale the axis of durations."""
    positive = own_s[own_s > 0.0]
    if positive.size and positive.max() > _WIDE * np.median(positive):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter("")
    else:
        axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(_show_tick)


def _show_tick(seconds: float, _position: object) -> str:
    return show_value(seconds, "s") if seconds else "0"


def _write(axes: Axes, interference: Interference, title: str) -> None:
    """Write title and light above the axes, and the legend next to them."""
    entitle(axes, title)
    doubtful = " (doubtful)" if warnings_of(interference) else ""
    shown = f"{show_total(interference)}: {show_parts(interference)}{doubtful}"
    above(axes, shown, 6.0, color=_LIGHTS[interference.light])
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL, labelcolor=INK
    )


def _draw_delays(axes: Axes, began_s: Floats, delay_s: Floats) -> None:
    """Draw measured delay below, segment by segment."""
    below = axes.inset_axes((0.0, -0.3, 1.0, 0.22), sharex=axes)
    below.vlines(began_s, 0.0, delay_s, color=NUMBER, linewidth=0.8, label="measured delay")
    below.set_ylim(bottom=0.0)
    below.locator_params(axis="y", nbins=2)
    below.yaxis.set_major_formatter(_show_tick)
    name_axes(below, _TIME, "delay")
    axes.tick_params(labelbottom=False)
