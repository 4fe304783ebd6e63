"""ARITHMETIC: pure functions, arrays in, model objects out; no clock, no disk, no global random."""

from __future__ import annotations

from benchrigor.stats.adapters import RupturesDetector
from benchrigor.stats.allocation import (
    readings_per_invocation,
    required_invocations,
    split_variance,
)
from benchrigor.stats.changepoints import ChangeDetector, detect_changes
from benchrigor.stats.clusters import relative_clusters
from benchrigor.stats.comparison import compare
from benchrigor.stats.composites import composite_profile
from benchrigor.stats.families import compare_family, rank
from benchrigor.stats.finite_queues import md1k_blocking, mg1k_blocking, mg1k_waiting, mm1k_blocking
from benchrigor.stats.flows import sum_rates, utilisation_of
from benchrigor.stats.hierarchy import (
    combine_levels,
    estimate_invocations,
    rejected_notices,
)
from benchrigor.stats.intervals import estimate_level, required_readings
from benchrigor.stats.levels import fit_level
from benchrigor.stats.lights import light_of, probability_high
from benchrigor.stats.means import estimate_mean
from benchrigor.stats.merging import autocorrelation, merge_subsessions
from benchrigor.stats.modes import find_modes
from benchrigor.stats.phases import find_stable_phase
from benchrigor.stats.pipelines import advise_pipeline, find_bottleneck, stage_of
from benchrigor.stats.processes import merge_processes
from benchrigor.stats.proportions import estimate_proportion
from benchrigor.stats.quantiles import estimate_quantile
from benchrigor.stats.quantising import Quantiser, quantise
from benchrigor.stats.queueing import (
    mean_wait_s,
    mean_waiting,
    unblocked_read_probability,
    unblocked_write_probability,
)
from benchrigor.stats.rates import estimate_rate
from benchrigor.stats.regression import fit_wps
from benchrigor.stats.routing import filter_ratio, filter_ratio_of, visit_ratios
from benchrigor.stats.segments import estimate_interference, profile_interference
from benchrigor.stats.sizing import suggest_buffer, suggest_replicas
from benchrigor.stats.trackrecord import pair_runs, track_record, track_records
from benchrigor.stats.trimming import trimmed

__all__ = [
    "ChangeDetector",
    "Quantiser",
    "RupturesDetector",
    "advise_pipeline",
    "autocorrelation",
    "combine_levels",
    "compare",
    "compare_family",
    "composite_profile",
    "detect_changes",
    "estimate_interference",
    "estimate_invocations",
    "estimate_level",
    "estimate_mean",
    "estimate_proportion",
    "estimate_quantile",
    "estimate_rate",
    "filter_ratio",
    "filter_ratio_of",
    "find_bottleneck",
    "find_modes",
    "find_stable_phase",
    "fit_level",
    "fit_wps",
    "light_of",
    "md1k_blocking",
    "mean_wait_s",
    "mean_waiting",
    "merge_processes",
    "merge_subsessions",
    "mg1k_blocking",
    "mg1k_waiting",
    "mm1k_blocking",
    "pair_runs",
    "probability_high",
    "profile_interference",
    "quantise",
    "rank",
    "readings_per_invocation",
    "rejected_notices",
    "relative_clusters",
    "required_invocations",
    "required_readings",
    "split_variance",
    "stage_of",
    "suggest_buffer",
    "suggest_replicas",
    "sum_rates",
    "track_record",
    "track_records",
    "trimmed",
    "unblocked_read_probability",
    "unblocked_write_probability",
    "utilisation_of",
    "visit_ratios",
]
