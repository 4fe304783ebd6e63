"""The picture of several comparisons: the interval of each change, the worst first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchrigor.model.comparison import Comparison, Verdict, worst_first
from benchrigor.report.plots.drawing import (
    BAD,
    FRAME,
    GOOD,
    INK,
    NUMBER,
    SMALL,
    UNKNOWN,
    beside,
    name_axes,
    new_axes,
)
from benchrigor.safe_text import escaped
from benchrigor.units import percent, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
