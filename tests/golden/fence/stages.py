"""Service rates of stages between queues, and what follows from them for a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchrigor.model import Estimate, PipelineStage
from benchrigor.queues import PeriodCalibrator, Recording, ServiceRateEstimator, rate_recording
from benchrigor.queues.data import ServiceProcess
from benchrigor.queues.fakes import StagePeriods
from benchrigor.queues.pipelines import advise_pipeline, stage_of
from benchrigor.stats import (
    filter_ratio,
    find_bottleneck,
    suggest_buffer,
    suggest_replicas,
    sum_rates,
    unblocked_read_probability,
    unblocked_write_probability,
    utilisation_of,
)
from benchrigor.testing import SyntheticStage
from fence.cases import case, register
from fence.plain import attempted
from fence.readings import ROOT

STAGE = ROOT / "examples" / "recorded_stage.csv"

WATCHED: dict[str, SyntheticStage] = {
    "steady": SyntheticStage(utilisation=0.7),
    "busy": SyntheticStage(utilisation=0.97, service="deterministic"),
    "idle": SyntheticStage(utilisation=0.1),
    "changing": SyntheticStage(utilisation=0.9, later=0.6),
    "heavy": SyntheticStage(utilisation=0.8, service="pareto", shape=1.8),
    "correlated": SyntheticStage(utilisation=0.8, service="lognormal", correlation=0.9),
    "disturbed": SyntheticStage(utilisation=0.9, stalled=0.002, stretched=0.1, missed=0.05),
}
WAYS: dict[str, dict[str, Any]] = {
    "busy_time": {},
    "busy_time_narrow": {"target": 0.005, "confidence": 0.99},
    "quantile": {"method": "quantile"},
    "quantile_as_published": {"method": "quantile", "guards": False, "period_s": 0.1},
}


def watched(stage: SyntheticStage) -> StagePeriods:
    """Return what was seen of a stage that serves 20,000 items."""
    return stage.watch(20_000, period_s=0.1, rng=np.random.default_rng(230))


def rates_of(stage: SyntheticStage, **options: Any) -> object:
    """Tell an estimator of all periods of a stage."""
    seen = watched(stage)
    estimator = ServiceRateEstimator(**options)
    estimator.tell_many(seen.items, seen.period_s, seen.blocked_s, seen.blocked_s > 0.0)
    return estimator.rates


for way, options in WAYS.items():
    register(
        f"service_rates_{way}",
        lambda options=options: {
            name: rates_of(stage, **options) for name, stage in WATCHED.items()
        },
    )


@case
def service_rates_of_several_servers() -> object:
    """Is told one by one of two servers, their processor time and their delay."""
    seen = watched(SyntheticStage(utilisation=0.8))
    estimator = ServiceRateEstimator(servers=2)
    for items, period_s, blocked_s in zip(
        seen.items.tolist(), seen.period_s.tolist(), seen.blocked_s.tolist(), strict=True
    ):
        busy_s = 2.0 * period_s - blocked_s
        estimator.tell(items, period_s, blocked_s, cpu_s=0.8 * busy_s, delay_s=0.1 * busy_s)
    return estimator.rates


@case
def service_rates_of_a_restless_stage() -> object:
    """Is told of a rate that goes up and down, of periods too few, and of unknown waiting."""
    rng = np.random.default_rng(231)
    found = {}
    for length in (40, 100):
        rates = np.where(np.arange(1000) // length % 2 == 0, 1000.0, 400.0)
        estimator = ServiceRateEstimator()
        waits = rng.random(1000) < 0.1
        estimator.tell_many(rng.poisson(0.1 * rates), 0.1, 0.0, waits)
        found[f"{length} periods"] = estimator.rates
    few = ServiceRateEstimator("quantile")
    few.tell_many(rng.poisson(3.0, 500), 0.1)
    apart = ServiceRateEstimator("quantile")
    apart.tell_many(rng.poisson(np.where(rng.random(500) < 0.5, 20.0, 100.0)), 0.1)
    return {**found, "few items": few.rates, "apart": apart.rates}


@case
def service_rates_of_nothing() -> object:
    """Is told of nothing, of waiting alone, of work without items, and of one period."""
    periods = {"waiting": (0, 0.1, 0.1), "without items": (0, 0.1, 0.0), "one": (30, 0.1, 0.02)}
    found: dict[str, object] = {"nothing": ServiceRateEstimator().rates}
    for name, period in periods.items():
        estimator = ServiceRateEstimator()
        for _ in range(1 if name == "one" else 50):
            estimator.tell(*period)
        found[name] = estimator.rates
    return found


def recorded(method: str) -> object:
    """Estimate the rates of a stage of a real program, from its recording."""
    with STAGE.open(encoding="utf-8") as lines:
        ends = rate_recording(Recording(lines, name=STAGE.name), method=method)
    return {each.name: each.rates for each in ends}


for method in ("busy-time", "quantile", "published"):
    register(f"recorded_stage_{method.replace('-', '_')}", lambda method=method: recorded(method))


@case
def recorded_ends_of_deltas() -> object:
    """Reads a recording of two ends, of which one tells flags instead of times."""
    rows = [
        f"{0.1},{end},{40 + (3 * number + place) % 5},{int(number % 4 == 0)}\n"
        for number in range(120)
        for place, end in enumerate(("parse", "write"))
    ]
    recording = Recording(["period_s,end,items,blocked\n", *rows], name="ends")
    return {each.name: each.rates for each in rate_recording(recording)}


@case
def calibrated_periods() -> object:
    """Tells of machines that oversleep, stages that wait, and one where nothing passes."""
    ways = {
        "oversleeping": (lambda s: (s + 60e-6, s > 0.02, 40), {"longest_s": 0.05}),
        "never waiting": (lambda s: (s, False, 5), {"longest_s": 0.2}),
        "always waiting": (lambda s: (s, True, 5), {"tries": 20}),
        "unstable": (lambda s: (1.1 * s, False, 5), {"tries": 20}),
        "nothing passes": (lambda s: (s, False, 0), {"tries": 20}),
        "busy time": (lambda s: (s + 60e-6, True, 5), {"unblocked": False}),
    }
    found = {}
    for name, (machine, options) in ways.items():
        search = PeriodCalibrator(**options)
        while (period_s := search.ask()) is not None:
            search.tell(*machine(period_s))
        found[name] = search.result
    return found


def rate(value: float, reach: float) -> Estimate:
    """Return a rate that was estimated."""
    return Estimate(
        value=value,
        low=value - reach,
        high=value + reach,
        confidence=0.95,
        n=20,
        n_effective=15.0,
        method="any",
        standard_error=reach / 2.1,
        degrees_of_freedom=19.0,
    )


@case
def advice_for_a_pipeline() -> object:
    stages = (
        PipelineStage(name="hash", rate=rate(1000.0, 50.0)),
        PipelineStage(name="verify", rate=rate(30.0, 2.0), visits=rate(0.02, 0.001), replicas=2),
        PipelineStage(name="reduce", rate=15.0, visits=0.01, process=ServiceProcess.DETERMINISTIC),
        PipelineStage(name="write", rate=900.0, process=ServiceProcess.OTHER, variation=3.0),
    )
    return {
        "bottleneck": find_bottleneck(stages),
        "of a source": find_bottleneck(stages, source_rate=rate(800.0, 10.0)),
        "advice": advise_pipeline(stages, source_rate=rate(800.0, 10.0)),
        "too much": advise_pipeline(stages, source_rate=2000.0, utilisation=0.7),
        "rivals": find_bottleneck(
            [PipelineStage(name=name, rate=rate(100.0, 9.0)) for name in ("one", "two")]
        ),
        "found": stage_of("watched", rates_of_one(), visits=rate(0.5, 0.01), replicas=3),
    }


def rates_of_one() -> Any:
    """Return the rate of a stage that was watched."""
    estimator = ServiceRateEstimator()
    seen = watched(WATCHED["steady"])
    estimator.tell_many(seen.items, seen.period_s, seen.blocked_s)
    return estimator.rates[-1]


@case
def sizes_of_buffers_and_replicas() -> object:
    arrival, service = rate(80.0, 3.0), rate(100.0, 4.0)
    buffers = [
        suggest_buffer(80.0, 100.0),
        suggest_buffer(arrival, service, process="deterministic"),
        suggest_buffer(arrival, service, process="other", variation=2.5, when_full="lose"),
        suggest_buffer(arrival, service, replicas=2, blocked_share=0.001),
        suggest_buffer(99.0, 100.0, blocked_share=1e-5),
        suggest_buffer(120.0, 100.0),
        suggest_buffer(99.9999, 100.0, blocked_share=1e-9),
    ]
    replicas = [
        suggest_replicas(arrival, service),
        suggest_replicas(900.0, service, utilisation=0.5),
    ]
    return {"buffers": buffers, "replicas": replicas}


@case
def flows_of_items() -> object:
    rng = np.random.default_rng(240)
    into = rng.integers(50, 70, 200)
    out = rng.binomial(into, 0.3)
    one, two = rate(300.0, 10.0), rate(100.0, 5.0)
    return {
        "sum": sum_rates([one, two, 50.0]),
        "utilisation": utilisation_of(two, one, servers=2),
        "ratio": filter_ratio(into, out),
        "no ratio": attempted(utilisation_of, one, rate(1.0, 2.0)),
    }


@case
def textbook_queues() -> object:
    return {
        "read": unblocked_read_probability(utilisation=0.9, service_rate=1e3, period_s=0.01),
        "write": unblocked_write_probability(
            utilisation=0.9, service_rate=1e3, period_s=0.01, capacity=64
        ),
    }
