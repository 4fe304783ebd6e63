"""The CSV of JMeter (JTL): a row per sample, with its label and milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from benchrigor.formats.fields import A_TIME, begins_with, by_name, rows_in
from benchrigor.model.run import Recorded
from benchrigor.model.text_tables import Kinds, Labels

TOOL = "jmeter"
_COLUMNS = {"label", "elapsed", "success"}


def is_text(text: str) -> bool:
    """Return whether the first line of a text names the columns of JMeter."""
    return begins_with(text, _COLUMNS.issubset)


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the samples by label."""
    kinds: Kinds = {"label": Labels(), "elapsed": A_TIME, "success": Labels()}
    requests = (
        (label or "no label", time, "" if success.lower() == "true" else f"success {success}")
        for label, time, success in rows_in(text, place, kinds, knows=_COLUMNS.issubset)
    )
    return by_name(requests, TOOL, seconds=1e-3, place=f"{place} elapsed of")
