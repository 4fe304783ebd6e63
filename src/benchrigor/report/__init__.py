"""Reading a record: a report for a terminal, a table of runs, why this number, its picture."""

from benchrigor.model.run_table import tabulate as tabulate
from benchrigor.report.explain import explain as explain
from benchrigor.report.interference_text import render_composite as render_composite
from benchrigor.report.interference_text import render_interference as render_interference
from benchrigor.report.node_text import node_notes as node_notes
from benchrigor.report.node_text import node_rows as node_rows
from benchrigor.report.plots.peak_plot import plot_peak as plot_peak
from benchrigor.report.plots.rate_plot import plot_rates as plot_rates
from benchrigor.report.plots.segment_plot import plot_interference as plot_interference
from benchrigor.report.plots.trace_plot import plot_phases as plot_phases
from benchrigor.report.plots.trace_plot import plot_trace as plot_trace
from benchrigor.report.plots.trace_plot import plot_work as plot_work
from benchrigor.report.probe_text import probe_table as probe_table
from benchrigor.report.probe_text import render_probes as render_probes
from benchrigor.report.rate_text import render_rates as render_rates
from benchrigor.report.short_page import comparison_page as comparison_page
from benchrigor.report.short_page import run_page as run_page
from benchrigor.report.text import render as render
