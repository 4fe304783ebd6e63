"""The CSV of JMeter (JTL): a row per sample, with its label and milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from benchrigor.formats.load_tools.tables import by_name, number, rows_in
from benchrigor.model.recorded import Recorded

TOOL = "jmeter"
_COLUMNS = ("elapsed", "label", "success")


def is_text(text: str) -> bool:
    """Return whether the first line of a text names the columns of JMeter."""
    return set(_COLUMNS) <= set(text[:10_000].partition("\n")[0].strip().split(","))


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the samples by label."""
    (_, header), *rows = rows_in(text, place)
    elapsed, label, success = map(header.index, _COLUMNS)
    requests = (
        (
            row[label] or "no label",
            number(row[elapsed], "elapsed", line, place),
            "" if row[success].strip().lower() == "true" else f"success {row[success]}",
        )
        for line, row in rows
    )
    return by_name(requests, TOOL, seconds=1e-3, place=f"{place} elapsed of")
