"""What people read about service rates."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tests.simulations.simulated.estimates import within
from tests.texts.causes.queues import rate
from tests.texts.rendering import tried

from benchrigor.model import Code, Notice
from benchrigor.queues import PeriodCalibrator, ServiceRateEstimator
from benchrigor.queues.data import RateReason, ServiceMoments, ServiceProcess, ServiceRate
from benchrigor.queues.report import facts_of_rates
from benchrigor.report.fact import Depth, page_of_facts
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


def shown(rates: Sequence[ServiceRate], depth: Depth = Depth.DETAILS, **options: Any) -> str:
    """Return the whole report on the rates of a stage, or its page."""
    return page_of_facts(facts_of_rates(rates, **options), depth)


def report_on(*cases: tuple[Any, ...], **options: Any) -> Iterator[str]:
    """Yield the reports on the rates of several stages."""
    for rates in cases:
        yield shown(rates, **options)


def processes() -> Iterator[str]:
    for process, variation in (
        (ServiceProcess.DETERMINISTIC, 0.01),
        (ServiceProcess.EXPONENTIAL, 1.1),
        (ServiceProcess.OTHER, 0.5),
        (ServiceProcess.OTHER, 4.0),
    ):
        for share in (0.0, None, 0.2):
            told = replace(BARE, moments=moments(process, variation), delay_share=share)
            yield from shown([told]).splitlines()[2:]
    slow = replace(BARE, moments=moments(ServiceProcess.EXPONENTIAL, 1.0, 1.0), delay_share=0.2)
    yield from shown([slow]).splitlines()[2:]


def notices_of_rates() -> Iterator[str]:
    lost = Notice.of(Code.NOT_CONVERGED)
    few = Notice.of(Code.SHORT_ROUNDS, rounds=9, limit_s_=0.1)
    one = replace(RATE, notices=(lost,))
    last = replace(one, estimate=replace(within(900.0), notices=(few,)))
    for depth in (Depth.DETAILS, Depth.PAGE):
        yield from shown([one, last], depth).splitlines()[-3:]


def estimating() -> Iterator[object]:
    est = ServiceRateEstimator()
    yield from tried(
        est.tell,
        *({"items": wrong, "period_s": 0.1} for wrong in (-1, "3", None, NAN, 10**400, 1e300)),
        *({"items": 1, "period_s": wrong} for wrong in (1e-320, 0.0, -1.0, math.inf, True)),
        *({"items": 1, "period_s": 0.1, "blocked_s": wrong} for wrong in (True, NAN, 0.2)),
        {"items": 1, "period_s": 0.1, "cpu_s": -1.0},
    )
    both = {"items": [1, 2], "period_s": 0.1}
    yield from tried(
        est.tell_many,
        *({**both, "items": wrong} for wrong in ([], [1, -2], [1, NAN], [1, 1e120], [[1], [2]])),
        *({**both, "period_s": wrong} for wrong in (True, [0.1, 0.1, 0.1], [0.1, 0.0])),
        *({**both, "blocked_s": wrong} for wrong in ([0.0, NAN], [0.0, 0.5])),
        *({**both, "cpu_s": wrong} for wrong in ([0.1, -1.0], [0.1, "a"], [NAN])),
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
            *({"period_s": wrong} for wrong in (0, -1, True, NAN)),
            *({"target": wrong} for wrong in (True, None, 0.0)),
        ),
        *tried(partial(ServiceRateEstimator, servers=0, target=0, confidence=1), ("mean", -1, 2)),
    ],
    "periods that there cannot be": estimating,
    "options of the search for a period": lambda: tried(
        PeriodCalibrator,
        *({"longest_s": wrong} for wrong in (1e-9, math.inf, None)),
        *({"tries": wrong} for wrong in ("9", 4)),
        {"longest_s": "x", "tries": 1.5},
    ),
    "impossible results of the search for a period": lambda: tried(
        PeriodCalibrator().tell,
        *((wrong,) for wrong in (0.0, NAN, "x", True, None)),
        *((0.1, False, wrong) for wrong in (-1, math.inf, "2", True)),
    ),
    "stages that cannot be simulated": lambda: tried(
        SyntheticStage,
        {"utilisation": 1.0},
        *(
            {"utilisation": 0.5, **wrong}
            for wrong in (
                {"service": "normal"},
                {"service": "pareto", "shape": 1.0},
                {"service": "lognormal", "shape": 0.0},
                {"correlation": 1.0},
            )
        ),
    ),
    "rates in a line": lambda: (
        str(case)
        for case in (
            replace(RATE, period_s=0.0333),
            WIDE,
            replace(WIDE, estimate=None, reason=RateReason.NEVER_BUSY, unblocked=0),
            replace(WIDE, reason=RateReason.FEW_ITEMS, start_s=12.3, stop_s=86_400.0),
        )
    ),
    "the rate of a stage": lambda: shown(
        [RATE], unit="lines", served_per_s=900.0, item_bytes=1024.0
    ),
    "unknown figures of a stage": lambda: report_on((), (BARE,), (replace(BARE, estimate=None),)),
    "a rate that has not converged": lambda: [
        *report_on((replace(BARE),)),
        *(text for target in (0.05, 0.2) for text in report_on((WIDE,), target=target)),
        *report_on((replace(WIDE, estimate=None),), served_per_s=0.0),
    ],
    "why a rate has not converged": lambda: report_on(
        *((replace(SPARE, reason=reason),) for reason in RateReason)
    ),
    "what service times look like": processes,
    "a stage in full use": lambda: [
        text.splitlines()[3:]
        for served in (1200.0, 1230.0)
        for text in report_on((BARE,), served_per_s=served)
    ],
    "phases": lambda: shown([RATE, replace(WIDE, start_s=11.0, stop_s=12.3), LATE]),
    "many phases": lambda: shown(
        [replace(BARE, start_s=k * 10.0, stop_s=k * 10.0 + 10.0) for k in range(30)],
        unit="requests of customers of all kinds",
    ),
    "a phase that was found again": lambda: shown(
        [
            AGAIN,
            replace(AGAIN, start_s=12.3, stop_s=24.6),
            replace(AGAIN, estimate=within(600.0), start_s=24.6, stop_s=36.9),
        ]
    ),
    "phases without a number": lambda: report_on(
        (replace(WIDE, estimate=None, reason=RateReason.NEVER_BUSY), BARE),
        (replace(BARE, estimate=None), replace(BARE, estimate=None)),
    ),
    "notices about rates": notices_of_rates,
}
