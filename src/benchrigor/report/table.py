"""Several runs side by side, one line each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from benchrigor.model import RunRecord, Severity
from benchrigor.model.text import counted, ended, show_estimate
from benchrigor.report.text import WIDTH

__all__ = ["tabulate"]

_SHORT_NAME = 24
"""A name no longer than this stays in its row: an ending is broken for it."""


def tabulate(records: Sequence[RunRecord], *, width: int = WIDTH) -> str:
    """Return a table of runs: name, estimate with its interval, readings, how each ended.

    A name that is too long for the table stands on a line of its own; where that is not enough,
    the ending goes on below. What weakens the numbers follows below the table, said once for all
    runs that it concerns.

    Parameters
    ----------
    records
        Of finished runs, in the order in which they are to be shown.
    width
        Columns that there are.

    Examples
    --------
    >>> import benchrigor as br
    >>> from benchrigor.testing import FakeClock, SyntheticWorkload
    >>> clock = FakeClock()
    >>> session = br.Session(name="synthetic", seed=1, clock=clock)
    >>> record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    >>> print(tabulate([record]).splitlines()[0].split())
    ['name', 'mean', '[interval]', 'readings', 'ended']
    """
    statistics = {record.options.statistic for record in records}
    header = ("name", f"{_only(statistics)} [interval]", "readings", "ended")
    rows = [header, *map(_row, records)]
    shown, readings = (max(len(row[column]) for row in rows) for column in (1, 2))
    space = width - shown - readings - 6
    wanted = min(max(len(row[0]) for row in rows), _SHORT_NAME)
    endings = [_broken(row[3], space - wanted) for row in rows]
    room = max(space - max(len(line) for ending in endings for line in ending), len("name"))
    names = min(max(len(row[0]) for row in rows), room)
    lines = []
    for (name, estimate, n, _), (ending, *rest) in zip(rows, endings, strict=True):
        if len(name) > names:
            lines += textwrap.wrap(name, width, break_on_hyphens=False)
        first = name if len(name) <= names else ""
        line = f"{first:<{names}}  {estimate:<{shown}}  {n:>{readings}}  "
        lines.append((line + ending).rstrip())
        lines += [" " * len(line) + more for more in rest]
    return "\n".join([*lines, *_warnings(records, width)])


def _broken(ending: str, room: int) -> list[str]:
    """Break an ending that is too long after its colon."""
    head, colon, why = ending.partition(": ")
    return [head + colon.rstrip(), why] if colon and len(ending) > room else [ending]


def _only(words: set[str]) -> str:
    """Return the word that all rows share."""
    return next(iter(words)) if len(words) == 1 else "estimate"


def _row(record: RunRecord) -> tuple[str, str, str, str]:
    analysis = record.analysis()
    ending = ended(record.decision)
    if analysis is None or analysis.estimate is None:
        return record.name, "no number", "", ending
    shown = show_estimate(analysis.estimate, analysis.metric.unit)
    return record.name, shown, counted(analysis.n), ending


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
        for line in textwrap.wrap(
            f"! {', '.join(names)}: {text}",
            width,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
    ]
