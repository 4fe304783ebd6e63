from benchrigor.instrument.probe_report import render_probes as render_probes
from benchrigor.interference.report import plot_interference as plot_interference
from benchrigor.interference.report import render_interference as render_interference
from benchrigor.report.facts.run_facts import explain as explain
from benchrigor.report.facts.run_facts import render as render
from benchrigor.report.plots.run_plots import plot_trace as plot_trace
from benchrigor.report.plots.run_plots import plot_work as plot_work
