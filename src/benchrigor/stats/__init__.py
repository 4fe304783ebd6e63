"""ARITHMETIC: pure functions, arrays in, model objects out; no clock, no disk, no global random."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "benchrigor.instrument.advice": "advise_batching partition_kernels",
        "benchrigor.interference.profiles": "composite_profile merge_processes quantise",
        "benchrigor.queues.pipelines": "find_bottleneck suggest_buffer suggest_replicas",
        "benchrigor.queues.rate_arithmetic": (
            "filter_ratio sum_rates unblocked_read_probability unblocked_write_probability"
            " utilisation_of"
        ),
        "benchrigor.workbench.planning.published_search": "plan_runlength",
        "changepoints.detector": "ChangeDetector detect_changes",
        "comparison.two_sample": "compare rank",
        "readings.mean_and_quantile": "estimate_invocations estimate_mean estimate_quantile",
        "multimodality": "observe",
        "shares_and_quantiles": "estimate_proportion",
        "statistic": "estimate_rate",
        "interference": ("estimate_interference light_of probability_high profile_interference"),
        "phases.stable_phase": "find_stable_phase trimmed",
        "series.interval": "required_readings",
        "series.subsessions": "autocorrelation merge_subsessions",
        "work_line": "fit_wps",
    },
)
__all__ = list(__dir__())
