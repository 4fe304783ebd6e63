"""What people read about service rates."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tests.simulations.simulated.estimates import within
from tests.texts.causes.queues import rate
from tests.texts.rendering import tried

from benchrigor.model import Code, Notice
from benchrigor.queues import PeriodCalibrator, ServiceRateEstimator
from benchrigor.queues.data import RateReason, ServiceMoments, ServiceProcess
from benchrigor.queues.report import render_rates
from benchrigor.testing import SyntheticStage

NAN = math.nan


def moments(process: str, variation: float, mean_s: float = 810e-6) -> ServiceMoments:
    return ServiceMoments(
        n=246,
        mean_s=mean_s,
        variance_s2=variation * mean_s**2,
        third_s3=0.0,
        process=ServiceProcess(process),
    )


RATE = rate(
    1234.0,
    estimate=within(1234.0),
    stop_s=12.3,
    periods=246,
    unblocked=30,
    used=246,
    items=11_070,
    cpu_rate=within(1300.0),
    delay_share=0.041,
    moments=moments(ServiceProcess.EXPONENTIAL, 0.98),
)
BARE = replace(RATE, cpu_rate=None, delay_share=None, moments=None)
WIDE = replace(RATE, estimate=within(1234.0, 0.1), converged=False, reason=RateReason.NOT_CONVERGED)
SPARE = replace(BARE, method="quantile", converged=False)
LATE = replace(RATE, estimate=within(640.0), start_s=12.3, stop_s=240.0)
AGAIN = replace(RATE, method="quantile")


def rendered(*cases: tuple[Any, ...], **options: Any) -> Iterator[str]:
    """Yield the reports on the rates of several stages."""
    for each in cases:
        yield render_rates(each, **options)


def processes() -> Iterator[str]:
    for process, variation in (
        (ServiceProcess.DETERMINISTIC, 0.01),
        (ServiceProcess.EXPONENTIAL, 1.1),
        (ServiceProcess.OTHER, 0.5),
        (ServiceProcess.OTHER, 4.0),
    ):
        for share in (0.0, None, 0.2):
            told = replace(BARE, moments=moments(process, variation), delay_share=share)
            yield from render_rates([told]).splitlines()[2:]
    slow = replace(BARE, moments=moments(ServiceProcess.EXPONENTIAL, 1.0, 1.0), delay_share=0.2)
    yield from render_rates([slow]).splitlines()[2:]


def noticed() -> Iterator[str]:
    lost = Notice.of(Code.NOT_CONVERGED)
    few = Notice.of(Code.SHORT_ROUNDS, rounds=9, limit_s_=0.1)
    one = replace(RATE, notices=(lost,))
    last = replace(one, estimate=replace(within(900.0), notices=(few,)))
    for whole in (True, False):
        yield from render_rates([one, last], whole=whole).splitlines()[-3:]


def estimating() -> Iterator[object]:
    est = ServiceRateEstimator()
    yield from tried(
        est.tell,
        *({"items": each, "period_s": 0.1} for each in (-1, "3", None, NAN, 10**400, 1e300)),
        *({"items": 1, "period_s": each} for each in (1e-320, 0.0, -1.0, math.inf, True)),
        *({"items": 1, "period_s": 0.1, "blocked_s": each} for each in (True, NAN, 0.2)),
        {"items": 1, "period_s": 0.1, "cpu_s": -1.0},
    )
    both = {"items": [1, 2], "period_s": 0.1}
    yield from tried(
        est.tell_many,
        *({**both, "items": each} for each in ([], [1, -2], [1, NAN], [1, 1e120], [[1], [2]])),
        *({**both, "period_s": each} for each in (True, [0.1, 0.1, 0.1], [0.1, 0.0])),
        *({**both, "blocked_s": each} for each in ([0.0, NAN], [0.0, 0.5])),
        *({**both, "cpu_s": each} for each in ([0.1, -1.0], [0.1, "a"], [NAN])),
        {**both, "delay_s": "ab"},
    )
    yield len(est.rates)
    servers = ServiceRateEstimator(servers=2)
    yield from tried(servers.tell, {"items": 1, "period_s": 0.1, "blocked_s": 0.3})


CAUSES = {
    "options of an estimator": lambda: [
        *tried(
            ServiceRateEstimator,
            {"guards": "no"},
            *({"period_s": each} for each in (0, -1, True, NAN)),
            *({"target": each} for each in (True, None, 0.0)),
        ),
        *tried(partial(ServiceRateEstimator, servers=0, target=0, confidence=1), ("mean", -1, 2)),
    ],
    "periods that there cannot be": estimating,
    "options of the search for a period": lambda: tried(
        PeriodCalibrator,
        *({"longest_s": each} for each in (1e-9, math.inf, None)),
        *({"tries": each} for each in ("9", 4)),
        {"longest_s": "x", "tries": 1.5},
    ),
    "impossible results of the search for a period": lambda: tried(
        PeriodCalibrator().tell,
        *((each,) for each in (0.0, NAN, "x", True, None)),
        *((0.1, False, each) for each in (-1, math.inf, "2", True)),
    ),
    "stages that cannot be simulated": lambda: tried(
        SyntheticStage,
        {"utilisation": 1.0},
        *(
            {"utilisation": 0.5, **each}
            for each in (
                {"service": "normal"},
                {"service": "pareto", "shape": 1.0},
                {"service": "lognormal", "shape": 0.0},
                {"correlation": 1.0},
            )
        ),
    ),
    "rates in a line": lambda: (
        str(each)
        for each in (
            replace(RATE, period_s=0.0333),
            WIDE,
            replace(WIDE, estimate=None, reason=RateReason.NEVER_BUSY, unblocked=0),
            replace(WIDE, reason=RateReason.FEW_ITEMS, start_s=12.3, stop_s=86_400.0),
        )
    ),
    "the rate of a stage": lambda: render_rates(
        [RATE], name="parse", unit="lines", served_per_s=900.0, item_bytes=1024.0
    ),
    "unknown figures of a stage": lambda: rendered((), (BARE,), (replace(BARE, estimate=None),)),
    "a rate that has not converged": lambda: [
        *rendered((replace(BARE),)),
        *(text for target in (0.05, 0.2) for text in rendered((WIDE,), target=target)),
        *rendered((replace(WIDE, estimate=None),), served_per_s=0.0),
    ],
    "why a rate has not converged": lambda: rendered(
        *((replace(SPARE, reason=each),) for each in RateReason)
    ),
    "what service times look like": processes,
    "a stage in full use": lambda: [
        text.splitlines()[3:]
        for served in (1200.0, 1230.0)
        for text in rendered((BARE,), served_per_s=served)
    ],
    "phases": lambda: render_rates([RATE, replace(WIDE, start_s=11.0, stop_s=12.3), LATE]),
    "many phases": lambda: render_rates(
        [replace(BARE, start_s=k * 10.0, stop_s=k * 10.0 + 10.0) for k in range(30)],
        unit="requests of customers of all kinds",
    ),
    "a phase that was found again": lambda: render_rates(
        [
            AGAIN,
            replace(AGAIN, start_s=12.3, stop_s=24.6),
            replace(AGAIN, estimate=within(600.0), start_s=24.6, stop_s=36.9),
        ]
    ),
    "phases without a number": lambda: rendered(
        (replace(WIDE, estimate=None, reason=RateReason.NEVER_BUSY), BARE),
        (replace(BARE, estimate=None), replace(BARE, estimate=None)),
    ),
    "notices about rates": noticed,
}
