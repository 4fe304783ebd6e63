"""Reading a record: a report for a terminal, a table of runs, why this number, its picture."""

from __future__ import annotations

from benchrigor.report.explain import explain
from benchrigor.report.interference_text import render_composite, render_interference
from benchrigor.report.plots.rate_plot import plot_rates
from benchrigor.report.plots.segment_plot import plot_interference
from benchrigor.report.plots.trace_plot import plot_phases, plot_trace, plot_work
from benchrigor.report.rate_text import render_rates
from benchrigor.report.table import tabulate
from benchrigor.report.text import render

__all__ = [
    "explain",
    "plot_interference",
    "plot_phases",
    "plot_rates",
    "plot_trace",
    "plot_work",
    "render",
    "render_composite",
    "render_interference",
    "render_rates",
    "tabulate",
]
