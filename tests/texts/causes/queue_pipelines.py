"""Texts about the stages of a pipeline, and advice for them."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tests.simulations.simulated.estimates import estimated
from tests.texts.causes.queues import rate
from tests.texts.rendering import tried

from benchrigor.model import Code, Notice, PipelineStage
from benchrigor.queues.data import RateReason
from benchrigor.queues.pipelines import advise_pipeline, stage_of
from benchrigor.stats import (
    filter_ratio,
    find_bottleneck,
    suggest_buffer,
    suggest_replicas,
    sum_rates,
    unblocked_write_probability,
    utilisation_of,
)

NAN, SURE = math.nan, estimated(1.0, 0.9, 1.1)
UNSURE = replace(SURE, confidence=0.9)
FAST = PipelineStage(name="hash", rate=120.0)


ADVICE = advise_pipeline([FAST], source_rate=100.0)
ONE = ADVICE.stages[0]
LOAD = replace(ONE.load, capacity=estimated(120.0, 110.0, 130.0), utilisation=None)


def buffer(**given: Any) -> Any:
    known: dict[str, Any] = {
        "capacity": 34,
        "capacity_at_value": 13,
        "blocked_share": 0.01,
        "utilisation": 0.8,
        "worst_utilisation": 0.95,
    }
    return replace(ONE.buffer, **{**known, **given})


def replicas(worst: int | None, at_value: int) -> Any:
    return replace(ONE.replicas, replicas=worst, replicas_at_value=at_value)


def bottleneck(*rivals: str) -> Any:
    return replace(ADVICE.bottleneck, rivals=rivals, capacity=LOAD.capacity, loads=(LOAD,))


def advice(count: Any, *notices: Notice) -> Any:
    each = replace(ONE, load=LOAD, replicas=count, buffer=buffer(), buffer_now=buffer())
    return replace(ADVICE, bottleneck=bottleneck(), stages=(each,), notices=notices)


def said_of(stage: str, code: Code, case: str = "", **figures: Any) -> Notice:
    return replace(Notice.of(code, case, **figures).about(stage), evidence={"stage": stage})


def parts_of_advice() -> Iterator[str]:
    yield str(LOAD)
    yield str(replace(LOAD, utilisation=estimated(0.8, 0.7, 1.1)))
    yield from map(str, (bottleneck(), bottleneck("verify", "reduce")))
    for fields in (
        {},
        {"capacity": 1, "capacity_at_value": 1, "worst_utilisation": 0.8},
        {"capacity": None, "worst_utilisation": 1.06},
        {"capacity": None, "worst_utilisation": None},
        {
            "capacity": None,
            "capacity_at_value": None,
            "utilisation": 1.2,
            "worst_utilisation": 1.2,
        },
    ):
        yield str(buffer(**fields))
    yield from map(str, (replicas(1, 1), replicas(3, 2), replicas(None, 2)))
    yield str(advice(replicas(1, 1)).stages[0])


def assumptions() -> Iterator[Notice]:
    """Yield the texts about models, of saturation, and of stages by their names."""
    for size in (
        suggest_buffer(1.0, 2.0, process="deterministic", when_full="lose"),
        suggest_buffer(1.0, 2.0, process="other", variation=0.3),
        suggest_buffer(125.0, 100.0),
        suggest_buffer(100.0, 100.0),
        suggest_buffer(estimated(80.0, 70.0, 95.0), estimated(100.0, 90.0, 110.0)),
        suggest_buffer(80.0, estimated(100.0, -5.0, 205.0)),
        suggest_buffer(estimated(0.5, 0.4, 1.0 - 1e-9), 1.0, blocked_share=1e-7),
    ):
        yield from size.notices[:-1] or size.notices
    yield from suggest_replicas(100.0, estimated(50.0, 0.0, 100.0)).notices
    busy = PipelineStage(name="parse", rate=estimated(100.0, 95.0, 105.0), replicas=2)
    yield from advise_pipeline([busy], source_rate=600.0, processors=2).notices[1:]
    bare = rate(100.0, estimate=estimated(100.0, 95.0, 105.0))
    yield from stage_of("hash", bare).rate.notices  # type: ignore[union-attr]


def stages_together() -> Iterator[object]:
    sure = PipelineStage(name="a", rate=SURE)
    for stages in (
        [],
        None,
        "hash",
        [3.0],
        [sure, sure],
        [sure, PipelineStage(name="b", rate=UNSURE)],
        [PipelineStage(name="hash", rate=10.0, visits=estimated(0.1, -0.1, 0.3))],
    ):
        yield from tried(find_bottleneck, {"stages": stages})
    yield from tried(find_bottleneck, {"stages": [3.0, sure], "source_rate": "fast"})
    yield from tried(
        advise_pipeline,
        {"stages": [sure], "source_rate": UNSURE},
        {"stages": [sure], "source_rate": 0.0, "utilisation": 1.0, "blocked_share": 0.0},
        {"stages": [sure], "source_rate": 1.0, "processors": 0},
    )
    never = rate(1.0, estimate=None, converged=False, reason=RateReason.NEVER_BUSY)
    yield from tried(stage_of, ("hash", never), ("hash", 3.0))


CAUSES = {
    "parts of advice": parts_of_advice,
    "advice": lambda: (
        str(advice(count)) for count in (replicas(1, 1), replicas(3, 2), replicas(None, 2))
    ),
    "advice with warnings": lambda: str(
        advice(
            replicas(1, 1),
            said_of("hash", Code.QUEUE_MODEL, models="M/M/1", full_="it waits"),
            said_of("hash", Code.SATURATED, "unknown"),
            said_of("verify", Code.NOT_CONVERGED),
            said_of("reduce", Code.NOT_CONVERGED),
        )
    ),
    "assumptions and doubts": assumptions,
    "stages that there cannot be": lambda: tried(
        PipelineStage,
        *(
            {"name": "hash", "rate": 1.0, **wrong}
            for wrong in (
                {"name": 3},
                {"name": ""},
                {"rate": "x"},
                {"rate": NAN},
                {"rate": True},
                {"rate": estimated(0.0, -1.0, 1.0)},
                {"visits": -1},
                {"replicas": 0},
                {"replicas": 1.5},
                {"process": "odd"},
                {"process": "other"},
                {"process": "other", "variation": 101},
                {"variation": 0.5},
                {"name": 3, "rate": "x", "visits": -1, "replicas": None},
            )
        ),
    ),
    "stages that do not fit together": stages_together,
    "sizes for what there cannot be": lambda: [
        *tried(suggest_buffer, (NAN, 1.0), (-1.0, 1.0), ("80", 1.0), (1.0, 0.0), (SURE, UNSURE)),
        *tried(
            partial(suggest_buffer, 1.0, 2.0),
            {"process": "erlang"},
            {"process": None},
            {"process": "other"},
            {"process": "other", "variation": 1e3},
            {"variation": 0.5},
            {"replicas": 0},
            *({"blocked_share": wrong} for wrong in (0.0, 1.0, "1%")),
            {"when_full": "drop"},
        ),
        *tried(partial(suggest_replicas, 1.0, 2.0), {"utilisation": 1.0}, {"utilisation": NAN}),
        *tried(suggest_replicas, (1.0, -2.0), (None, 2.0), (SURE, UNSURE)),
    ],
    "rates that cannot be added": lambda: tried(
        sum_rates,
        *(
            (wrong,)
            for wrong in (
                [],
                3.0,
                "fast",
                [1.0, NAN],
                [1.0, "2"],
                [-1.0],
                [estimated(-5.0, -6.0, -4.0)],
                [SURE, UNSURE],
            )
        ),
    ),
    "rates without a utilisation": lambda: [
        *tried(utilisation_of, (NAN, 1.0), (-1.0, 1.0), ("1", 1.0), (1.0, 0.0), (SURE, UNSURE)),
        *tried(utilisation_of, (1.0, estimated(1.0, -0.96, 2.96))),
        *tried(partial(utilisation_of, 1.0, 1.0), {"servers": 0}, {"servers": 1.5}),
    ],
    "counts without a ratio": lambda: [
        *tried(
            filter_ratio,
            ([1, 2, -3], [1, 1, 1]),
            ([1, 2, 3], [1, -1, 1]),
            ([1, 2, 3], [1, NAN, 1]),
            ([1, 2], [1, 2, 3]),
            ("many", [1, 2]),
            ([1, 2], []),
            ([5, 5, 5], [0, 1, 0]),
            ([5], [0]),
        ),
        *tried(partial(filter_ratio, [1, 2], [1, 1]), {"confidence": 2.0}),
    ],
    "chances that are not known": lambda: tried(
        unblocked_write_probability,
        *(
            {"utilisation": 0.5, "service_rate": 10.0, "period_s": 1.0, "capacity": 20, **wrong}
            for wrong in (
                {"utilisation": NAN},
                {"utilisation": -0.1},
                {"utilisation": "high"},
                {"service_rate": 1e-200},
                {"service_rate": 10**400},
                {"period_s": math.inf},
                {"capacity": 0},
                {"capacity": 2.5},
                {"utilisation": -1.0, "service_rate": 0.0, "period_s": True, "capacity": True},
            )
        ),
    ),
}
