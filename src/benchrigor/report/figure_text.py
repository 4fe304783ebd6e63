"""Figures of a run in words: of the readings, and of the line through amounts of work."""

from __future__ import annotations

from collections.abc import Sequence

from benchrigor.model import Analysis, RunRecord
from benchrigor.model.analysis import Observed, WpsFit
from benchrigor.model.text import (
    counted,
    first_few,
    many,
    percent,
    show_amount,
    show_value,
    show_values,
)

_MOST_NAMED = 6
_FEW_FOR_TAIL = 10  # Fewer readings have no tenth percentile to speak of


def show_figures(observed: Observed, unit: str) -> str:
    """Show the number of readings, and all their figures."""
    size = many(observed.n, "reading")
    if observed.calls > observed.n:
        size += f" of {counted(observed.calls / observed.n)} calls"
    if observed.n == 1:
        return f"{size}; {show_value(observed.median, unit)}"
    tail = [] if observed.n < _FEW_FOR_TAIL else ["p10"]
    names = ["least", *tail, "median", "mean", "greatest"]
    figures = show_values((getattr(observed, name) for name in names), unit)
    return f"{size}; {', '.join(map(' '.join, zip(figures, names, strict=True)))}"


def show_levels(observed: Observed, unit: str) -> str:
    """Show the levels around which readings gather; empty if there is one."""
    if len(observed.levels) < 2:
        return ""
    shown = show_values((level.value for level in observed.levels), unit)
    shares = (percent(level.share, digits=2) for level in observed.levels)
    return ", ".join(map(" ".join, zip(shown, shares, strict=True)))


def subsessions_of_rounds(analysis: Analysis) -> str:
    """Say how many adjacent rounds must be merged until neighbours hardly correlate."""
    merged = analysis.subsessions
    if merged is None:
        return ""
    if merged.size is None:
        return f"rounds autocorrelated ({merged.autocorrelation:.2f}), however many are merged"
    return (
        f"subsessions of {many(merged.size, 'round')}, autocorrelation {merged.autocorrelation:.2f}"
    )


def fitted_work(analysis: Analysis, planned: Sequence[float | None]) -> str:
    """Say which amounts the line goes through, and up to which amount others were tried."""
    left_out = set(analysis.left_out)
    work = [amount for amount in planned if amount is not None]
    fitted = [amount for index, amount in enumerate(work) if index not in left_out]
    if not fitted:
        return ""
    unit, largest = analysis.metric.unit, max(work)
    further = f", tested up to {show_amount(largest, unit)}" if largest > max(fitted) else ""
    return f"through amounts of {show_amounts(fitted, unit)}{further}"


def show_amounts(work: Sequence[float], unit: str) -> str:
    """Show the smallest and the largest amount."""
    return f"{show_amount(min(work), unit)} to {show_amount(max(work), unit)}"


def name_fit(fit: WpsFit) -> str:
    """Name the points of the line: rounds or subsessions."""
    return "subsession" if "merged" in fit.slope.method else "round"


def say_prediction(fit: WpsFit) -> str:
    """Say how well the line predicts; rounding errors alone count as 0."""
    return f"{percent(round(fit.prediction_error, 9))} of the mean duration"


def grown(fit: WpsFit) -> str:
    """Say how duration grows with work; empty if that is unknown."""
    if fit.growth is None:
        return ""
    value, low, high = (f"{x:.2f}" for x in (fit.growth.value, fit.growth.low, fit.growth.high))
    shape = {None: "too vague to name", "other": "no law with a name"}
    return f"duration grows as work^{value} [{low}, {high}]: {shape.get(fit.shape, fit.shape)}"


def durations_of(record: RunRecord, unit: str) -> str:
    """Say which amounts of work took how long; empty if no round has both."""
    rounds = [round_ for round_ in record.whole_rounds if round_.plan.work is not None]
    work = [round_.plan.work or 0.0 for round_ in rounds]
    took = [round_.duration_s for round_ in rounds]
    if not rounds:
        return ""
    amounts = show_amounts(work, unit)
    return f"{amounts} of work took {show_value(min(took), 's')} to {show_value(max(took), 's')}"


def outlying(analysis: Analysis) -> tuple[int, ...]:
    """Return the indices, among all rounds, of those that lie far from the line."""
    kept = [index for index in range(analysis.n) if index not in set(analysis.left_out)]
    return tuple(kept[index] for index in analysis.wps.outliers) if analysis.wps else ()


def name_rounds(indices: tuple[int, ...]) -> str:
    """Name rounds by their indices, the first few of them."""
    return f"round{'' if len(indices) == 1 else 's'} {first_few([*map(str, indices)], _MOST_NAMED)}"
