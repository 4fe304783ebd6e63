"""The picture of the pace: ``docs/pictures/changing_pace.png``, from ``changing_pace.json``.

The windows are real, of a virtual machine with 2 processors of an AMD EPYC and unseen neighbours,
next to simulations that ran on it: the same JSON is written again and again for five minutes, and
every six seconds a number comes out. Each window shows how sensitive the work is to the pace; at
full pace all are shown with the mean of that ("alone": each with its own).

    python docs/pictures/changing_pace.py            # draw the recorded ones, print their figures
    python docs/pictures/changing_pace.py record     # take new ones first
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

import benchrigor as br
from benchrigor.model.series import Floats
from benchrigor.report.plots.drawing import (
    CHANGE,
    INK,
    NUMBER,
    PALE,
    above,
    beside,
    name_axes,
)
from benchrigor.session.pace_of_rounds import with_pace
from benchrigor.stats.pace import Sensitivity
from benchrigor.units import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).parent
WINDOWS = HERE / "changing_pace.json"
LASTING_S, WINDOW_S = 300.0, 6.0
ROWS = [{"id": i, "name": f"row {i}", "tags": ["a", "b"], "price": i / 7} for i in range(20)]


def dump() -> str:
    """Write the rows as JSON."""
    return json.dumps(ROWS)


def record() -> None:
    """Measure window after window, and correct all of them to one full pace."""
    runs, at_s, began_s = [], [], time.monotonic()
    while time.monotonic() - began_s < LASTING_S:
        at_s.append(time.monotonic() - began_s + WINDOW_S / 2.0)
        runs.append(br.measure(dump, target=1e-6, budget_s=WINDOW_S))
    paces = [each.pace for run in runs if (each := run.analysis()) is not None and each.pace]
    full_s = min(pace.full_s["interpreter"] for pace in paces)
    weights = np.array([pace.sensitivity_sd**-2 for pace in paces])
    mean = float(np.average([pace.sensitivity for pace in paces], weights=weights))
    common = Sensitivity(mean, float(weights.sum() ** -0.5), mean, 0.0)
    windows = [outline(at, run, full_s, common) for at, run in zip(at_s, runs, strict=True)]
    kept = {"full_s": full_s, "sensitivity": common, "windows": [*filter(None, windows)]}
    WINDOWS.write_text(f"{json.dumps(kept, indent=0)}\n", encoding="utf-8")


def outline(
    at_s: float, run: br.RunRecord, full_s: float, common: Sensitivity
) -> dict[str, Any] | None:
    """Return the picture of a window, numbers with the ends of their intervals."""
    analysis = run.analysis()
    if analysis is None:
        return None
    rounds, full = run.counted_rounds, {"interpreter": full_s}
    alone = with_pace(analysis, rounds, full, "mean")
    together = with_pace(analysis, rounds, full, "mean", sensitivity=common)
    if alone.pace is None:
        return None
    numbers = {
        "time": analysis.estimate,
        "alone": alone.at_full_pace,
        "at_full_pace": together.at_full_pace,
    }
    return {
        "at_s": round(at_s, 2),
        "pace": [alone.pace.mean, alone.pace.slowest, alone.pace.fastest],
        "sensitivity": [alone.pace.sensitivity, alone.pace.sensitivity_sd],
        **{
            name: [number.value, number.low, number.high]
            for name, number in numbers.items()
            if number
        },
    }


def draw(kept: dict[str, Any]) -> Figure:
    """Draw the time of each window as measured and at full pace, over the pace of the machine."""
    windows = kept["windows"]
    minutes = np.array([window["at_s"] for window in windows]) / 60.0
    figure = Figure(figsize=(8.0, 4.6), dpi=150, facecolor="white", layout="constrained")
    times, paces = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1.0))
    least, most = column(windows, "at_full_pace").min(), column(windows, "time").max()
    times.set_ylim(0.5e6 * least, 1.05e6 * most)
    for name, color, words in (
        ("time", CHANGE, "as measured"),
        ("at_full_pace", NUMBER, "at full pace"),
    ):
        draw_times(times, minutes, 1e6 * column(windows, name), words, color)
    name_axes(times, "", "time (µs)")
    mean, slowest, fastest = 100.0 * column(windows, "pace").T
    paces.fill_between(minutes, slowest, fastest, color=PALE, alpha=0.25, linewidth=0.0)
    paces.plot(minutes, mean, color=INK, linewidth=1.4)
    paces.set_ylim(0.0, 105.0)
    paces.set_yticks([0, 50, 100])
    paces.axhline(100.0, color=NUMBER, linewidth=0.8)
    beside(paces, "full pace", 100.0 / 105.0, va="center", color=NUMBER)
    low, high = (percent(end / 100.0, digits=2) for end in (mean.min(), mean.max()))
    beside(paces, f"pace: {low} to\n{high} of it", mean.mean() / 105.0, va="center", color=INK)
    name_axes(paces, "minutes", "pace (%)")
    title = f"json.dumps, {len(windows)} windows of {WINDOW_S:g} s"
    above(times, title, 6.0, color=INK, fontsize=11.0, fontweight="bold")
    return figure


def draw_times(axes: Axes, minutes: Floats, times: Floats, words: str, color: str) -> None:
    """Draw numbers with their intervals, and next to them how far apart they are."""
    values, low, high = times.T
    axes.vlines(minutes, low, high, color=color, linewidth=1.0, alpha=0.45)
    axes.plot(minutes, values, "o-", color=color, markersize=3.5, linewidth=0.7)
    spread = percent(float(np.log(values).std(ddof=1)), digits=2)
    ends = f"{values.min():.3g} to {values.max():.3g} µs"
    bottom, top = axes.get_ylim()
    height = (float(values.mean()) - bottom) / (top - bottom)
    beside(axes, f"{words}:\n{ends},\nspread {spread}", height, va="center", color=color)


def column(windows: list[dict[str, Any]], name: str) -> Floats:
    """Return the numbers of all windows under a name, shape (windows, 3)."""
    return np.array([window[name] for window in windows])


def main() -> None:
    """Draw the windows."""
    if sys.argv[1:] == ["record"]:
        record()
    kept = json.loads(WINDOWS.read_text(encoding="utf-8"))
    draw(kept).savefig(HERE / "changing_pace.png")
    for name in ("time", "alone", "at_full_pace"):
        found = figures(column(kept["windows"], name)).items()
        shown = ", ".join(f"{words} {percent(share, digits=2)}" for words, share in found)
        sys.stdout.write(f"{name}: {shown}\n")


def figures(times: Floats) -> dict[str, float]:
    """Say how far apart windows are, and means of six of them, each eighth."""
    value, low, high = times.T
    others = (value.sum() - value) / (value.size - 1)
    apart = np.triu(np.maximum.outer(low, low) > np.minimum.outer(high, high), 1)
    pairs = value.size * (value.size - 1) / 2
    sixes = [float(value[first::8][:6].mean()) for first in range(8) if value[first::8].size > 5]
    return {
        "spread": float(np.log(value).std(ddof=1)),
        "half-width": float(np.median((high - low) / 2.0 / value)),
        "interval holds mean of others": float(((low <= others) & (others <= high)).mean()),
        "pairs that do not overlap": float(apart.sum() / pairs),
        "spread of means of six": float(np.log(sixes).std(ddof=1)),
    }


if __name__ == "__main__":
    main()
