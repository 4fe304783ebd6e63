"""Several runs side by side, one line each."""

from __future__ import annotations

from collections.abc import Sequence

from benchrigor.model import RunRecord, Severity
from benchrigor.model.text import (
    WIDTH,
    aligned,
    counted,
    ended,
    show_estimate,
    show_interval,
    show_value,
    wrapped,
)

_MARK = "~"  # Before what was observed in place of an estimate
_SHORT_NAME = 24  # A name no longer than this stays in its row: endings are broken for it


def tabulate(records: Sequence[RunRecord], *, width: int = WIDTH) -> str:
    """Return a table of runs: name, estimate with its interval, readings, how each ended.

    What times and speeds are at full pace has a column where there is room. Long endings take two
    rows where the table is too wide, and long names lines of their own. Below the table stands
    what weakens the numbers, once for all runs that it concerns.

    Parameters
    ----------
    records
        Of finished runs, in the order in which they are shown.
    width
        Columns of the terminal.

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
    full = ["at full pace", *map(_at_full_pace, records)]
    wider = [(*row[:2], each, *row[2:]) for row, each in zip(rows, full, strict=True)]
    if any(full[1:]) and _width(wider) <= width:
        table = aligned(wider, "<<<><", width=width)
    else:
        if _width(rows) > width:
            rows = [part for row in rows for part in _broken(row)]
        table = aligned(rows, "<<><", width=width)
    lines = [*table, *_warnings(records, width)]
    marked = any(row[1].startswith(_MARK) for row in rows)
    return "\n".join([*lines, *([f"{_MARK} observed median, no interval"] if marked else [])])


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


def _at_full_pace(record: RunRecord) -> str:
    analysis = record.analysis()
    if analysis is None or analysis.at_full_pace is None:
        return ""
    return show_interval(analysis.at_full_pace, analysis.metric.unit)


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
    concerned: dict[str, list[str]] = {}
    for record in records:
        for text in dict.fromkeys(
            str(each) for each in record.notices if each.severity is not Severity.NOTE
        ):
            concerned.setdefault(text, []).append(record.name)
    return [
        line
        for text, names in concerned.items()
        for line in wrapped(f"! {', '.join(names)}: {text}", width=width, hanging=2)
    ]
