"""Reading a record: a report for a terminal, a table of runs, why this number, its picture."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchrigor.instrument.node_report": "node_notes node_rows",
        "benchrigor.instrument.probe_report": "probe_table render_probes",
        "benchrigor.interference.picture": "plot_interference",
        "benchrigor.interference.report": "render_composite render_interference",
        "benchrigor.queues.picture": "plot_rates",
        "benchrigor.queues.report": "render_rates",
        "benchrigor.workbench.picture": "plot_peak",
        "explanation": "explain",
        "plots.trace_plot": "plot_phases plot_trace plot_work",
        "run_table": "tabulate",
        "short_page": "comparison_page run_page",
        "text": "render",
    },
)
__all__ = list(__dir__())
