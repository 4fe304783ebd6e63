"""The stages of a program, by the ends of queues that they use, and the report of a monitor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from benchrigor import clocks
from benchrigor.errors import BenchrigorError, InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.estimate import Quantity
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import short
from benchrigor.model.text import show_estimate
from benchrigor.queues.data import Bottleneck, PipelineAdvice, PipelineStage, ServiceRate
from benchrigor.queues.pipelines import advise_pipeline, find_bottleneck, stage_of
from benchrigor.queues.tap import Tap
from benchrigor.queues.writers import HEAD, TAIL, End
from benchrigor.safe_text import escaped
from benchrigor.stats.series.interval import scale
from benchrigor.units import many, percent, show_value


@dataclass(frozen=True, slots=True, init=False)
class Stage(OneLine):
    """A part of a program that takes items from queues, and gives items to others.

    Parameters
    ----------
    name
        For people.
    reads, writes
        The queues that it takes from, as taps or their heads, and gives to, as taps or their tails.
    servers
        How many threads of a process serve side by side, if more than at its ends.

    Raises
    ------
    InvalidInput
        Naming everything that makes no sense.

    Notes
    -----
    A stage serves the items that pass its heads (a source: its tails); its waits are the waits at
    all of its ends. At a tail that it shares with other stages, only the counts of its own
    processes belong to it. All threads of a process share the counts of an end: stages can share an
    end only if they run in processes of their own.

    Examples
    --------
    >>> import queue
    >>> with Tap(queue.Queue(), name="work") as work, Tap(queue.Queue(), name="done") as done:
    ...     stage = Stage("hash", reads=[work], writes=[done])
    >>> [end.name for end in stage.reads]
    ['work.head']
    """

    name: str
    reads: tuple[End, ...]
    writes: tuple[End, ...]
    servers: int

    def __init__(
        self,
        name: str,
        *,
        reads: Iterable[End | Tap] = (),
        writes: Iterable[End | Tap] = (),
        servers: int = 1,
    ) -> None:
        problems = []
        if not isinstance(name, str) or not name:
            problems.append(f"name is {short(name)}, expected a text")
        problems += wrong_whole("servers", servers)
        heads, tails = _ends(reads, "reads", problems), _ends(writes, "writes", problems)
        if not problems and not heads and not tails:
            problems.append(f"stage {name!r} has no ends, expected heads or tails of queues")
        refuse(problems)
        fields = {"name": name, "reads": heads, "writes": tails, "servers": servers}
        for field, value in fields.items():
            object.__setattr__(self, field, value)


def stages_of(what: Iterable[Any]) -> tuple[Stage, ...]:
    """Return the stages to watch; a tap gives two, one for an end, with the names of the ends."""
    stages: list[Stage] = []
    for number, part in enumerate(what):
        if isinstance(part, Tap):
            stages.append(Stage(part.tail.name, writes=[part.tail]))
            stages.append(Stage(part.head.name, reads=[part.head]))
        elif isinstance(part, Stage):
            stages.append(part)
        else:
            raise InvalidInput(f"what[{number}] is {short(part)}, expected a Stage or a Tap")
    names = [stage.name for stage in stages]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"several stages are called {twice[0]!r}, expected names of their own")
    if not stages:
        raise InvalidInput("there is nothing to watch, expected a Stage or a Tap")
    return tuple(stages)


_SIDES = {"reads": (HEAD, TAIL), "writes": (TAIL, HEAD)}


def _ends(given: object, what: str, problems: list[str]) -> tuple[End, ...]:
    """Return the ends of a stage; add the problem with them."""
    if isinstance(given, str | Tap) or not isinstance(given, Iterable):
        problems.append(f"{what} is {short(given)}, expected a list of taps, or of their ends")
        return ()
    side, other = _SIDES[what]
    ends = []
    for number, queue in enumerate(given):
        end = getattr(queue, side[1:]) if isinstance(queue, Tap) else queue
        if not isinstance(end, End):
            problems.append(f"{what}[{number}] is {short(end)}, expected the {side[1:]} of a tap")
        elif end.name.endswith(other):
            problems.append(f"{what}[{number}] is {end.name!r}, expected a {side[1:]}")
        else:
            ends.append(end)
    names = [end.name for end in ends]
    if len(set(names)) < len(names):
        problems.append(f"{what} is {', '.join(names)}, expected queues with names of their own")
    return tuple(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedStage(OneLine):
    """Results about a stage that is being watched.

    Parameters
    ----------
    reads, writes
        Names of its queues; a source reads none.
    servers
        How many threads or processes serve; 0 as long as it is unknown.
    rates
        Rates at which all of them together serve while they do not wait, phase by phase. Another
        number of servers begins a new phase.
    inputs
        Items per second that enter the queues which it reads, queue by queue, if they are counted,
        since the window of ``rate`` began.
    arrivals
        Their sum; None if unknown, like the figures below.
    last_arrivals
        The same of the last phase in which anything arrived, without the silence at its end.
    silent_s
        Time without arrivals until now, in seconds, if it is unusually long; else 0.
    utilisation
        Arrivals as a share of its capacity.
    filter_ratio
        Items that it took per item that it gave.
    visits
        Items that it served per item of the first stage that reads a queue.
    failure
        Why it is watched no more; None as long as it is watched.
    """

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    servers: int = 0
    rates: tuple[ServiceRate, ...] = ()
    inputs: Mapping[str, Estimate]
    arrivals: Estimate | None = None
    last_arrivals: Estimate | None = None
    silent_s: float = 0.0
    utilisation: Estimate | None = None
    filter_ratio: Estimate | None = None
    visits: Estimate | None = None
    failure: str | None = None

    @property
    def rate(self) -> ServiceRate | None:
        """The present rate; None if it is unknown.

        It is the last one. But a longer one before it stays present if the last has not converged
        or has fewer servers: servers leave one by one when a stream ends.
        """
        return present_rate(self.rates)

    def __str__(self) -> str:
        rate, parts = self.rate, ["no rate yet"]
        if rate is not None and rate.estimate is not None:
            parts = [show_estimate(rate.estimate, "items/s")]
        if rate is not None and not rate.converged:
            parts.append("not converged")
        if self.arrivals is not None:
            parts.append(f"{show_value(self.arrivals.value, 'items/s')} arrive")
        if self.utilisation is not None:
            parts.append(f"{percent(self.utilisation.value)} used")
        if self.failure is not None:
            parts.append(f"watched no more: {self.failure}")
        return escaped(f"{self.name}: {' · '.join(parts)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGrowth(OneLine):
    """A full queue with a bound that the monitor has doubled.

    Parameters
    ----------
    name
        Of the queue.
    before, after
        Items that it took, and takes since.
    at_s
        When, in seconds since the monitor began.
    """

    name: str
    before: int
    after: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorReport(Reported):
    """Results of a monitor so far.

    Parameters
    ----------
    watched_s
        How long they have been watched, in seconds.
    cost_s
        Processor time that watching took, in seconds; the start of a process counts as well.
    period_s
        Sampling period, in seconds; None if the machine could keep to no period.
    failure
        Why the monitor watches no more although it was not stopped; None if it has not failed.
    seeking
        Whether it still seeks a period, and tries ``period_s``; that takes minutes without items.
    growths
        Queues that were grown because they were full, in order of time.
    fixed
        Names of the queues that cannot be grown, of a monitor that was to grow them.
    """

    _facts = "benchrigor.queues.report:facts_of_monitor"

    stages: tuple[WatchedStage, ...] = ()
    watched_s: float = 0.0
    cost_s: float = 0.0
    period_s: float | None = None
    failure: str | None = None
    seeking: bool = False
    growths: tuple[QueueGrowth, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def cost_share(self) -> float:
        """Share of one processor that watching took."""
        return self.cost_s / self.watched_s if self.watched_s > 0.0 else 0.0

    def bottleneck(self, *, source_rate: Quantity | None = None) -> Bottleneck:
        """Find the stage that limits the pipeline, as `benchrigor.stats.find_bottleneck` does.

        Parameters
        ----------
        source_rate
            Items per second to serve; by default the rate at which they arrive now, or, if the
            source has stopped, arrived in the last phase with arrivals. A source that the pipeline
            holds up would give more.

        Raises
        ------
        InvalidInput
            When no stage reads a queue.
        NotEstimable
            When a rate is not known yet, or no item has arrived; the message says which.
        """
        source, pipeline, notices = self._pipeline(source_rate)
        found = find_bottleneck(pipeline, source_rate=source)
        return replace(found, notices=(*notices, *found.notices))

    def advice(
        self,
        *,
        source_rate: Quantity | None = None,
        utilisation: float = 0.8,
        blocked_share: float = 0.01,
        processors: int | None = None,
    ) -> PipelineAdvice:
        """Suggest replicas and queue sizes.

        ``source_rate`` is as for `bottleneck`; ``processors`` are by default all that this process
        may use.
        """
        source, pipeline, notices = self._pipeline(source_rate)
        found = advise_pipeline(
            pipeline,
            source_rate=source,
            utilisation=utilisation,
            blocked_share=blocked_share,
            processors=clocks.processors() if processors is None else processors,
        )
        return replace(found, notices=(*notices, *found.notices))

    def _line(self) -> str:
        shown = f"{many(len(self.stages), 'stage')} watched for {self.watched_s:.3g} s"
        with suppress(BenchrigorError):  # too little is known yet
            shown += f" · {self.bottleneck()}"
        return shown

    def _pipeline(
        self, source_rate: Quantity | None
    ) -> tuple[Quantity, list[PipelineStage], tuple[Notice, ...]]:
        """Return the rate to serve, the stages that read, and the notices about that rate."""
        serving = [stage for stage in self.stages if stage.reads]
        if not serving:
            raise InvalidInput("no stage reads a queue, expected one at least")
        first = serving[0]
        pipeline = [_replica(stage, 1.0 if stage is first else stage.visits) for stage in serving]
        if source_rate is not None:
            return source_rate, pipeline, ()
        if first.last_arrivals is None:
            silent = ", ".join(repr(queue) for queue in first.reads if queue not in first.inputs)
            what = f"Nothing has arrived at {first.name!r} since it began to serve"
            raise _not_known(
                f"{f'No producer has been seen at {silent}' if silent else what}: watch while the "
                "source runs, or pass source_rate=, the items per second to serve"
            )
        stopped = Notice.of(Code.SOURCE_STOPPED, stage_=first.name, silent_s=first.silent_s)
        return first.last_arrivals, pipeline, (stopped,) if first.silent_s else ()


def _not_known(why: str) -> NotEstimable:
    return NotEstimable(Notice.of(Code.NO_DATA, "stage", why_=why))


def _replica(stage: WatchedStage, visits: Quantity | None) -> PipelineStage:
    """Return a stage of the pipeline, with the rate of one of its servers."""
    rate = stage.rate
    if rate is None or rate.estimate is None or visits is None:
        why = "" if rate is None or rate.converged else f" ({rate.standing})"
        raise _not_known(f"Too little is known of {stage.name!r} yet{why}: watch longer")
    single = replace(rate, estimate=scale(rate.estimate, 1.0 / rate.servers))
    return stage_of(stage.name, single, visits=visits, replicas=rate.servers)


def present_rate(rates: Sequence[ServiceRate]) -> ServiceRate | None:
    """Return the present rate, or None."""
    if not rates:
        return None
    now = rates[-1]
    for before in reversed(rates[:-1]):
        sure = now.converged and now.servers >= before.servers
        if sure or now.length_s >= before.length_s:
            break
        now = before
    return now
