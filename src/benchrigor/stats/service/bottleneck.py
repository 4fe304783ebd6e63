"""A pipeline of stages: which of them limits it, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.pipeline import (
    Bottleneck,
    PipelineAdvice,
    PipelineStage,
    Quantity,
    StageAdvice,
    StageLoad,
)
from benchrigor.model.series import short
from benchrigor.model.service import ServiceProcess, ServiceRate
from benchrigor.model.text import show_estimate
from benchrigor.stats.comparison.fieller_mover import side_of
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.service.arguments import (
    joined_notices,
    mixed_confidences,
    no_quantity,
    refuse,
)
from benchrigor.stats.service.capacity import (
    assumed,
    no_process,
    no_share,
    suggest_buffer,
    suggest_replicas,
)
from benchrigor.stats.service.flows import MOVER, quotient
from benchrigor.stats.service.mg1k import MOST_VARIATION

__all__ = ["advise_pipeline", "find_bottleneck", "stage_of"]


def stage_of(
    name: str, found: ServiceRate, *, visits: Quantity = 1.0, replicas: int = 1
) -> PipelineStage:
    """Make a stage of the service rate that was measured for it.

    Parameters
    ----------
    name, visits, replicas
        As of `PipelineStage`; the rate is that of one replica.
    found
        Its moments tell what the service times look like; without them they are taken for
        exponential. A squared coefficient of variation above 100 is taken for 100, with a Notice.

    Raises
    ------
    InvalidInput
        When ``found`` is no service rate, or has no estimate.

    Examples
    --------
    >>> estimate = Estimate(value=100.0, low=95.0, high=105.0, confidence=0.95, n=40,
    ...                     n_effective=40.0, method="long-run-variance")
    >>> found = ServiceRate(estimate=estimate, converged=True, reason=None, method="busy-time",
    ...                     start_s=0.0, stop_s=2.0, periods=40, unblocked=8, used=40,
    ...                     period_s=0.05, items=160)
    >>> stage_of("hash", found).process
    <ServiceProcess.EXPONENTIAL: 'exponential'>
    """
    if not isinstance(found, ServiceRate):
        raise InvalidInput(f"found is {short(found)}, expected a ServiceRate")
    if found.estimate is None:
        raise InvalidInput(f"the service rate of {name!r} has no estimate: {found.reason}")
    moments = found.moments
    process = ServiceProcess.EXPONENTIAL if moments is None else moments.process
    variation = moments.variation if moments and process is ServiceProcess.OTHER else None
    told = [each for each in found.notices if each not in found.estimate.notices]
    if variation is not None and variation > MOST_VARIATION:
        told.append(_beyond_models(variation))
    return PipelineStage(
        name=name,
        rate=replace(found.estimate, notices=(*found.estimate.notices, *told)),
        visits=visits,
        replicas=replicas,
        process=process,
        variation=None if variation is None else min(variation, MOST_VARIATION),
    )


def find_bottleneck(
    stages: Iterable[PipelineStage], *, source_rate: Quantity | None = None
) -> Bottleneck:
    """Find the stage that limits a pipeline.

    Parameters
    ----------
    stages
        In order, each with a name of its own, all estimates with one confidence.
    source_rate
        Items per second that the source asks for, to tell how much of each stage is used; None
        where it is not known.

    Returns
    -------
    Bottleneck
        The stage of lowest capacity in items of the source, and as rivals those whose intervals
        do not lie above its own. Where there are none, it is the bottleneck at the confidence of
        the intervals, or better.

    Raises
    ------
    InvalidInput
        Naming every stage that is none, or does not fit.
    NotEstimable
        When the visits of a stage may be 0: their interval reaches it.

    Notes
    -----
    Capacity: replicas * rate / visits, by `stats.service.flows`. The lowest capacity is at
    least the lowest lower end; its upper end is the lowest of those that the bottleneck and its
    rivals have at a confidence that holds for all of them (Bonferroni). The value of the lowest
    of several near ones is low on average, within that interval.

    Examples
    --------
    >>> hash_stage = PipelineStage(name="hash", rate=1200.0)
    >>> stages = [hash_stage, PipelineStage(name="verify", rate=50.0, visits=0.01)]
    >>> print(find_bottleneck(stages))
    hash is the bottleneck: 1.200 k items/s [1.200, 1.200] 95%
    """
    checked = _checked(stages, source_rate)
    loads = tuple(_load(stage, source_rate) for stage in checked)
    lowest = min(loads, key=lambda load: load.capacity.value)
    near = [load for load in loads if load is lowest or load.capacity.low <= lowest.capacity.high]
    capacity = _least([load.capacity for load in near], lowest.capacity)
    rivals = tuple(load.stage.name for load in near if load is not lowest)
    return Bottleneck(
        stage=lowest.stage.name,
        rivals=rivals,
        capacity=capacity,
        loads=loads,
        notices=tuple(_contested(lowest, rivals)),
    )


def advise_pipeline(
    stages: Iterable[PipelineStage],
    *,
    source_rate: Quantity,
    utilisation: float = 0.8,
    blocked_share: float = 0.01,
) -> PipelineAdvice:
    """Suggest replicas and queue sizes for the stages of a pipeline, and say what limits it.

    Parameters
    ----------
    stages
        In order, each with a name of its own, all estimates with one confidence.
    source_rate
        Items per second that the source asks for.
    utilisation
        The most that is wanted of each replica, above 0 and below 1.
    blocked_share
        Share of arrivals that may find a queue full, in (0, 1).

    Returns
    -------
    PipelineAdvice
        Per stage its utilisation, the replicas by `suggest_replicas`, and by `suggest_buffer`
        the queue in front of each replica: with as many as suggested, and with as many as now.

    Raises
    ------
    InvalidInput
        Naming every stage that is none, or does not fit, and every other argument out of range.
    NotEstimable
        When the visits of a stage may be 0: their interval reaches it.

    Notes
    -----
    Each stage is looked at by itself, as if items reached it at random at the rate that the
    source asks for; what a slower stage before it holds up makes its load lighter. A first
    Notice says what else is assumed.

    Examples
    --------
    >>> hash_stage = PipelineStage(name="hash", rate=1200.0)
    >>> stages = [hash_stage, PipelineStage(name="verify", rate=15.0, visits=0.01)]
    >>> advice = advise_pipeline(stages, source_rate=1000.0)
    >>> print(advice)
    hash is the bottleneck: 1.200 k items/s [1.200, 1.200] 95%
    to serve 1 k items/s of the source, at most 80% used, 1% blocked:
    stage    used  replicas  room in each queue
    hash    83.3%     1 → 2  4
    verify  66.7%         1  8
    >>> print(advice.stages[1].buffer)
    room for 8 items: at most 1% blocked · utilisation 66.7%
    """
    refuse(
        no_quantity(source_rate, "source_rate"),
        no_share(utilisation, "utilisation"),
        no_share(blocked_share, "blocked_share"),
    )
    bottleneck = find_bottleneck(stages, source_rate=source_rate)
    found = tuple(
        _advice(load, source_rate, utilisation, blocked_share) for load in bottleneck.loads
    )
    return PipelineAdvice(
        source_rate=source_rate,
        bottleneck=bottleneck,
        stages=found,
        notices=(
            assumed(each.buffer.variation for each in found),
            *bottleneck.notices,
            *(notice for each in found for notice in _of_stage(each)),
        ),
    )


def _beyond_models(variation: float) -> Notice:
    return Notice.warning(
        Code.UNEVEN_SERVICE,
        f"Service times have {variation:,.0f} times the variance of exponential ones, sizes "
        f"are for {MOST_VARIATION:g} times: these are items of several kinds, or the machine "
        "stood still meanwhile. Measure each kind, or longer.",
        variation=variation,
    )


def _checked(stages: object, source_rate: object) -> list[PipelineStage]:
    """Return stages as a list; raise naming all that does not fit."""
    if isinstance(stages, str | bytes) or not isinstance(stages, Iterable):
        raise InvalidInput(f"stages is {short(stages)}, expected a sequence of PipelineStage")
    given = list(stages)
    if not given:
        raise InvalidInput("stages is empty, expected at least one PipelineStage")
    refuse(
        *(_misfits(stage, f"stages[{index}]") for index, stage in enumerate(given)),
        () if source_rate is None else no_quantity(source_rate, "source_rate"),
    )
    names = [stage.name for stage in given]
    quantities = [each for stage in given for each in (stage.rate, stage.visits)]
    refuse(
        tuple(
            f"stages[{index}].name is {name!r} as that of one before, expected each only once"
            for index, name in enumerate(names)
            if name in names[:index]
        ),
        mixed_confidences([*quantities, source_rate], "the rates and visits of stages"),  # type: ignore[list-item]
    )
    return given


def _misfits(stage: object, place: str) -> tuple[str, ...]:
    if not isinstance(stage, PipelineStage):
        return (f"{place} is {short(stage)}, expected a PipelineStage",)
    return tuple(f"{place}.{problem}" for problem in no_process(stage.process, stage.variation))


def _load(stage: PipelineStage, source_rate: Quantity | None) -> StageLoad:
    capacity = _times(_each(stage), stage.replicas)
    if source_rate is None:
        return StageLoad(stage=stage, capacity=capacity)
    try:
        used = quotient(source_rate, capacity, name=f"The capacity of {stage.name!r}")
    except NotEstimable:  # it may be 0, and what is suggested says so
        return StageLoad(stage=stage, capacity=capacity)
    return StageLoad(stage=stage, capacity=capacity, utilisation=used)


def _each(stage: PipelineStage) -> Estimate:
    """Return what one replica serves, in items of the source per second."""
    return quotient(stage.rate, stage.visits, name=f"The visits of {stage.name!r}")


def _times(estimate: Estimate, factor: int) -> Estimate:
    error = estimate.standard_error
    return replace(
        estimate,
        value=factor * estimate.value,
        low=factor * estimate.low,
        high=factor * estimate.high,
        standard_error=None if error is None else factor * error,
    )


def _least(near: Sequence[Estimate], lowest: Estimate) -> Estimate:
    """Estimate the least of several quantities, of which ``lowest`` has the least value."""
    if len(near) == 1:
        return lowest
    # Each may have come out too low: all of them hold at once with so much less doubt in each.
    confidence = 1.0 - (1.0 - lowest.confidence) / len(near)
    highs = []
    for each in near:
        side = side_of(each, symmetric=False)
        highs.append(side.value + student_t(side.degrees_of_freedom, confidence) * side.above)
    return replace(
        lowest,
        low=min(each.low for each in near),
        high=min(highs),
        method=f"{MOVER}, least of {len(near)}",
        notices=joined_notices(near),
    )


def _contested(lowest: StageLoad, rivals: Sequence[str]) -> Iterator[Notice]:
    if rivals:
        shown = show_estimate(lowest.capacity, "items/s")
        yield Notice.warning(
            Code.SEVERAL_BOTTLENECKS,
            f"The capacity of {lowest.stage.name}, {shown}, is not known to be below that of "
            f"{', '.join(rivals)}: measure longer to tell them apart, or widen all of them.",
            stage=lowest.stage.name,
            rivals=", ".join(rivals),
        )


def _advice(
    load: StageLoad, source_rate: Quantity, utilisation: float, blocked_share: float
) -> StageAdvice:
    stage = load.stage
    each = _each(stage)
    replicas = suggest_replicas(source_rate, each, utilisation=utilisation)
    sizes = [
        suggest_buffer(
            source_rate,
            each,
            process=stage.process,
            variation=stage.variation,
            replicas=count,
            blocked_share=blocked_share,
        )
        for count in (replicas.replicas or replicas.replicas_at_value, stage.replicas)
    ]
    return StageAdvice(load=load, replicas=replicas, buffer=sizes[0], buffer_now=sizes[1])


def _of_stage(advice: StageAdvice) -> Iterator[Notice]:
    """Pass on what must be known of a stage as it is now, with its name."""
    stage = advice.load.stage
    for notice in (*advice.buffer_now.notices, *joined_notices((stage.rate, stage.visits))):
        if notice.code is not Code.QUEUE_MODEL:
            yield replace(
                notice,
                sentence=f"{stage.name}: {notice.sentence}",
                evidence={**notice.evidence, "stage": stage.name},
            )
