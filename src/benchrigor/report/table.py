"""Several runs side by side, one line each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from benchrigor.model import RunRecord, Severity
from benchrigor.model.headline import counted, show_estimate
from benchrigor.report.text import WIDTH

__all__ = ["tabulate"]


def tabulate(records: Sequence[RunRecord], *, width: int = WIDTH) -> str:
    """Return a table of runs: name, estimate with its interval, readings, how each ended.

    A name that is too long for the table stands on a line of its own. What weakens the numbers
    follows below the table, said once for all runs that it concerns.

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
    shown, readings, ended = (max(len(row[column]) for row in rows) for column in (1, 2, 3))
    room = max(width - shown - readings - ended - 6, len("name"))
    names = min(max(len(row[0]) for row in rows), room)
    lines = []
    for name, *cells in rows:
        if len(name) > names:
            lines += textwrap.wrap(name, width, break_on_hyphens=False)
        first = name if len(name) <= names else ""
        line = f"{first:<{names}}  {cells[0]:<{shown}}  {cells[1]:>{readings}}  {cells[2]}"
        lines.append(line.rstrip())
    return "\n".join([*lines, *_warnings(records, width)])


def _only(words: set[str]) -> str:
    """Return the word that all rows share."""
    return next(iter(words)) if len(words) == 1 else "estimate"


def _row(record: RunRecord) -> tuple[str, str, str, str]:
    analysis = record.analysis()
    reason = record.decision.reason if record.decision else None
    ended = str(reason or "still running").replace("-", " ")
    if analysis is None or analysis.estimate is None:
        return record.name, "no number", "", ended
    shown = show_estimate(analysis.estimate, analysis.metric.unit)
    return record.name, shown, counted(analysis.n), ended


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
