from benchrigor.instrument.advice import advise_batching as advise_batching
from benchrigor.instrument.advice import partition_kernels as partition_kernels
from benchrigor.interference.profiles import composite_profile as composite_profile
from benchrigor.interference.profiles import merge_processes as merge_processes
from benchrigor.interference.profiles import quantise as quantise
from benchrigor.queues.pipelines import find_bottleneck as find_bottleneck
from benchrigor.queues.pipelines import suggest_buffer as suggest_buffer
from benchrigor.queues.pipelines import suggest_replicas as suggest_replicas
from benchrigor.queues.rate_arithmetic import filter_ratio as filter_ratio
from benchrigor.queues.rate_arithmetic import sum_rates as sum_rates
from benchrigor.queues.rate_arithmetic import (
    unblocked_read_probability as unblocked_read_probability,
)
from benchrigor.queues.rate_arithmetic import (
    unblocked_write_probability as unblocked_write_probability,
)
from benchrigor.queues.rate_arithmetic import utilisation_of as utilisation_of
from benchrigor.stats.changepoints.detector import ChangeDetector as ChangeDetector
from benchrigor.stats.changepoints.detector import detect_changes as detect_changes
from benchrigor.stats.comparison.two_sample import compare as compare
from benchrigor.stats.comparison.two_sample import rank as rank
from benchrigor.stats.interference import estimate_interference as estimate_interference
from benchrigor.stats.interference import light_of as light_of
from benchrigor.stats.interference import probability_high as probability_high
from benchrigor.stats.interference import profile_interference as profile_interference
from benchrigor.stats.multimodality import observe as observe
from benchrigor.stats.phases.stable_phase import find_stable_phase as find_stable_phase
from benchrigor.stats.phases.stable_phase import trimmed as trimmed
from benchrigor.stats.readings.mean_and_quantile import estimate_invocations as estimate_invocations
from benchrigor.stats.readings.mean_and_quantile import estimate_mean as estimate_mean
from benchrigor.stats.readings.mean_and_quantile import estimate_quantile as estimate_quantile
from benchrigor.stats.series.interval import required_readings as required_readings
from benchrigor.stats.series.subsessions import autocorrelation as autocorrelation
from benchrigor.stats.series.subsessions import merge_subsessions as merge_subsessions
from benchrigor.stats.shares_and_quantiles import (
    estimate_proportion as estimate_proportion,
)
from benchrigor.stats.statistic import estimate_rate as estimate_rate
from benchrigor.stats.work_line import fit_wps as fit_wps
from benchrigor.workbench.planning.published_search import plan_runlength as plan_runlength
