"""Reading a record: a report for a terminal, a table of runs, why this number, its picture."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchrigor.instrument.probe_report": "render_probes",
        "benchrigor.interference.report": "plot_interference render_interference",
        "facts.run_facts": "explain render",
        "plots.run_plots": "plot_trace plot_work",
    },
)
__all__ = list(__dir__())
