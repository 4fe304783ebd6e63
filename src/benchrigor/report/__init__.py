"""Reading a record: the report for a terminal, a table of runs, why a number is what it is."""

from __future__ import annotations

from benchrigor.report.explain import explain
from benchrigor.report.table import tabulate
from benchrigor.report.text import render

__all__ = ["explain", "render", "tabulate"]
