"""Several runs side by side, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchrigor.control_characters import page
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Code, Severity
from benchrigor.model.run import RunRecord
from benchrigor.model.text import (
    WIDTH,
    aligned,
    counted,
    ended,
    first_few,
    show_estimate,
    show_interval,
    show_value,
    wrapped,
)

_MARK = "~"  # Before what was observed in place of an estimate
_LISTED = 5  # names that a warning is listed with
_SHORT_NAME = 24  # A name no longer than this stays in its row: endings are broken for it


def tabulate(
    records: Sequence[RunRecord], *, width: int = WIDTH, places: Sequence[int] = ()
) -> str:
    """Return a table of runs: name, estimate with its interval, readings, how each ended.

    What times and speeds are at full pace has a column where there is room, without intervals
    where there is less, and in place of the number of readings where that is what it takes. Long
    endings take two rows where the table is too wide, and long names lines of their own. Below the
    table stands what weakens the numbers, once for all runs that it concerns.

    Parameters
    ----------
    records
        Of finished runs, in the order in which they are shown.
    width
        Columns of the terminal.
    places
        Of a ranking, one for each record: they stand before the names.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> print(tabulate([record]).splitlines()[0].split()[:3])
    ['name', 'mean', '[interval]']
    """
    statistics = {record.options.statistic for record in records}
    statistic = next(iter(statistics)) if len(statistics) == 1 else "estimate"
    rows = [("name", f"{statistic} [interval]", "readings", "ended"), *map(_row, records)]
    for index, place in enumerate(places, start=1):
        rows[index] = (f"{place}. {rows[index][0]}", *rows[index][1:])
    paced = [_with_full_pace(rows, records, show) for show in (show_interval, _without_interval)]
    paced.append([(*row[:3], *row[4:]) for row in paced[-1]])
    wider = next((each for each in paced if _width(each) <= width), rows)
    if wider is not rows and any(row[2] for row in wider[1:]):
        table = aligned(wider, "<<<><" if len(wider[0]) > 4 else "<<<<", width=width)
    else:
        if _width(rows) > width:
            rows = [part for row in rows for part in _broken(row)]
        table = aligned(rows, "<<><", width=width)
    lines = [*table, *_warnings(records, width)]
    marked = any(row[1].startswith(_MARK) for row in rows)
    return page([*lines, *([f"{_MARK} observed median, no interval"] if marked else [])])


_Row = tuple[str, str, str, str]


def _row(record: RunRecord) -> _Row:
    analysis = record.analysis()
    ending = ended(record.decision)
    if analysis is None:
        return record.name, "no number", "", ending
    unit, observed = analysis.metric.unit, analysis.observed
    if analysis.estimate is not None:
        return record.name, show_estimate(analysis.estimate, unit), counted(analysis.n), ending
    if observed is None:
        return record.name, "no number", "", ending
    shown = f"{_MARK}{show_value(observed.median, unit)}"
    return record.name, shown, counted(observed.n), ending


def _with_full_pace(
    rows: Sequence[_Row], records: Sequence[RunRecord], show: Callable[[Estimate, str], str]
) -> list[tuple[str, ...]]:
    """Add a column of figures at full pace behind the estimates."""
    analyses = [record.analysis() for record in records]
    full = [
        show(each.at_full_pace, each.metric.unit) if each and each.at_full_pace else ""
        for each in analyses
    ]
    column = ["at full pace", *full]
    return [(*row[:2], each, *row[2:]) for row, each in zip(rows, column, strict=True)]


def _without_interval(estimate: Estimate, unit: str) -> str:
    return show_interval(estimate, unit).partition(" [")[0]


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    """Return the columns of a table whose long names stand on lines of their own."""
    names, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return min(names, _SHORT_NAME) + sum(others) + 2 * len(others)


def _broken(row: _Row) -> list[_Row]:
    """Break the ending of a row after its colon, into a row of its own."""
    *cells, ending = row
    head, colon, why = ending.partition(": ")
    return [(cells[0], cells[1], cells[2], f"{head}:"), ("", "", "", why)] if colon else [row]


def _warnings(records: Sequence[RunRecord], width: int) -> list[str]:
    """Say once what weakens numbers, but for what their endings say, and which they are."""
    concerned: dict[str, dict[str, str]] = {}
    for record in records:
        for each in record.notices:
            if each.severity is not Severity.NOTE and each.code is not Code.NOT_CONVERGED:
                concerned.setdefault(each.code, {}).setdefault(record.name, str(each))
    lines = []
    for sentences in concerned.values():
        (first, *others), sentence = sentences, next(iter(sentences.values()))
        likewise = f" Likewise {first_few(others, _LISTED)}." if others else ""
        lines += wrapped(f"! {first}: {sentence}{likewise}", width=width, hanging=2)
    return lines
