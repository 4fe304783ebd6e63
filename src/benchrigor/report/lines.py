"""The lines of a report; see `benchrigor.model.text`."""

from benchrigor.model.text import WIDTH, marked, row

__all__ = ["WIDTH", "marked", "row"]
