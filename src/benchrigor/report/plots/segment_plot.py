"""The picture of a run's segments: how long each took, which were disturbed, what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats, Interference, Light, SegmentGroup, SegmentProfile
from benchrigor.model.text import show_value
from benchrigor.report.interference_text import doubts, lost, parted
from benchrigor.report.plots.drawing import CHANGE, DOTS, FRAME, INK, NUMBER, SMALL, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_interference"]

_MOST_GROUPS = 20
_MOST_POINTS = 4000
"""Beyond that a file of dots would grow: they become an image in it."""
_WIDE = 20.0
"""A longest segment of so many medians makes the axis logarithmic."""
_TIME = "time in segments (s)"
_LIGHTS = {Light.GREEN: "#007a57", Light.YELLOW: "#8a6d00", Light.RED: "#b3261e"}
"""Dark enough for text."""


def plot_interference(
    profile: SegmentProfile,
    found: Interference,
    *,
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw the segments of a run over time, those that were disturbed highlighted.

    Each dot is a segment, at the time at which it began, as high as it lasted without measured
    delay; what was not judged is paler. Short lines at the right edge are the thresholds of the
    groups, those with most excess. Measured delay stands below, where there is any.

    Parameters
    ----------
    profile
        The segments.
    found
        Their interference (`benchrigor.stats.profile_interference`).
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
    ours, axes = axes is None, new_axes() if axes is None else axes
    own_s = profile.duration_s - profile.delay_s
    began_s = np.cumsum(profile.duration_s) - profile.duration_s
    judged, disturbed = _members(profile, found, own_s)
    for chosen, color, size, label in (
        (~judged, FRAME, 2.5, "not judged"),
        (judged & ~disturbed, INK, 2.5, "undisturbed"),
        (disturbed, CHANGE, 4.0, "disturbed"),
    ):
        axes.plot(
            began_s[chosen],
            own_s[chosen],
            markersize=size,
            color=color,
            rasterized=profile.n > _MOST_POINTS,
            label=label if chosen.any() else None,
            **DOTS,
        )
    axes.hlines(
        [each.threshold_s for each in found.groups[:_MOST_GROUPS]],
        0.98,
        1.0,
        transform=axes.get_yaxis_transform(),
        color=NUMBER,
        linewidth=1.2,
        label="threshold",
    )
    _dress(axes, own_s)
    _words(axes, found, title or profile.program)
    if profile.delay_s.any():
        _delays(axes, began_s, profile.delay_s)
        if ours:  # at second sight only the layout leaves room for what hangs below the axes
            cast("Figure", axes.figure).draw_without_rendering()
    else:
        axes.set_xlabel(_TIME, color=INK, fontsize=10.0)
    return axes


def _members(
    profile: SegmentProfile, found: Interference, own_s: Floats
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Tell which segments were judged, and which of them lasted longer than their threshold."""
    judged, disturbed = np.zeros((2, profile.n), dtype=np.bool_)
    for group in found.groups:
        inside = _inside(profile, group)
        judged |= inside
        disturbed |= inside & (own_s > group.threshold_s)
    return judged, disturbed


def _inside(profile: SegmentProfile, group: SegmentGroup) -> npt.NDArray[np.bool_]:
    inside = np.ones(profile.n, dtype=np.bool_)
    for name, value in group.nominal.items():
        inside &= profile.nominal[name] == value
    for name, (low, high) in group.computation.items():
        values = profile.computation.get(name, profile.nominal.get(name))
        inside &= (values >= low) & (values <= high)
    return inside


def _dress(axes: Axes, own_s: Floats) -> None:
    """Name and scale the axes, and take away what says nothing."""
    positive = own_s[own_s > 0.0]
    if positive.size and positive.max() > _WIDE * np.median(positive):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(lambda _value, _position: "")
    else:
        axes.set_ylim(bottom=0.0)
    axes.set_ylabel("segment", color=INK, fontsize=10.0)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(lambda seconds, _: show_value(seconds, "s") if seconds else "0")
    axes.tick_params(color=FRAME, labelcolor=INK, labelsize=SMALL)
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FRAME)


def _words(axes: Axes, found: Interference, title: str) -> None:
    """Say above the axes what came of it, and beside them what is what."""
    axes.set_title(title, loc="left", color=INK, fontsize=11.0, fontweight="bold", pad=20.0)
    doubt = " (doubtful)" if doubts(found) else ""
    axes.annotate(
        f"{lost(found)}: {parted(found)}{doubt}",
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(0.0, 6.0),
        textcoords="offset points",
        fontsize=SMALL,
        color=_LIGHTS[found.light],
        parse_math=False,
    )
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL, labelcolor=INK
    )


def _delays(axes: Axes, began_s: Floats, delay_s: Floats) -> None:
    """Draw measured delay below, segment by segment."""
    below = axes.inset_axes((0.0, -0.3, 1.0, 0.22), sharex=axes)
    below.vlines(began_s, 0.0, delay_s, color=NUMBER, linewidth=0.8, label="measured delay")
    below.set_ylim(bottom=0.0)
    below.set_ylabel("delay", color=INK, fontsize=10.0)
    below.set_xlabel(_TIME, color=INK, fontsize=10.0)
    below.locator_params(axis="y", nbins=2)
    axes.tick_params(labelbottom=False)
    _plain(below)
    axes.tick_params(labelbottom=False)
