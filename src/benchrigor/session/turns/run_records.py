"""Runs that were measured in turn: a dict whose text is a ranked table."""

from __future__ import annotations

from benchrigor.model import RunRecord
from benchrigor.model.one_line import Reported
from benchrigor.model.run_line import show_number
from benchrigor.model.text import many


class RunRecords(Reported, dict[str, RunRecord]):
    """Records by name; ``print(records)`` ranks them, the best first.

    Runs that do not differ beyond chance share a place, as in `benchrigor compare`. Runs without
    an estimate have no place, and stand in the order given.
    """

    _page = "benchrigor.report.run_table:ranking_page"

    def _line(self) -> str:
        analyses = {name: run.analysis() for name, run in self.items()}
        shown = (
            f"{name} {'no number' if analysis is None else show_number(analysis, 'mean')}"
            for name, analysis in analyses.items()
        )
        return f"{many(len(self), 'run')}: {', '.join(shown)}" if self else "no runs"
