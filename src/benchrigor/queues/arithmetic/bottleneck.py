"""A pipeline of stages: its bottleneck, and advice about replicas and queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import (
    listed,
    refuse,
    wrong_confidences,
    wrong_kinds,
    wrong_quantity,
    wrong_share,
    wrong_whole,
)
from benchrigor.model.estimate import Quantity
from benchrigor.model.series import short
from benchrigor.model.text import show_estimate
from benchrigor.queues.arithmetic.capacity import model_notice, suggest_buffer, suggest_replicas
from benchrigor.queues.arithmetic.periods import FEWEST_COUNTS
from benchrigor.queues.arithmetic.rate_arithmetic import MOVER, joined_notices, quotient, rounded_up
from benchrigor.queues.arithmetic.service_rate import DISTURBED
from benchrigor.queues.data.pipeline import (
    MOST_VARIATION,
    Bottleneck,
    PipelineAdvice,
    PipelineStage,
    StageAdvice,
    StageLoad,
)
from benchrigor.queues.data.service import ServiceProcess, ServiceRate
from benchrigor.stats.comparison.fieller_mover import uncertain_value
from benchrigor.stats.series.interval import scale, student_t

_MOST_REPLICAS = 1_000  # on one processor


def stage_of(
    name: str, rate: ServiceRate, *, visits: Quantity = 1.0, replicas: int = 1
) -> PipelineStage:
    """Make a stage of a pipeline from the service rate that was measured for it.

    Parameters
    ----------
    name, visits, replicas
        As of `PipelineStage`.
    rate
        Service rate of one replica. Its moments give the process; without them service is taken
        for exponential, with a Notice. A variation above 100 counts as 100, with a Notice. Its
        processor time gives the processors that it keeps busy. That number is 1 if the processor
        time or the delay is unknown, or if it waited for a processor for more than 5% of its busy
        time.

    Raises
    ------
    InvalidInput
        When ``rate`` is not a service rate, or has no estimate.

    Examples
    --------
    >>> estimate = Estimate(value=100.0, low=95.0, high=105.0, confidence=0.95, n=40,
    ...                     n_effective=40.0, method="long-run-variance")
    >>> rate = ServiceRate(estimate=estimate, converged=True, reason=None, method="busy-time",
    ...                    start_s=0.0, stop_s=2.0, periods=40, unblocked=8, used=40,
    ...                    period_s=0.05, items=160)
    >>> stage_of("hash", rate).process
    <ServiceProcess.EXPONENTIAL: 'exponential'>
    """
    if not isinstance(rate, ServiceRate):
        raise InvalidInput(f"rate is {short(rate)}, expected a ServiceRate")
    if rate.estimate is None:
        raise InvalidInput(f"the service rate of {name!r} has no estimate: {rate.reason}")
    moments, variation = rate.moments, None
    process = ServiceProcess.EXPONENTIAL if moments is None else moments.process
    processors = 1.0
    undisturbed = rate.delay_share is not None and rate.delay_share <= DISTURBED
    if rate.cpu_rate is not None and rate.cpu_rate.value > 0.0 and undisturbed:
        processors = rate.estimate.value / rate.cpu_rate.value
    notices = list(rate.estimate.notices)
    notices += [notice for notice in rate.notices if notice not in notices]
    if moments is None:
        notices.append(Notice.of(Code.EXPONENTIAL_ASSUMED, stage=name, fewest_=FEWEST_COUNTS))
    elif process is ServiceProcess.OTHER:
        variation = min(moments.variation, MOST_VARIATION)
        if variation < moments.variation:
            seen = {"variation": moments.variation, "most_": MOST_VARIATION}
            notices.append(Notice.of(Code.UNEVEN_SERVICE, "beyond", **seen))
    return PipelineStage(
        name=name,
        rate=replace(rate.estimate, notices=tuple(notices)),
        visits=visits,
        replicas=replicas,
        process=process,
        variation=variation,
        processors=processors,
    )


def find_bottleneck(
    stages: Iterable[PipelineStage], *, source_rate: Quantity | None = None
) -> Bottleneck:
    """Find the stage that limits a pipeline.

    Parameters
    ----------
    stages
        In order, with different names; all estimates with one confidence.
    source_rate
        Items per second that the source asks for, for the utilisation of the stages.

    Returns
    -------
    Bottleneck
        The stage of lowest capacity, in items of the source. Its rivals are the stages whose
        intervals do not lie above its own. Without rivals it is the bottleneck at the confidence
        of the intervals, or better.

    Raises
    ------
    InvalidInput
        Naming everything that is not a stage, or does not fit.
    NotEstimable
        When the interval of the visits of a stage reaches 0.

    Notes
    -----
    Capacity: replicas * rate / visits, with the interval of a ratio (MOVER). The interval of the
    pipeline's capacity reaches from the lowest lower end to the lowest upper end among the
    bottleneck and its rivals; the upper ends hold for all of them at once (Bonferroni). Among
    several similar stages the lowest value is too low on average, within that interval.

    Examples
    --------
    >>> hash_stage = PipelineStage(name="hash", rate=1200.0)
    >>> stages = [hash_stage, PipelineStage(name="verify", rate=50.0, visits=0.01)]
    >>> print(find_bottleneck(stages))
    hash is the bottleneck: 1.2 k items/s [1.2, 1.2] 95%
    """
    loads = tuple(_load(stage, source_rate) for stage in _check(stages, source_rate))
    lowest = min(loads, key=lambda load: load.capacity.value)
    near = [load for load in loads if load is lowest or load.capacity.low <= lowest.capacity.high]
    rivals = tuple(load.stage.name for load in near if load is not lowest)
    shown = show_estimate(lowest.capacity, "items/s")
    figures = {"capacity_": shown, "stage": lowest.stage.name, "rivals": ", ".join(rivals)}
    several = (Notice.of(Code.SEVERAL_BOTTLENECKS, **figures),)
    return Bottleneck(
        stage=lowest.stage.name,
        rivals=rivals,
        capacity=_least([load.capacity for load in near], lowest.capacity),
        loads=loads,
        notices=several if rivals else (),
    )


def advise_pipeline(
    stages: Iterable[PipelineStage],
    *,
    source_rate: Quantity,
    utilisation: float = 0.8,
    blocked_share: float = 0.01,
    processors: int | None = None,
) -> PipelineAdvice:
    """Find the bottleneck of a pipeline, and suggest replicas and queue sizes for its stages.

    The sizes of a stage assume that items arrive at random at the rate of the source. A slower
    stage in front of it would lighten its load. The first Notice lists the other assumptions.

    Parameters
    ----------
    stages
        In order, with different names; all estimates with one confidence.
    source_rate
        Items per second that the source asks for.
    utilisation
        Highest utilisation of a replica, in (0, 1).
    blocked_share
        Share of arrivals that may find a queue full, in (0, 1).
    processors
        Number of processors for the pipeline; None if unknown. They limit the replicas of a
        stage, since the others need some as well, but never below its present number. A Notice
        names the stages that the processors limit.

    Returns
    -------
    PipelineAdvice
        Per stage its utilisation, the replicas by `suggest_replicas`, and the queue in front of a
        replica by `suggest_buffer`: with the suggested replicas, and with the present ones.

    Raises
    ------
    InvalidInput
        Naming everything that is not a stage, or does not fit, and every argument out of range.
    NotEstimable
        When the interval of the visits of a stage reaches 0.

    Examples
    --------
    >>> hash_stage = PipelineStage(name="hash", rate=1200.0)
    >>> stages = [hash_stage, PipelineStage(name="verify", rate=15.0, visits=0.01)]
    >>> advice = advise_pipeline(stages, source_rate=1000.0)
    >>> print(advice)
    hash is the bottleneck: 1.2 k items/s [1.2, 1.2] 95%
    to serve 1 k items/s of the source, at most 80% used, 1% blocked:
    stage    used  replicas  room in each queue
    hash    83.3%     1 → 2  4
    verify  66.7%         1  8
    """
    refuse(
        wrong_quantity("source_rate", source_rate),
        wrong_share("utilisation", utilisation),
        wrong_share("blocked_share", blocked_share),
        [] if processors is None else wrong_whole("processors", processors),
    )
    bottleneck = find_bottleneck(stages, source_rate=source_rate)
    most = _most_replicas(bottleneck.loads, source_rate, processors)
    advice = tuple(
        _advice(load, source_rate, utilisation, blocked_share, limit)
        for load, limit in zip(bottleneck.loads, most, strict=True)
    )
    return PipelineAdvice(
        source_rate=source_rate,
        bottleneck=bottleneck,
        stages=advice,
        notices=(
            model_notice(stage.buffer.variation for stage in advice),
            *bottleneck.notices,
            *(notice for stage in advice for notice in _of_stage(stage)),
        ),
    )


def _check(stages: object, source_rate: Quantity | None) -> list[PipelineStage]:
    """Return stages as a list; InvalidInput naming all problems."""
    given = listed(stages, "stages", "PipelineStage")
    refuse(
        wrong_kinds(given, "stages", PipelineStage),
        [] if source_rate is None else wrong_quantity("source_rate", source_rate),
    )
    names = [stage.name for stage in given]
    rates: list[Quantity] = [] if source_rate is None else [source_rate]
    for stage in given:
        rates += [stage.rate, stage.visits]
    refuse(
        [
            f"stages[{index}].name is {name!r} like an earlier one, expected another name"
            for index, name in enumerate(names)
            if name in names[:index]
        ],
        wrong_confidences("the rates and visits of stages", rates),
    )
    return given


def _load(stage: PipelineStage, source_rate: Quantity | None) -> StageLoad:
    capacity = scale(_replica_capacity(stage), stage.replicas)
    used = None
    if source_rate is not None:
        with suppress(NotEstimable):  # the capacity may be 0, as the suggested size says
            used = quotient(source_rate, capacity, name=f"the capacity of {stage.name!r}")
    return StageLoad(stage=stage, capacity=capacity, utilisation=used)


def _replica_capacity(stage: PipelineStage) -> Estimate:
    """Return the capacity of one replica, in items of the source per second."""
    return quotient(stage.rate, stage.visits, name=f"the visits of {stage.name!r}")


def _least(near: Sequence[Estimate], lowest: Estimate) -> Estimate:
    """Estimate the least of several quantities; ``lowest`` has the least value."""
    if len(near) == 1:
        return lowest
    # Bonferroni: all upper ends hold at once.
    confidence = 1.0 - (1.0 - lowest.confidence) / len(near)
    highs = []
    for capacity in near:
        side = uncertain_value(capacity, symmetric=False)
        highs.append(side.value + student_t(side.degrees_of_freedom, confidence) * side.above)
    return replace(
        lowest,
        low=min(capacity.low for capacity in near),
        high=min(highs),
        method=f"{MOVER}, least of {len(near)}",
        notices=joined_notices(near),
    )


def _most_replicas(
    loads: Sequence[StageLoad], source_rate: Quantity, processors: int | None
) -> list[int | None]:
    """Return how many replicas of a stage the processors can run next to the other stages."""
    if processors is None:
        return [None] * len(loads)
    source = source_rate.value if isinstance(source_rate, Estimate) else source_rate
    taken = [
        min(source / load.capacity.value, 1.0) * load.stage.replicas * load.stage.processors
        if load.capacity.value > 0.0
        else 0.0
        for load in loads
    ]
    most: list[int | None] = []
    for load, own in zip(loads, taken, strict=True):
        left = max(processors - (sum(taken) - own), 0.0)
        fit = rounded_up(left / max(load.stage.processors, 1.0 / _MOST_REPLICAS))
        most.append(max(fit, load.stage.replicas))
    return most


def _advice(
    load: StageLoad,
    source_rate: Quantity,
    utilisation: float,
    blocked_share: float,
    most: int | None,
) -> StageAdvice:
    stage = load.stage
    capacity = _replica_capacity(stage)
    replicas = suggest_replicas(source_rate, capacity, utilisation=utilisation, most=most)
    suggested, now = (
        suggest_buffer(
            source_rate,
            capacity,
            process=stage.process,
            variation=stage.variation,
            replicas=count,
            blocked_share=blocked_share,
        )
        for count in (replicas.replicas or replicas.replicas_at_value, stage.replicas)
    )
    return StageAdvice(load=load, replicas=replicas, buffer=suggested, buffer_now=now)


def _of_stage(advice: StageAdvice) -> Iterator[Notice]:
    """Yield the notices about a stage as it is now, with its name."""
    stage = advice.load.stage
    limits = [limit for limit in advice.replicas.notices if limit.code is Code.PROCESSORS_LIMIT]
    of_rates = joined_notices((stage.rate, stage.visits))
    for notice in (*limits, *advice.buffer_now.notices, *of_rates):
        if notice.code is not Code.QUEUE_MODEL:
            yield replace(
                notice,
                sentence=notice.about(stage.name).sentence,
                evidence={**notice.evidence, "stage": stage.name},
            )
