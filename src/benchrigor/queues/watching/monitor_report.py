"""What a monitor knows, as data, and what that suggests for the pipeline."""

from __future__ import annotations

import textwrap
from contextlib import suppress
from dataclasses import dataclass, replace

from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.model.pipeline import Bottleneck, PipelineAdvice, PipelineStage, Quantity
from benchrigor.model.text import percent
from benchrigor.queues.watching.report_table import WIDTH, stage_table
from benchrigor.queues.watching.stage_figures import WatchedStage
from benchrigor.stats.service.bottleneck import advise_pipeline, find_bottleneck, stage_of
from benchrigor.stats.service.rate_arithmetic import quotient

__all__ = ["MonitorReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorReport:
    """What a monitor knows so far.

    Parameters
    ----------
    stages
        In the order in which they were given.
    watched_s
        How long they have been watched, in seconds.
    cost_s
        Processor time that watching took, in seconds; where a process watches, with its start.
    period_s
        Sampling period wanted, in seconds; None where none could be found.
    failure
        Why the monitor watches no more; None while it does, or has stopped when it was told to.
    seeking
        Whether it is still looking for a period that can be kept to, which may take minutes where
        nothing passes; ``period_s`` is the one that is being tried.
    """

    stages: tuple[WatchedStage, ...] = ()
    watched_s: float = 0.0
    cost_s: float = 0.0
    period_s: float | None = None
    failure: str | None = None
    seeking: bool = False

    @property
    def cost_share(self) -> float:
        """Share of one processor that watching took."""
        return self.cost_s / self.watched_s if self.watched_s > 0.0 else 0.0

    def bottleneck(self, *, source_rate: Quantity | None = None) -> Bottleneck:
        """Find the stage that limits the pipeline.

        Parameters
        ----------
        source_rate
            Items per second that are to be served; those that arrive now, where nothing is said. A
            source that the pipeline holds up would give more, and what is wanted nobody can tell.

        Raises
        ------
        InvalidInput
            When nothing is known of a stage yet.
        NotEstimable
            When the visits of a stage may be 0.
        """
        source, pipeline = self._pipeline(source_rate)
        return find_bottleneck(pipeline, source_rate=source)

    def advice(
        self,
        *,
        source_rate: Quantity | None = None,
        utilisation: float = 0.8,
        blocked_share: float = 0.01,
    ) -> PipelineAdvice:
        """Suggest replicas and queue sizes.

        Parameters
        ----------
        source_rate
            As of `bottleneck`.
        utilisation, blocked_share
            As of `benchrigor.stats.advise_pipeline`.

        Raises
        ------
        InvalidInput, NotEstimable
            As of `bottleneck`.
        """
        source, pipeline = self._pipeline(source_rate)
        return advise_pipeline(
            pipeline, source_rate=source, utilisation=utilisation, blocked_share=blocked_share
        )

    def __str__(self) -> str:
        lines = stage_table(self.stages)
        with suppress(BenchrigorError):  # as long as there is nothing to tell
            lines += textwrap.wrap(str(self.bottleneck()), WIDTH)
        lines.append(f"watched for {self.watched_s:.3g} s at {percent(self.cost_share)} of a core")
        if self.seeking:
            lines.append(f"looking for a sampling period, {self.period_s} s at the moment")
        if self.failure is not None:
            lines += textwrap.wrap(f"watched no more: {self.failure}", WIDTH)
        return "\n".join(lines)

    def _pipeline(self, source_rate: Quantity | None) -> tuple[Quantity, list[PipelineStage]]:
        """Return what is to be served, and the stages that read."""
        serving = [stage for stage in self.stages if stage.reads]
        if not serving:
            raise InvalidInput("no stage reads a queue, expected one at least")
        pipeline = [
            _replica(stage, 1.0 if stage is serving[0] else stage.visits) for stage in serving
        ]
        if source_rate is None:
            source_rate = serving[0].arrivals
        if source_rate is None:
            raise InvalidInput("nobody counts what arrives, expected source_rate")
        return source_rate, pipeline


def _replica(stage: WatchedStage, visits: Quantity | None) -> PipelineStage:
    """Return a stage of the pipeline: what one of its servers does."""
    found = stage.rate
    if found is None or found.estimate is None or visits is None:
        raise InvalidInput(f"too little is known of {stage.name!r} yet: watch longer")
    each = quotient(found.estimate, float(found.servers), name="servers")
    rate = replace(found, estimate=each)
    return stage_of(stage.name, rate, visits=visits, replicas=found.servers)
