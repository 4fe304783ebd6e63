"""Pictures of a run: its readings in time order, or its work amounts and durations."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Notice, RunRecord, WpsFit
from benchrigor.model.analysis import Kind
from benchrigor.model.readings import Reason
from benchrigor.model.series import Floats, Ints
from benchrigor.model.text import no_number, show_estimate, show_overhead
from benchrigor.report.facts.reading_facts import left_out_for_delay
from benchrigor.report.facts.work_facts import grown, outlying
from benchrigor.report.plots import drawing
from benchrigor.report.plots.drawing import draw
from benchrigor.report.plots.trace import Part, Ruler, Trace
from benchrigor.safe_text import page
from benchrigor.units import Scale, counted, many, percent, scale_for, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BESIDE = 26  # Characters that fit next to the axes


def plot_trace(record: RunRecord, metric: str | None = None, *, axes: Axes | None = None) -> Axes:
    """Draw the readings of a run in time order, with phases, change points and the number.

    Rejected phases and red rounds are shaded, disturbed readings have a color of their own, and
    change points are vertical lines (dotted if the step is immaterial). The number is a line with
    its interval over the readings that count. Other readings are paler; those far outside are marks
    at the edge. More than 4000 readings are drawn as range, middle half and median of a thousand
    columns. Restarted rounds stand in a row. `plot_work` draws a speed by work amounts and
    durations.

    Parameters
    ----------
    record
        Of a finished or a running session.
    metric
        Name; None for the first metric that must be satisfied.
    axes
        To draw into; None for a new figure, 8 by 4 inches, outside the state of pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        ``axes.figure.savefig("trace.png")`` writes the picture to a file.

    Raises
    ------
    InvalidInput
        When no metric has that name.
    NotEstimable
        When the run has no readings of it.
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.

    Examples
    --------
    >>> import benchrigor as br
    >>> from benchrigor.testing import FakeClock, SyntheticWorkload
    >>> clock = FakeClock()
    >>> session = br.Session(name="synthetic", seed=1, clock=clock)
    >>> record = session.run(SyntheticWorkload(mean=0.002, cv=0.1, seed=1, clock=clock))
    >>> plot_trace(record).get_ylabel()
    'time (ms)'
    """
    _check(record)
    analysis, series = record.analysis(metric), record.counted(metric)
    if analysis is None or series.size == 0:
        raise NotEstimable(Notice.of(Code.NO_DATA, "picture", name_=record.name))
    if analysis in _lines(record):
        return draw_work(work_line(record, analysis), axes)
    words = _write_number(record.options.statistic, analysis.estimate, analysis.metric.unit)
    drawn, places, reasons = _among_all(record, analysis, series)
    trace = Trace(
        series=drawn,
        places=places,
        reasons=reasons,
        parts=_parts(record, analysis, series),
        quantity=analysis.metric.name,
        unit=analysis.metric.unit,
        title=record.name,
        level=_level(analysis.estimate),
        words=words or (no_number(analysis.notices) if analysis.notices else ""),
        delayed=left_out_for_delay(analysis, record),
    )
    return draw(trace, axes)


def plot_work(record: RunRecord, metric: str | None = None, *, axes: Axes | None = None) -> Axes:
    """Draw the rounds of a run by work amount and duration, and the line that gives the speed.

    The shaded band is the interval of the line, the diamond on the vertical axis is the overhead
    with its interval. Rounds that do not count are hollow, and outlying ones are ringed; a round
    far above all others is a mark at the edge. If the line is bent and the amounts that count span
    more than three decades, the axes are logarithmic.

    Parameters
    ----------
    record
        Of a finished or a running session, with rounds of various work.
    metric
        Name; None for the first that comes from work amounts and durations.
    axes
        As for `plot_trace`.

    Returns
    -------
    matplotlib.axes.Axes
        Work across in its own unit, seconds upwards.

    Raises
    ------
    InvalidInput
        When no metric has that name, or it does not come from work amounts and durations.

    Examples
    --------
    >>> import benchrigor as br
    >>> session = br.Session(br.Options(analysis="wps", work=(1.0, 100.0)), name="job", seed=1)
    >>> while (plan := session.ask()) is not None:
    ...     elapsed_ns = round(1e9 * (0.3 + plan.work / 20 + plan.work % 0.01))
    ...     decision = session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns))
    >>> axes = plot_work(session.result())
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('work', 'duration (s)')
    """
    _check(record)
    asked = None if metric is None else record.analysis(metric)
    lines = [line for line in _lines(record) if metric is None or line is asked]
    if not lines or not record.rounds:
        raise InvalidInput(
            f"{record.name!r} has no speed by work and duration, expected rounds of various work "
            "(for readings: plot_trace)"
        )
    return draw_work(work_line(record, lines[0]), axes)


def _lines(record: RunRecord) -> list[Analysis]:
    """Return the analyses of a speed by work and duration."""
    return [analysis for analysis in record.analyses if analysis.kind is Kind.WORK]


def _check(record: object) -> None:
    if not isinstance(record, RunRecord):
        raise InvalidInput(f"record is a {type(record).__name__}, expected a RunRecord")


def _parts(record: RunRecord, analysis: Analysis, series: Floats) -> tuple[Part, ...]:
    """Divide readings into restarted rounds or pieces; other readings are one part."""
    by_round = replace(record, rounds=record.counted_rounds).readings_by_round(analysis.metric.name)
    sizes = analysis.series_sizes([readings.size for _, readings in by_round])
    offsets = [0, *accumulate(sizes)]
    pieces = np.split(series, offsets[1:-1])
    phases = analysis.phases or (None,) * len(pieces)
    return tuple(
        Part(series=piece, offset=offset, phases=stable)
        for piece, offset, stable in zip(pieces, offsets, phases, strict=False)
    )


def _among_all(
    record: RunRecord, analysis: Analysis, series: Floats
) -> tuple[Floats, Ints | None, npt.NDArray[np.int8] | None]:
    """Return all readings, the places among them of those analysed, and why each counts or not.

    Without a selection, as of old records, the readings that were analysed are all.
    """
    every, selection = record.readings(analysis.metric.name), record.selection(analysis.metric.name)
    if selection is None or selection.n != every.size:
        return series, None, None
    places = np.flatnonzero(selection.reasons != Reason.RED_ROUND)
    if analysis.disturbed is not None and analysis.disturbed.n == places.size:
        places = places[analysis.disturbed.indices]
    if places.size != series.size:
        return series, None, None
    return every, places, selection.reasons


def _level(estimate: Estimate | None) -> tuple[float, float, float] | None:
    return None if estimate is None else (estimate.value, estimate.low, estimate.high)


def _write_number(statistic: str, estimate: Estimate | None, unit: str) -> str:
    """Write the number on two lines: itself, and its interval; on more if they are long."""
    if estimate is None:
        return ""
    lines = f"{statistic} {show_estimate(estimate, unit)}".replace(" [", "\n[", 1).split("\n")
    return page(part for line in lines for part in textwrap.wrap(line, _BESIDE))


_DECADES = 3.0  # Amounts that count over more decades are drawn on logarithmic axes
_FAR = 2.0  # An outlying round is marked at the edge if it is this factor above all others
_BEYOND = 1.05  # End of the line, as a multiple of the largest amount
_NAME_WIDTH = 6.0  # Width of the name of a round, relative to its size
# Overhead and slope are never taken to be more opposed than that: the band must not close.
_WAIST = 0.9
_STEPS = 200  # Points of the line
_HUGE = 1e15
_PLAIN = (1e-2, 1e6)  # Largest amounts that are written without a power of ten


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkLine(Trace):
    """The content of the picture: ``series`` are durations, ``level`` is the line's far end.

    ``work`` holds the work amounts of the rounds, ``counts`` whether they count.
    """

    work: Floats
    counts: npt.NDArray[np.bool_]
    analysis: Analysis

    @property
    def far(self) -> float:
        """The amount at which the line ends."""
        return _BEYOND * float(self.work[self.counts].max())

    def band(self, fit: WpsFit, work: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the line and the ends of its interval at these amounts.

        The variance of the line at w is the variance of the overhead, plus w^2 times the
        variance of the slope, plus 2 w times their covariance. In a least-squares line the slope
        and the level at the mean amount are uncorrelated, so the covariance is minus the mean
        amount times the variance of the slope.
        """
        start, slope = fit.overhead.half_width, fit.slope.half_width
        together = max(-float(self.work[self.counts].mean()) * slope**2, -_WAIST * start * slope)
        half = np.sqrt(np.maximum(start**2 + 2.0 * work * together + (work * slope) ** 2, 0.0))
        line = fit.overhead.value + fit.slope.value * work
        return line, line - half, line + half

    @property
    def logarithmic(self) -> bool:
        """Whether the amounts that count are too far apart for a ruler."""
        amounts = self.work[self.counts & (self.work > 0.0)]
        return amounts.size > 0 and float(amounts.max()) > 10.0**_DECADES * float(amounts.min())

    @property
    def window(self) -> tuple[float, float]:
        """The range of durations: all rounds but far outlying ones, the line, the overhead."""
        usual = np.ones(self.series.size, dtype=np.bool_)
        usual[list(outlying(self.analysis))] = False
        shown = self.series[usual]
        high = float(shown.max(initial=0.0))
        high = max(high, float(self.series[self.series <= _FAR * high].max(initial=high)))
        if self.level is not None:
            high = max(high, min(self.level[2], _FAR * high))
        if self.logarithmic:
            positive = self.series[self.series > 0.0]
            return 0.7 * float(positive.min()), 1.5 * high
        low = 0.0
        if self.analysis.wps is not None:
            low = min(0.0, max(self.analysis.wps.overhead.low, -0.5 * high))
        return low - (0.04 * (high - low) if low else 0.0), high + (0.06 * (high - low) or 1e-9)

    @property
    def across(self) -> Ruler:
        """The scale in which amounts of work are written."""
        unit = self.analysis.metric.unit.removesuffix("/s")
        largest = float(self.work.max())
        if unit == "B" and largest < _HUGE:
            scale = scale_for(largest, unit)
        elif _PLAIN[0] <= largest < _PLAIN[1]:
            scale = Scale(factor=1.0, name=unit)
        else:
            power = 3 * math.floor(math.log10(largest) / 3.0)
            scale = Scale(factor=10.0**-power, name=f"1e{power} {unit}".rstrip())
        return Ruler(name=f"work ({scale.name})" if scale.name else "work", scale=scale)

    @property
    def evidence(self) -> str:
        """The basis of the number, or the reason why it is missing."""
        n, kept = self.series.size, int(self.counts.sum())
        parts = [f"{counted(kept)} of {many(n, 'round')} count{'s' if kept == 1 else ''}"]
        if kept < n:
            parts[0] += " (the others are hollow)"
        fit = self.analysis.wps
        if fit is not None and fit.shape not in (None, "linear"):
            parts.append(grown(fit))
        elif fit is not None and self.level is not None:
            parts.append(f"each predicted from the others to {percent(fit.prediction_error)}")
        if self.level is None:
            parts.insert(0, f"No number. {no_number(self.analysis.notices)}")
        return " · ".join(parts)


def work_line(record: RunRecord, analysis: Analysis) -> WorkLine:
    """Take the rounds and the line from a record."""
    rounds = record.whole_rounds
    work = np.array([round_.plan.work or 0.0 for round_ in rounds], dtype=np.float64)
    counts = np.arange(work.size) < analysis.n
    counts[list(analysis.left_out)] = False
    line = WorkLine(
        series=np.array([round_.duration_s for round_ in rounds], dtype=np.float64),
        parts=(),
        quantity="duration",
        unit="s",
        title=record.name,
        work=work,
        counts=counts,
        analysis=analysis,
    )
    fit, estimate = analysis.wps, analysis.estimate
    if estimate is None or fit is None:
        return line
    value, low, high = (float(end[0]) for end in line.band(fit, np.array([line.far])))
    shown = show_estimate(estimate, analysis.metric.unit).replace(" [", "\n[", 1)
    return replace(line, level=(value, low, high), words=shown)


def draw_work(line: WorkLine, axes: Axes | None) -> Axes:
    """Draw rounds of various work, into a new figure if no axes are given."""
    axes = axes or drawing.new_axes()
    _scale(axes, line)
    _draw_rounds(axes, line)
    _ring(axes, line)
    if line.analysis.wps is not None:
        _draw_line(axes, line, line.analysis.wps)
        _mark_overhead(axes, line.analysis.wps)
    _mark_outliers(axes, line)
    drawing.write_words(axes, line)
    _dress(axes, line)
    return axes


def _scale(axes: Axes, line: WorkLine) -> None:
    largest = float(line.work.max())
    if line.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        smallest = float(line.work[line.work > 0.0].min())
        room = (largest / smallest) ** 0.03
        axes.set_xlim(smallest / room, largest * room)
    else:
        axes.set_xlim(0.0, _BEYOND * largest)
    axes.set_ylim(*line.window)


def _draw_rounds(axes: Axes, line: WorkLine) -> None:
    """Draw every round, those that do not count hollow."""
    size = min(6.0, max(3.0, 40.0 / math.sqrt(line.series.size)))
    hollow = {"markerfacecolor": "none", "markeredgecolor": drawing.PALE, "markeredgewidth": 0.8}
    solid = {"color": drawing.INK, "markeredgewidth": 0.0, "alpha": 0.7}
    for chosen, look, label in (
        (~line.counts, hollow, "left out"),
        (line.counts, solid, "counted"),
    ):
        style: dict[str, Any] = {"markersize": size, "zorder": 2.0, "label": label, **look}
        axes.plot(line.work[chosen], line.series[chosen], "o", **style)


def _ring(axes: Axes, line: WorkLine) -> None:
    """Ring the rounds far from the line, and name them if names do not collide."""
    low, high = axes.get_ylim()
    rings = [index for index in outlying(line.analysis) if low <= line.series[index] <= high]
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": drawing.OUTLYING}
    ring |= {"markersize": 11.0, "markeredgewidth": 1.2, "zorder": 5.0, "label": "outlying"}
    axes.plot(line.work[rings], line.series[rings], "o", **ring)
    places = axes.transData.transform(np.column_stack([line.work[rings], line.series[rings]]))
    reach = np.array([_NAME_WIDTH, 1.3]) * drawing.SMALL * axes.figure.dpi / 72.0
    named: list[npt.NDArray[np.float64]] = []
    for index, place in zip(rings, places, strict=True):
        if any((np.abs(place - other) < reach).all() for other in named):
            continue
        named.append(place)
        is_late = axes.transAxes.inverted().transform(place)[0] > 0.5
        side, points = ("right", -9.0) if is_late else ("left", 9.0)
        style = {"ha": side, "va": "center", "fontsize": drawing.SMALL, "color": drawing.OUTLYING}
        at = (line.work[index], line.series[index])
        drawing.write(axes, f"round {index}", at, (points, 0.0), "data", **style)


def _draw_line(axes: Axes, line: WorkLine, fit: WpsFit) -> None:
    """Draw the line with its interval, pale if it gives no number."""
    left, right = axes.get_xlim()
    at = np.geomspace(left, right, _STEPS) if line.logarithmic else np.linspace(0.0, right, _STEPS)
    value, low, high = line.band(fit, at)
    if line.logarithmic:  # values below 0 have no place
        value, low = np.where(value > 0.0, value, np.nan), np.maximum(low, axes.get_ylim()[0])
    color = drawing.NUMBER if line.level else drawing.PALE
    axes.fill_between(
        at, low, high, color=color, alpha=0.3, linewidth=0.0, zorder=3.0, label="interval"
    )
    axes.plot(at, value, color=color, linewidth=1.6, zorder=4.0, label="line")


def _mark_overhead(axes: Axes, fit: WpsFit) -> None:
    """Mark the overhead with its interval on the vertical axis."""
    overhead = fit.overhead
    bottom, top = axes.get_ylim()
    if overhead.value > bottom and overhead.low < top:
        style: dict[str, Any] = {"color": drawing.CHANGE, "clip_on": False}
        style["transform"] = axes.get_yaxis_transform()
        bar: dict[str, Any] = {
            "linewidth": 3.0,
            "solid_capstyle": "butt",
            "label": "interval of the overhead",
        }
        ends = [max(overhead.low, bottom), min(overhead.high, top)]
        axes.plot([0.0, 0.0], ends, zorder=6.0, **bar, **style)
        point: dict[str, Any] = {
            "markersize": 6.0,
            "markeredgecolor": drawing.PAPER,
            "label": "overhead",
        }
        axes.plot([0.0], [overhead.value], "D", zorder=7.0, **point, **style)
    shown = show_overhead(overhead).replace(" [", "\n[", 1)
    drawing.beside(axes, f"overhead\n{shown}", 0.0, va="bottom", color=drawing.CHANGE)


def _mark_outliers(axes: Axes, line: WorkLine) -> None:
    """Mark outlying rounds above the axes at their edge, and say how far up they are."""
    above = np.flatnonzero(line.series > axes.get_ylim()[1])
    if above.size == 0:
        return
    farthest = show_value(float(line.series.max()), "s")
    words = f"{many(above.size, 'round')} beyond,\nup to {farthest}"
    if above.size == 1:
        words = f"round {above[0]} beyond,\nat {farthest}"
    drawing.mark_beyond(axes, line.work[above], words, drawing.OUTLYING)


def _dress(axes: Axes, line: WorkLine) -> None:
    """Name and scale the axes."""
    if not line.logarithmic:
        for axis, ruler in ((axes.xaxis, line.across), (axes.yaxis, line.ruler)):
            axis.set_major_formatter(drawing.ticks(axis, ruler))
        drawing.name_axes(axes, line.across.name, line.ruler.name)
        return
    unit = line.analysis.metric.unit.removesuffix("/s")
    axes.xaxis.set_major_formatter(lambda work, _: _power(work, unit))
    axes.yaxis.set_major_formatter(lambda seconds, _: show_value(seconds, "s"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter("")
    drawing.name_axes(axes, f"work ({unit})" if unit else "work", "duration")


def _power(work: float, unit: str) -> str:
    """Write a power of ten, as short as it stands next to the next one."""
    if unit == "B" and 1.0 <= work < _HUGE:
        return show_value(work, unit)
    return f"{work:,.0f}" if 1.0 <= work < _PLAIN[1] else f"1e{round(math.log10(work))}"
