"""Reading a record: a report for a terminal, a table of runs, why this number, its picture."""

from benchrigor.lazy_names import lazy_names
from benchrigor.model.run_table import tabulate as tabulate
from benchrigor.report.explain import explain as explain
from benchrigor.report.plots.trace_plot import plot_phases as plot_phases
from benchrigor.report.plots.trace_plot import plot_trace as plot_trace
from benchrigor.report.plots.trace_plot import plot_work as plot_work
from benchrigor.report.short_page import comparison_page as comparison_page
from benchrigor.report.short_page import run_page as run_page
from benchrigor.report.text import render as render

__getattr__, _ = lazy_names(
    __name__,
    {
        "benchrigor.instrument.node_report": "node_notes node_rows",
        "benchrigor.instrument.probe_report": "probe_table render_probes",
        "benchrigor.interference.picture": "plot_interference",
        "benchrigor.interference.report": "render_composite render_interference",
        "benchrigor.queues.picture": "plot_rates",
        "benchrigor.queues.report": "render_rates",
        "benchrigor.workbench.picture": "plot_peak",
    },
)
