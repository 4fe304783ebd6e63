"""ARITHMETIC: pure functions, arrays in, model objects out; no clock, no disk, no global random."""

from __future__ import annotations

from benchrigor.stats.changepoints.detector import ChangeDetector, detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector
from benchrigor.stats.comparison.multiple_testing import compare_family, rank
from benchrigor.stats.comparison.two_sample import compare
from benchrigor.stats.estimators.mean_and_quantile import (
    estimate_invocations,
    estimate_mean,
    estimate_quantile,
)
from benchrigor.stats.estimators.observation import observe
from benchrigor.stats.estimators.proportion import estimate_proportion
from benchrigor.stats.estimators.rate import estimate_rate
from benchrigor.stats.estimators.variance_components import readings_per_invocation
from benchrigor.stats.interference.binning import quantise
from benchrigor.stats.interference.composite import composite_profile
from benchrigor.stats.interference.one_run import estimate_interference, profile_interference
from benchrigor.stats.interference.process_merge import merge_processes
from benchrigor.stats.interference.traffic_light import light_of, probability_high
from benchrigor.stats.phases.stable_phase import find_stable_phase
from benchrigor.stats.phases.trimming import trimmed
from benchrigor.stats.planning.agreement import pair_runs, track_record, track_records
from benchrigor.stats.series.interval import estimate_level, required_readings
from benchrigor.stats.series.level import fit_level
from benchrigor.stats.series.subsessions import autocorrelation, merge_subsessions
from benchrigor.stats.service.bottleneck import advise_pipeline, find_bottleneck, stage_of
from benchrigor.stats.service.capacity import suggest_buffer, suggest_replicas
from benchrigor.stats.service.published_method import (
    unblocked_read_probability,
    unblocked_write_probability,
)
from benchrigor.stats.service.rate_arithmetic import filter_ratio, sum_rates, utilisation_of
from benchrigor.stats.wps.work_line import fit_wps

__all__ = [
    "ChangeDetector",
    "RupturesDetector",
    "advise_pipeline",
    "autocorrelation",
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
    "find_bottleneck",
    "find_stable_phase",
    "fit_level",
    "fit_wps",
    "light_of",
    "merge_processes",
    "merge_subsessions",
    "observe",
    "pair_runs",
    "probability_high",
    "profile_interference",
    "quantise",
    "rank",
    "readings_per_invocation",
    "required_readings",
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
]
