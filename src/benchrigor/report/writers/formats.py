"""The formats of records for other tools, and how the name of a file selects one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from benchrigor.errors import InvalidInput
from benchrigor.model import Notice, RunRecord
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.notice import weakening
from benchrigor.model.text_tables import csv_text
from benchrigor.report.fact import by_sentence
from benchrigor.report.figures import Row, reading_rows
from benchrigor.report.writers.histories import Document, for_bencher, for_github, with_readings
from benchrigor.report.writers.pyperf_suite import for_pyperf
from benchrigor.session.pairs.compared_sides import refuse_errors

_SUFFIXES = {".csv": "csv", ".bmf.json": "bencher", ".json": "pyperf"}  # the first that fits


def for_tables(records: Sequence[RunRecord], metric: str | None) -> Document:
    """Return all readings of all records, one a line, with their benchmark in front."""
    known, remarks = with_readings(records)
    return Document(text=csv_text(_rows(known, metric)), size=len(known), remarks=remarks)


def _rows(records: Sequence[RunRecord], metric: str | None) -> Iterator[Row]:
    for place, record in enumerate(records):
        head, *rows = reading_rows(record)
        if place == 0:
            yield ("benchmark", *head)
        yield from ((record.name, *row) for row in rows if metric in (None, row[0]))


FORMATS: dict[str, Callable[[Sequence[RunRecord], str | None], Document]] = {
    "pyperf": for_pyperf,
    "csv": for_tables,
    "bencher": for_bencher,
    "github": for_github,
}


def format_of(name: str) -> str:
    """Return the format for the name of a file.

    >>> format_of("a.json"), format_of("a.json.gz"), format_of("a.CSV"), format_of("a.bmf.json")
    ('pyperf', 'pyperf', 'csv', 'bencher')
    """
    ending = PurePath(name.lower().removesuffix(".gz")).name
    for suffix, form in _SUFFIXES.items():
        if ending.endswith(suffix):
            return form
    endings, words = ", ".join(_SUFFIXES), ", ".join(FORMATS)
    raise InvalidInput(f"{name} names no format, expected {endings}, or --to and one of {words}")


def write_records(records: Sequence[RunRecord], to: str, metric: str | None = None) -> Document:
    """Return records as a file of a format; ``metric`` chooses one of several metrics.

    Raises
    ------
    InvalidInput
        When the format cannot hold one of them, or two have one name.
    NotEstimable
        When the format holds numbers, and no record has one.
    NotComparable
        When most runs of one failed, and the format cannot say so.
    """
    names = [record.name for record in records]
    double = [name for name, times in Counter(names).items() if times > 1]
    problems = [
        f"there are two benchmarks named {name!r}, expected each name once" for name in double
    ]
    for record in records:
        attempt(problems, record.analysis, metric)
    refuse(problems)
    if FORMATS[to] is not for_pyperf:  # its metadata keeps the warnings of a file
        cure = f", or convert to pyperf: {to} has no place for failures"
        refuse_errors(((record.name, record.session_notices) for record in records), cure)
    document = FORMATS[to](records, metric)
    told = ((notice.sentence, record.name) for record in records for notice in _told(record, to))
    return replace(document, remarks=(*by_sentence(told, len(records)), *document.remarks))


def _told(record: RunRecord, to: str) -> tuple[Notice, ...]:
    """Return the warnings of a run, and of its numbers where the format holds these."""
    has_numbers = FORMATS[to] in (for_bencher, for_github)
    return weakening(record.notices if has_numbers else record.session_notices)
