"""Pictures of a run: its readings in time order, or its work amounts and durations."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Notice, RunRecord
from benchrigor.model.analysis import Kind
from benchrigor.model.readings import Reason
from benchrigor.model.series import Floats, Ints
from benchrigor.model.text import no_number, show_estimate
from benchrigor.report.facts.reading_facts import left_out_for_delay
from benchrigor.report.plots.drawing import draw
from benchrigor.report.plots.trace import Part, Trace
from benchrigor.report.plots.work_plot import draw_work, work_line
from benchrigor.safe_text import page

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
