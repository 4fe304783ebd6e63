"""A pipeline of stages: its bottleneck, the replicas of its stages, and the room in its queues.

Queues that can be full: M/G/1/K with gamma service times, among them M/D/1/K and M/M/1/K.

Items arrive one by one at random (Poisson), one server serves them, and the system holds at most K
of them, including the one in service. In the textbook an item that finds it full is lost. In a
pipeline the sender waits with the item and brings no other meanwhile. The waiting item takes one
more place, and arrivals that do not happen are like arrivals that are lost.

The chances that a departure leaves 0, 1, 2 ... items with K places are proportional to the chances
without a limit. So one pass over these answers for all K. They fall geometrically in the end, and
the pass stops there.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

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
from benchrigor.model.estimate import Quantity, ends
from benchrigor.model.series import Floats, short
from benchrigor.model.text import show_estimate
from benchrigor.queues.data import (
    MOST_VARIATION,
    Bottleneck,
    BufferSize,
    PipelineAdvice,
    PipelineStage,
    ReplicaCount,
    ServiceProcess,
    ServiceRate,
    StageAdvice,
    StageLoad,
    wrong_process,
)
from benchrigor.queues.periods import DISTURBED, FEWEST_COUNTS
from benchrigor.queues.rate_arithmetic import MOVER, joined_notices, quotient, rounded_up
from benchrigor.stats.comparison.fieller_mover import uncertain_value
from benchrigor.stats.series.interval import scale, student_t
from benchrigor.units import percent

MOST_PLACES = 1_000_000

_LEAST_LOAD = 1e-150
_NO_VARIATION = 1e-9  # less variation than this counts as none
# Maximum number of chances worked out one by one; a variation up to 1 needs about 50, a larger one
# some 30 times the variation.
_LONGEST = 4000
# Relative change of the ratio of successive chances at which they fall geometrically.
_STEADY, _IN_A_ROW = 2e-15, 16
_TINY = 1e-290


@dataclass(frozen=True, slots=True, eq=False)
class FiniteQueue:
    """Chances that a departure leaves 0, 1, 2 ... items without a limit.

    ``chances[k]`` is the chance of k items, ``below[k]`` of fewer, and ``beyond[k]`` of k or more.
    After the last one listed, a chance is ``decay`` times the one before.
    """

    utilisation: float
    chances: Floats
    below: Floats
    beyond: Floats
    decay: float

    @classmethod
    def of(cls, utilisation: float, variation: float) -> FiniteQueue:
        """Return the queue of a utilisation below 1 and a squared coefficient of variation.

        The chain moves up over a level as often as down (Cooper 1981), which gives the next chance
        as a sum of positive terms: a_0 p_(j+1) = p_0 A_(j+1) + sum over i = 1..j of p_i A_(j-i+2),
        with a_0 the chance of no arrival during one service and A_k the chance of k or more.
        """
        load = max(utilisation, _LEAST_LOAD)
        none, more = _arrivals(load, variation)
        chances = np.ones(_LONGEST + 1)
        last = decay = 1.0
        size = steady = 0
        while steady < _IN_A_ROW and last > _TINY and size < _LONGEST:
            earlier = chances[1 : size + 1] @ more[size:0:-1]
            size += 1
            chances[size] = (more[size - 1] + earlier) / none
            before, decay, last = decay, float(chances[size]) / last, float(chances[size])
            steady = steady + 1 if abs(decay - before) <= _STEADY * decay else 0
        decay = min(decay, math.nextafter(1.0, 0.0))
        chances = (1.0 - load) * chances[: size + 1]
        rest = float(chances[-1]) / (1.0 - decay)
        return cls(
            utilisation=load,
            chances=chances,
            below=np.concatenate([[0.0], np.cumsum(chances[:-1])]),
            beyond=np.cumsum(np.concatenate([[rest], chances[-2::-1]]))[::-1],
            decay=decay,
        )

    def lost(self, places: int) -> float:
        """Return the share of arrivals that find K places full and are lost (Keilson 1966)."""
        _, below, beyond = self._at(places)
        if below < 0.5:
            beyond = 1.0 - below
        left = 1.0 - self.utilisation
        return left * beyond / (left + self.utilisation * below)

    def blocked(self, places: int) -> float:
        """Return the share of arrivals that wait for one of K places, or of time if that is more.

        A waiting sender takes one more place. In a system with K + 1 places, the first share is the
        chance that a departure leaves K items, the second the chance that the system is full.
        """
        chance, below, _ = self._at(places)
        return max(chance / (below + chance), self.lost(places + 1))

    def _at(self, number: int) -> tuple[float, float, float]:
        """Return the chances of a number of items, of fewer, and of this number or more."""
        place = min(number, self.chances.size - 1)
        further = number - place
        shrunk = self.decay**further
        fewer = self.below[place] - self.beyond[-1] * math.expm1(further * math.log(self.decay))
        return float(self.chances[place] * shrunk), float(fewer), float(self.beyond[place] * shrunk)


def fewest_places(
    utilisation: float, variation: float, blocked_share: float, *, waits: bool
) -> int | None:
    """Return the least K that keeps the share blocked down; None beyond a million.

    >>> fewest_places(0.8, 1.0, 0.01, waits=False)
    14
    """
    queue = FiniteQueue.of(utilisation, variation)
    blocked = queue.blocked if waits else queue.lost
    places = range(1, MOST_PLACES + 1)
    index = bisect.bisect_left(places, -blocked_share, key=lambda number: -blocked(number))
    return places[index] if index < MOST_PLACES else None


def _arrivals(utilisation: float, variation: float) -> tuple[float, Floats]:
    """Return the chances of no arrival during one service, and of 1, 2, ... or more.

    Poisson for deterministic service times, negative binomial for gamma ones.
    """
    counts = np.arange(1.0, _LONGEST + 1.0)
    if variation < _NO_VARIATION:
        return math.exp(-utilisation), np.asarray(
            scipy.special.gammainc(counts, utilisation), np.float64
        )
    spread = variation * utilisation
    more = scipy.special.betainc(counts, 1.0 / variation, spread / (1.0 + spread))
    return math.exp(-math.log1p(spread) / variation), np.asarray(more, np.float64)


_WAIT, _LOSE = "wait", "lose"
_MODELS = {0.0: "M/D/1/K", 1.0: "M/M/1/K"}
_GENERAL = "M/G/1/K with gamma service times"
_FASTER = "Use faster service, or more replicas where processors are left for them."
_VARIATIONS = {ServiceProcess.DETERMINISTIC: 0.0, ServiceProcess.EXPONENTIAL: 1.0}


def suggest_buffer(
    arrival: Quantity,
    service: Quantity,
    *,
    process: ServiceProcess | str = ServiceProcess.EXPONENTIAL,
    variation: float | None = None,
    replicas: int = 1,
    blocked_share: float = 0.01,
    when_full: str = _WAIT,
) -> BufferSize:
    """Suggest how many items the queue in front of a stage should hold.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Service rate of one replica, in items per second.
    process
        Distribution of the service times: "exponential" (M/M/1/K), "deterministic" (M/D/1/K) or
        "other" (M/G/1/K with gamma service times).
    variation
        Squared coefficient of variation of the service times, 0 to 100; with "other" only.
    replicas
        How many share the arrivals; every replica has its own queue. A single queue for all
        needs no more room than those queues together.
    blocked_share
        Share of arrivals that may find the queue full, in (0, 1).
    when_full
        "wait": a sender that finds the queue full waits for room and brings no other item
        meanwhile, as a stage does; ``blocked_share`` limits the share of that time as well.
        "lose": an item that finds the queue full is lost, as in the textbook.

    Returns
    -------
    BufferSize
        The smallest sufficient size, for arrivals as fast and service as slow as their intervals
        allow, and at the estimated rates. None if the utilisation is 1 or more, if no size is
        enough, or beyond a million items; a Notice says why.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or the confidences differ.

    Notes
    -----
    K of M/G/1/K counts the item in service: the size is K - 1, and 1 or more. A Notice
    lists the assumptions: arrivals are random (Poisson) and service times independent. Arrivals in
    bursts need more room, arrivals at even intervals less. Arrivals that pile up outside while the
    queue is full find it full up to 1 / (1 - utilisation) times as often.

    Uniform, lognormal, two-valued and shifted exponential service times of a variation up to 1 need
    the size of gamma ones within one item (measured: utilisation 0.5 to 0.95, blocked share 0.1 to
    5 %). Above 1 the tail matters too: lognormal ones need up to 15 % more room for a blocked share
    of 1 % at a variation of 2 to 4, and 30 % more at 10; for 0.1 % up to 1.7 and 2.4 times as much.

    Examples
    --------
    >>> print(suggest_buffer(80.0, 100.0))
    room for 13 items: at most 1% blocked · utilisation 80%
    >>> print(suggest_buffer(80.0, 100.0, process="deterministic"))
    room for 8 items: at most 1% blocked · utilisation 80%
    """
    refuse(
        *_wrong_rates(arrival, service),
        wrong_whole("replicas", replicas),
        wrong_share("blocked_share", blocked_share),
        wrong_process(process, variation),
    )
    if when_full not in (_WAIT, _LOSE):
        raise InvalidInput(f"when_full is {short(when_full)}, expected {_WAIT!r} or {_LOSE!r}")
    # Known for "other", and only there.
    spread = float(_VARIATIONS.get(ServiceProcess(process), variation))  # type: ignore[arg-type]
    (arriving, _, fastest), (served, slowest, _) = ends(arrival), ends(service)
    load = arriving / (replicas * served)
    worst = fastest / (replicas * slowest) if slowest > 0.0 else None

    def room(utilisation: float) -> int | None:
        if utilisation >= 1.0:
            return None
        places = fewest_places(utilisation, spread, blocked_share, waits=when_full == _WAIT)
        return None if places is None else max(places - 1, 1)

    at_value, at_worst = room(load), None if worst is None else room(worst)
    notices = [] if worst is not None else [Notice.of(Code.SATURATED, "unknown")]
    if at_value is None:
        notices.append(_no_size(load, "", blocked_share))
    elif worst is not None and at_worst is None:
        notices.append(_no_size(worst, "perhaps", blocked_share))
    if spread > 1.0:
        notices.append(Notice.of(Code.UNEVEN_SERVICE, variation=spread))
    return BufferSize(
        capacity=at_worst,
        capacity_at_value=at_value,
        blocked_share=float(blocked_share),
        utilisation=load,
        worst_utilisation=worst,
        variation=spread,
        notices=(*notices, model_notice([spread], when_full)),
    )


def suggest_replicas(
    arrival: Quantity, service: Quantity, *, utilisation: float = 0.8, most: int | None = None
) -> ReplicaCount:
    """Suggest how many replicas of a stage keep its utilisation down.

    Parameters
    ----------
    arrival
        Items that arrive per second; a number is known exactly.
    service
        Service rate of one replica, in items per second. It is assumed to hold for any number of
        replicas, but they may slow one another down if they share processors, memory or a lock.
    utilisation
        Highest utilisation of a replica, in (0, 1).
    most
        How many replicas the processors can run; None if unknown.

    Returns
    -------
    ReplicaCount
        The fewest sufficient, up to ``most``, for arrivals as fast and service as slow as their
        intervals allow, and at the estimated rates.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or the confidences differ.

    Examples
    --------
    >>> print(suggest_replicas(1000.0, 450.0))
    3 replicas: utilisation 80% at most
    """
    refuse(
        *_wrong_rates(arrival, service),
        wrong_share("utilisation", utilisation),
        [] if most is None else wrong_whole("most", most),
    )
    (arriving, _, fastest), (served, slowest, _) = ends(arrival), ends(service)

    def fewest(arriving: float, served: float) -> int:
        return max(rounded_up(arriving / (served * utilisation)), 1)

    at_value, at_worst = fewest(arriving, served), None
    notices = [] if slowest > 0.0 else [Notice.of(Code.SATURATED, "unknown")]
    if slowest > 0.0:
        at_worst = fewest(fastest, slowest)
    needed = max(at_value, at_worst or 1)
    if most is not None and most < needed:  # more would have to share the processors
        possible = "may be" if at_value <= most else "would be"
        limit = Notice.of(Code.PROCESSORS_LIMIT, needed=needed, possible_=possible, most=most)
        notices.append(limit)
        at_value, at_worst = min(at_value, most), at_worst and min(at_worst, most)
    return ReplicaCount(
        replicas=at_worst,
        replicas_at_value=at_value,
        utilisation=float(utilisation),
        most=most,
        notices=tuple(notices),
    )


def model_notice(variations: Iterable[float], when_full: str = _WAIT) -> Notice:
    """Return the Notice with the assumptions of one size, or of the sizes of several stages."""
    models = ", ".join(dict.fromkeys(_MODELS.get(variation, _GENERAL) for variation in variations))
    full = "a sender that finds it full waits"
    if when_full == _LOSE:
        full = "an item that finds it full is lost"
    return Notice.of(Code.QUEUE_MODEL, models=models, full_=full, when_full=when_full)


def _wrong_rates(arrival: Any, service: Any) -> Iterator[list[str]]:
    yield wrong_quantity("arrival", arrival, zero=True)
    yield wrong_quantity("service", service)
    yield wrong_confidences("arrival and service", (arrival, service))


def _no_size(load: float, case: str, blocked_share: float) -> Notice:
    """Say why no size is enough at a utilisation that is known, or only possible ("perhaps")."""
    figures = {"is_": "may be" if case else "is", "utilisation": load}
    figures |= {"blocked_share": blocked_share}
    if load < 1.0:
        return Notice.of(Code.HUGE_BUFFER, case, most=MOST_PLACES, **figures)
    least = 1.0 - 1.0 / load
    blocked = f", and at least {percent(least)} of arrivals are blocked" if least else ""
    return Notice.of(Code.SATURATED, case, blocked_=blocked, least_blocked=least, **figures)


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
        The stage of lowest capacity, in items of the source. Its rivals are the stages
        with intervals not above its own. Without rivals it is the bottleneck at the confidence
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
