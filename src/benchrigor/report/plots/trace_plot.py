"""Pictures: the readings in time order, what was rejected of them, and the number they give."""

from __future__ import annotations

import textwrap
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Analysis, Estimate, Floats, Kind, RunRecord, StablePhase, as_series
from benchrigor.model.text import no_number, show_estimate, show_value
from benchrigor.report.plots.drawing import draw
from benchrigor.report.plots.trace import Part, Trace
from benchrigor.report.plots.work_plot import draw_work, work_line
from benchrigor.stats import find_stable_phase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BESIDE = 26
"""Characters that fit beside the axes."""


def plot_trace(record: RunRecord, metric: str | None = None, *, axes: Axes | None = None) -> Axes:
    """Draw the readings of a run in time order, with all that was concluded from them.

    Rejected phases are shaded, change points are vertical lines (dotted where the step is
    immaterial), the number is a line with its interval over the readings that it stands on.
    Readings that do not count are paler, those far outside are marks at the edge, with their
    count. More than 4000 readings are drawn as range, middle half and median of a thousand
    columns. Restarted rounds stand in a row. Of a speed by work amounts and durations, `plot_work`
    is drawn.

    Parameters
    ----------
    record
        Of a finished or a running session.
    metric
        Name; None for the first metric that must be satisfied.
    axes
        To draw into; None for a new figure, 8 by 4 inches, which belongs to nobody else: no
        state of pyplot is touched.

    Returns
    -------
    matplotlib.axes.Axes
        In the metric's unit; ``axes.figure.savefig("trace.png")`` writes it to a file.

    Raises
    ------
    InvalidInput
        When no metric has that name, or the run has no readings of it.
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
        raise InvalidInput(f"{record.name!r} has no readings, expected at least one to draw")
    if analysis.kind is Kind.WORK:
        return draw_work(work_line(record, analysis), axes)
    found = analysis.estimate
    return draw(
        Trace(
            series=series,
            parts=_parts(record, analysis, series),
            quantity=analysis.metric.name,
            unit=analysis.metric.unit,
            title=record.name,
            level=_level(found),
            words=_named(record.options.statistic, found, analysis.metric.unit)
            or (no_number(analysis) if analysis.notices else ""),
        ),
        axes,
    )


def plot_work(record: RunRecord, metric: str | None = None, *, axes: Axes | None = None) -> Axes:
    """Draw the rounds of a run by work amount and duration, and the line that gives the speed.

    The shaded band is the interval of the line at each amount, the diamond on the vertical axis
    is the overhead with its interval. Rounds that do not count are hollow, outlying ones ringed;
    one far above all others is a mark at the edge. Amounts that count over more than three
    decades are drawn on logarithmic axes, where the line is bent.

    Parameters
    ----------
    record
        Of a finished or a running session, with rounds of various work.
    metric
        Name; None for the first that comes from work amounts and durations.
    axes
        To draw into; None for a new figure, as `plot_trace` makes it.

    Returns
    -------
    matplotlib.axes.Axes
        Work across in its own unit, seconds upwards.

    Raises
    ------
    InvalidInput
        When no metric has that name, or it does not come from work amounts and durations.
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.

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
    if metric is None:
        found = next((each for each in record.analyses if each.kind is Kind.WORK), None)
    else:
        found = record.analysis(metric)
    if found is None or found.kind is not Kind.WORK or not record.rounds:
        raise InvalidInput(
            f"{record.name!r} has no speed by work and duration, expected rounds of various work "
            "(for readings: plot_trace)"
        )
    return draw_work(work_line(record, found), axes)


def _check(record: object) -> None:
    if not isinstance(record, RunRecord):
        raise InvalidInput(
            f"record is a {type(record).__name__}, expected a RunRecord (for readings: plot_phases)"
        )


def plot_phases(
    values: npt.ArrayLike,
    phases: StablePhase | None = None,
    *,
    estimate: Estimate | None = None,
    unit: str = "",
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw readings in time order with their phases, as `plot_trace` does for a run.

    Parameters
    ----------
    values
        Readings, shape (n,).
    phases
        As found by `benchrigor.stats.find_stable_phase`; None to find them here.
    estimate
        Of the mean of the stable phase (``estimate_mean(values, trim=True)``); None to show the
        phase's median instead.
    unit
        Of the readings ("s", "B/s", ...); empty for bare numbers.
    title
        What the readings are of; empty for no title.
    axes
        To draw into; None for a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        In the unit of the readings.

    Raises
    ------
    InvalidInput
        When the values are no readings, or the phases are those of another series.
    MissingExtra
        Without matplotlib, which comes with ``pip install 'benchrigor[report]'``.

    Examples
    --------
    >>> axes = plot_phases([9.0] * 20 + [5.0, 5.2] * 40, unit="s")
    >>> [text.get_text() for text in axes.texts if "warm" in text.get_text()]
    ['warm-up']
    """
    series = as_series(values)
    found = find_stable_phase(series) if phases is None else phases
    if found.change_points.n != series.size:
        raise InvalidInput(
            f"phases are of a series of {found.change_points.n} values, "
            f"expected {series.size} as in values"
        )
    level, words = _level(estimate), _named("mean", estimate, unit)
    stable = next((each for each in found.phases if each.start == found.start), None)
    if stable is None:
        level, words = None, next((each.sentence for each in found.notices), str(found.reason))
    elif estimate is None:
        level = (stable.median, stable.median, stable.median)
        words = f"median {show_value(stable.median, unit)}"
    part = Part(series=series, offset=0, phases=found, margin=estimate is not None)
    trace = Trace(
        series=series,
        parts=(part,),
        quantity="reading",
        unit=unit,
        title=title,
        level=level,
        words=words,
    )
    return draw(trace, axes)


def _parts(record: RunRecord, analysis: Analysis, series: Floats) -> tuple[Part, ...]:
    """Cut the readings of restarted rounds where one ends; all others are one part."""
    pieces = [series]
    if analysis.kind == Kind.INVOCATIONS:
        name = analysis.metric.name
        sizes = [
            each.unit_readings[name].size
            for each in record.counted_rounds
            if name in each.unit_readings
        ]
        pieces = np.split(series, list(accumulate(sizes))[:-1])
    offsets = accumulate((piece.size for piece in pieces), initial=0)
    phases = analysis.phases or (None,) * len(pieces)
    return tuple(
        Part(series=piece, offset=offset, phases=found)
        for piece, offset, found in zip(pieces, offsets, phases, strict=False)
    )


def _level(found: Estimate | None) -> tuple[float, float, float] | None:
    return None if found is None else (found.value, found.low, found.high)


def _named(statistic: str, found: Estimate | None, unit: str) -> str:
    """Say the number on two lines: itself, and its interval; on more where they are long."""
    if found is None:
        return ""
    lines = f"{statistic} {show_estimate(found, unit)}".replace(" [", "\n[", 1).split("\n")
    return "\n".join(textwrap.fill(each, _BESIDE) for each in lines)
