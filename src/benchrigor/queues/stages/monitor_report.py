"""What a monitor knows, as data and as a table, and what that suggests for the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from benchrigor import clocks
from benchrigor.errors import BenchrigorError, InvalidInput, NotEstimable
from benchrigor.layout import Part, page, table, wrapped
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.estimate import Quantity
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import many, percent, show_scaled, show_value
from benchrigor.queues.arithmetic.bottleneck import advise_pipeline, find_bottleneck, stage_of
from benchrigor.queues.data.pipeline import Bottleneck, PipelineAdvice, PipelineStage
from benchrigor.queues.stages.stage_figures import WatchedStage
from benchrigor.stats.series.interval import scaled
from benchrigor.units import scale_for

_HEADER = ("", "stage", "servers", "serves/s", "{} interval", "per cpu s", "arrive/s", "used")
_SIDES = "<<>><>>>"
_UNKNOWN = "-"
_PER_S = "/s"
_DELAYED = 0.05  # share of the busy time from which on waiting for a processor is reported


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGrowth(OneLine):
    """A full queue whose bound the monitor has doubled.

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
class MonitorReport(OneLine):
    """What a monitor knows so far.

    Parameters
    ----------
    watched_s
        How long they have been watched, in seconds.
    cost_s
        Processor time that watching took, in seconds; the start of a process counts as well.
    period_s
        Sampling period, in seconds; None where none could be kept to.
    failure
        Why the monitor watches no more although it was not stopped; None while all is well.
    seeking
        Whether it still seeks a period, and tries ``period_s``; minutes where nothing passes.
    growths
        Queues that were grown because they were full, in order of time.
    fixed
        Names of the queues that cannot be grown, of a monitor that was to grow them.
    """

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
            Items per second that are to be served; by default those that arrive now, or, once the
            source has stopped, that arrived in the last phase with arrivals. A source that the
            pipeline holds up would give more.

        Raises
        ------
        InvalidInput
            When no stage reads a queue.
        NotEstimable
            When a rate is not known yet, or nothing has arrived; the message says which.
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
        """Suggest replicas and queue sizes, as `benchrigor.stats.advise_pipeline` does.

        ``source_rate`` is that of `bottleneck`; ``processors`` by default all that this process may
        use.
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

    def __str__(self) -> str:
        lines = _table(self.stages)
        with suppress(BenchrigorError):  # too little is known yet
            lines += wrapped(str(self.bottleneck()))
        lines.append(f"watched for {self.watched_s:.3g} s at {percent(self.cost_share)} of a core")
        if self.seeking:
            lines.append(f"looking for a sampling period, {self.period_s} s at the moment")
        lines += _grown(self.growths, self.fixed)
        if self.failure is not None:
            lines += wrapped(f"watched no more: {self.failure}")
        return page(lines)

    def _line(self) -> str:
        shown = f"{many(len(self.stages), 'stage')} watched for {self.watched_s:.3g} s"
        with suppress(BenchrigorError):  # too little is known yet
            shown += f" · {self.bottleneck()}"
        return shown

    def _pipeline(
        self, source_rate: Quantity | None
    ) -> tuple[Quantity, list[PipelineStage], tuple[Notice, ...]]:
        """Return what is to be served, the stages that read, and what qualifies the first."""
        serving = [stage for stage in self.stages if stage.reads]
        if not serving:
            raise InvalidInput("no stage reads a queue, expected one at least")
        first = serving[0]
        pipeline = [_replica(stage, 1.0 if stage is first else stage.visits) for stage in serving]
        if source_rate is not None:
            return source_rate, pipeline, ()
        if first.last_arrivals is None:
            silent = ", ".join(repr(each) for each in first.reads if each not in first.inputs)
            what = f"Nothing has arrived at {first.name!r} since it began to serve"
            raise _not_known(
                f"{f'No producer has been seen at {silent}' if silent else what}: watch while the "
                "source runs, or pass source_rate=, the items per second to serve"
            )
        silence = f"Nothing has arrived at {first.name!r} for {first.silent_s:.3g} s"
        sentence = f"{silence}: what is to be served is what arrived before."
        stopped = Notice.note(Code.SOURCE_STOPPED, sentence, silent_s=first.silent_s)
        return first.last_arrivals, pipeline, (stopped,) if first.silent_s else ()


def _not_known(sentence: str) -> NotEstimable:
    return NotEstimable(Notice.refusal(Code.NO_DATA, f"{sentence}."))


def _grown(growths: Sequence[QueueGrowth], fixed: Sequence[str]) -> Iterator[Part]:
    """Yield the lines about queues that were grown, and those that could not be."""
    for name in dict.fromkeys(each.name for each in growths):
        own = [each for each in growths if each.name == name]
        times = ", ".join(f"{each.at_s:.3g}" for each in own)
        yield from wrapped(
            f"{name} was full, and grew from {own[0].before} to {own[-1].after} items, at {times} s"
        )
    if fixed:
        yield from wrapped(f"cannot grow, being no queues of queue or asyncio: {', '.join(fixed)}")


def _replica(stage: WatchedStage, visits: Quantity | None) -> PipelineStage:
    """Return a stage of the pipeline: what one of its servers does."""
    rate = stage.rate
    if rate is None or rate.estimate is None or visits is None:
        why = "" if rate is None or rate.converged else f" ({rate.standing})"
        raise _not_known(f"Too little is known of {stage.name!r} yet{why}: watch longer")
    each = replace(rate, estimate=scaled(rate.estimate, 1.0 / rate.servers))
    return stage_of(stage.name, each, visits=visits, replicas=rate.servers)


def _table(stages: Sequence[WatchedStage]) -> list[Part]:
    """Return a table of stages as wide as a terminal, and below it what qualifies its rates."""
    if not stages:
        return []
    estimates = (each.rate.estimate for each in stages if each.rate and each.rate.estimate)
    confidence = next((percent(each.confidence, digits=10) for each in estimates), "")
    rows = [[cell.format(confidence).strip() for cell in _HEADER], *map(_row, stages)]
    return [
        *table(rows, _SIDES),
        *(line for stage in stages for line in _remarks(stage)),
    ]


def _row(stage: WatchedStage) -> list[str]:
    rate = stage.rate
    value, interval = _UNKNOWN, ""
    if rate is not None and rate.estimate is not None:
        value, interval = _shown(rate.estimate)
    return [
        "●" if rate is not None and rate.converged else "○",
        stage.name,
        str(stage.servers if rate is None else rate.servers),
        value,
        interval,
        _short(rate.cpu_rate if rate else None),
        _short(stage.arrivals),
        _UNKNOWN if stage.utilisation is None else percent(stage.utilisation.value),
    ]


def _shown(rate: Estimate) -> tuple[str, str]:
    """Show a value and its interval, both in the scale of the value."""
    scale = scale_for(rate.value, _PER_S)
    value, interval = show_scaled(rate, scale)
    return f"{value} {scale.name.removesuffix(_PER_S)}".rstrip(), interval


def _short(rate: Estimate | None) -> str:
    return _UNKNOWN if rate is None else show_value(rate.value, _PER_S).removesuffix(_PER_S)


def _remarks(stage: WatchedStage) -> list[Part]:
    parts = "; ".join(_qualifications(stage))
    return wrapped(f"{stage.name}: {parts}", first="  ") if parts else []


def _qualifications(stage: WatchedStage) -> Iterator[str]:
    rate = stage.rate
    if stage.failure is not None:
        yield f"watched no more: {stage.failure}"
    if rate is None:
        yield "no rate yet"
        return
    if not rate.converged:
        yield rate.standing
    if len(stage.rates) > 1:
        yield (
            f"{stage.rates.index(rate) + 1} of {len(stage.rates)} phases, from "
            f"{rate.start_s:.3g} to {rate.stop_s:.3g} s"
        )
    if rate.byte_rate is not None:
        yield f"serves {show_value(rate.byte_rate.value, 'B/s')}"
    if (rate.delay_share or 0.0) >= _DELAYED:
        yield f"waited {percent(rate.delay_share or 0.0)} of its busy time for a processor"
