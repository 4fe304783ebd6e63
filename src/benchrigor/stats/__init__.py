"""ARITHMETIC: pure functions, arrays in, model objects out; no clock, no disk, no global random."""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

TYPE_CHECKING = False  # type checkers take it for True; importing typing would cost 10 ms
if TYPE_CHECKING:
    from benchrigor.stats.advice import advise_batching as advise_batching
    from benchrigor.stats.advice import partition_kernels as partition_kernels
    from benchrigor.stats.changepoints.detector import ChangeDetector as ChangeDetector
    from benchrigor.stats.changepoints.detector import detect_changes as detect_changes
    from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector as RupturesDetector
    from benchrigor.stats.comparison.multiple_testing import compare_family as compare_family
    from benchrigor.stats.comparison.multiple_testing import rank as rank
    from benchrigor.stats.comparison.two_sample import compare as compare
    from benchrigor.stats.estimators.mean_and_quantile import (
        estimate_invocations as estimate_invocations,
    )
    from benchrigor.stats.estimators.mean_and_quantile import estimate_mean as estimate_mean
    from benchrigor.stats.estimators.mean_and_quantile import estimate_quantile as estimate_quantile
    from benchrigor.stats.estimators.observation import observe as observe
    from benchrigor.stats.estimators.proportion import estimate_proportion as estimate_proportion
    from benchrigor.stats.estimators.rate import estimate_rate as estimate_rate
    from benchrigor.stats.estimators.variance_components import (
        readings_per_invocation as readings_per_invocation,
    )
    from benchrigor.stats.interference.binning import quantise as quantise
    from benchrigor.stats.interference.composite import composite_profile as composite_profile
    from benchrigor.stats.interference.one_run import estimate_interference as estimate_interference
    from benchrigor.stats.interference.one_run import profile_interference as profile_interference
    from benchrigor.stats.interference.process_merge import merge_processes as merge_processes
    from benchrigor.stats.interference.traffic_light import light_of as light_of
    from benchrigor.stats.interference.traffic_light import probability_high as probability_high
    from benchrigor.stats.phases.stable_phase import find_stable_phase as find_stable_phase
    from benchrigor.stats.phases.trimming import trimmed as trimmed
    from benchrigor.stats.planning.agreement import pair_runs as pair_runs
    from benchrigor.stats.planning.agreement import track_record as track_record
    from benchrigor.stats.planning.agreement import track_records as track_records
    from benchrigor.stats.planning.run_length import plan_runlength as plan_runlength
    from benchrigor.stats.series.interval import estimate_level as estimate_level
    from benchrigor.stats.series.interval import required_readings as required_readings
    from benchrigor.stats.series.level import fit_level as fit_level
    from benchrigor.stats.series.subsessions import autocorrelation as autocorrelation
    from benchrigor.stats.series.subsessions import merge_subsessions as merge_subsessions
    from benchrigor.stats.service.bottleneck import advise_pipeline as advise_pipeline
    from benchrigor.stats.service.bottleneck import find_bottleneck as find_bottleneck
    from benchrigor.stats.service.bottleneck import stage_of as stage_of
    from benchrigor.stats.service.capacity import suggest_buffer as suggest_buffer
    from benchrigor.stats.service.capacity import suggest_replicas as suggest_replicas
    from benchrigor.stats.service.published_method import (
        unblocked_read_probability as unblocked_read_probability,
    )
    from benchrigor.stats.service.published_method import (
        unblocked_write_probability as unblocked_write_probability,
    )
    from benchrigor.stats.service.rate_arithmetic import filter_ratio as filter_ratio
    from benchrigor.stats.service.rate_arithmetic import sum_rates as sum_rates
    from benchrigor.stats.service.rate_arithmetic import utilisation_of as utilisation_of
    from benchrigor.stats.wps.work_line import fit_wps as fit_wps

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "advice": "advise_batching partition_kernels",
        "changepoints.detector": "ChangeDetector detect_changes",
        "changepoints.ruptures_adapter": "RupturesDetector",
        "comparison.multiple_testing": "compare_family rank",
        "comparison.two_sample": "compare",
        "estimators.mean_and_quantile": "estimate_invocations estimate_mean estimate_quantile",
        "estimators.observation": "observe",
        "estimators.proportion": "estimate_proportion",
        "estimators.rate": "estimate_rate",
        "estimators.variance_components": "readings_per_invocation",
        "interference.binning": "quantise",
        "interference.composite": "composite_profile",
        "interference.one_run": "estimate_interference profile_interference",
        "interference.process_merge": "merge_processes",
        "interference.traffic_light": "light_of probability_high",
        "phases.stable_phase": "find_stable_phase",
        "phases.trimming": "trimmed",
        "planning.agreement": "pair_runs track_record track_records",
        "planning.run_length": "plan_runlength",
        "series.interval": "estimate_level required_readings",
        "series.level": "fit_level",
        "series.subsessions": "autocorrelation merge_subsessions",
        "service.bottleneck": "advise_pipeline find_bottleneck stage_of",
        "service.capacity": "suggest_buffer suggest_replicas",
        "service.published_method": "unblocked_read_probability unblocked_write_probability",
        "service.rate_arithmetic": "filter_ratio sum_rates utilisation_of",
        "wps.work_line": "fit_wps",
    },
)
__all__ = list(__dir__())
