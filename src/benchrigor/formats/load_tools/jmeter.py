"""The CSV of JMeter (JTL): a row per sample, with its label and milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from benchrigor.formats.load_tools.tables import by_name
from benchrigor.model.recorded import Recorded
from benchrigor.model.text_tables.rows import named_rows, number_in

TOOL = "jmeter"
_COLUMNS = ("elapsed", "label", "success")


def is_text(text: str) -> bool:
    """Return whether the first line of a text names the columns of JMeter."""
    return set(_COLUMNS) <= set(text[:10_000].partition("\n")[0].strip().split(","))


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the samples by label."""
    requests = (
        (
            row["label"] or "no label",
            number_in(row["elapsed"], line, "elapsed"),
            "" if row["success"].strip().lower() == "true" else f"success {row['success']}",
        )
        for line, row in named_rows(text, place)
    )
    return by_name(requests, TOOL, seconds=1e-3, place=f"{place} elapsed of")
