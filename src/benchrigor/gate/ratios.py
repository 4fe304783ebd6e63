"""The goal of a gate: the ratio of new to old code for every benchmark of a suite. No I/O."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.gate.result import Gate
from benchrigor.gate.sides import COPY, NEW, OLD
from benchrigor.gate.suite import Pass
from benchrigor.model import (
    Comparison,
    Decision,
    Headway,
    Metric,
    Options,
    Progress,
    RoundPlan,
    StopReason,
    Width,
)
from benchrigor.model.comparison import Family, NullArm, worst_first
from benchrigor.model.series import Floats
from benchrigor.model.text import no_number
from benchrigor.protocols import StopRule
from benchrigor.session.engine import Engine
from benchrigor.session.pairs.ratio import whole_of_ratio
from benchrigor.session.schedules import LEAST_BLOCKS, LOOKS, Race
from benchrigor.session.stop_rules import limits
from benchrigor.stats.comparison.process_blocks import (
    judge_null,
    mean_over_blocks,
    to_one_pace,
    visible_change,
)
from benchrigor.stats.comparison.samples import asked_of
from benchrigor.stats.comparison.two_sample import compare_samples, family_of
from benchrigor.stats.readings.analysis import notice_of
from benchrigor.units import Quantity, many

ROLES = (OLD, NEW, COPY)
_LEAST_PAIRS = 3  # of processes, for a comparison
RATE = 0.05  # of false discoveries
_NEARLY_ALL = 0.75
_NOT_RUN = Pass(elapsed_s=0.0, values={}, metrics={})
_LATEST = 5  # blocks, one with a copy: the next may take as long as any of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """What one process of each side gave."""

    plan: RoundPlan
    passes: Mapping[str, Pass]  # by role
    elapsed_ns: int


@dataclass(slots=True, kw_only=True, eq=False)
class _Benchmark:
    """The numbers of a benchmark, one for each side and block; nan where it did not run."""

    metric: Metric
    blocks: list[int] = field(default_factory=list)
    paced_by: set[str] = field(default_factory=set)
    values: list[list[float]] = field(default_factory=list)  # by block and side
    references: list[list[float]] = field(default_factory=list)
    busy_s: float = 0.0
    narrow: int = 0
    comparison: Comparison | None = None
    refusal: str = ""

    def refuse(self, why: str) -> None:
        """Note why more numbers give no ratio."""
        self.refusal, self.narrow = why, LOOKS

    @property
    def is_paced(self) -> bool:
        """Whether nearly all processes timed a reference: then only they count.

        Interpreters run it at a pace of their own, which is no pace of the machine.
        """
        if len(self.paced_by) > 1:
            return False
        numbers = np.array(self.values)
        numbers = numbers[np.isfinite(numbers)]
        known = np.isfinite(np.array(self.references)).sum()
        return bool(known >= _NEARLY_ALL * numbers.size and (numbers > 0.0).all())

    def beside_old(self, role: str) -> Floats:
        """Return the numbers of the old code and of another side, shape (blocks, 2)."""
        sides = [ROLES.index(OLD), ROLES.index(role)]
        both: Floats = np.array(self.values)[:, sides]
        if self.is_paced:
            references = np.array(self.references)[:, sides]
            known = np.isfinite(both + references).all(axis=1)
            power = -1.0 if self.metric.kind is Quantity.RATE else 1.0  # a rate is faster then
            both[known] *= to_one_pace(both[known] ** power, references[known]) ** power
            both[~known] = np.nan
        return both

    def logs(self, role: str, total: int) -> Floats:
        """Return logarithms of ratios to the old code by block, nan where there is none."""
        found = np.full(total, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[self.blocks] = np.diff(np.log(self.beside_old(role)))[:, 0]
        return np.where(np.isfinite(found), found, np.nan)


class Ratios:
    """The ratios of all benchmarks of a suite, each until its half-width is half the margin.

    It stops when all are narrow, two looks in a row, or when the budget is spent; never because of
    a verdict.

    Parameters
    ----------
    margin
        Relative change that does not matter.
    budget_s
        Time for all of it, in seconds.
    confidence
        Nominal coverage of each interval.
    seed
        Draws the order of the sides in each block.
    can_choose
        Whether a process can measure some of the benchmarks.
    """

    name, is_early = "suite", False

    def __init__(
        self,
        *,
        margin: float = 0.02,
        budget_s: float = 300.0,
        confidence: float = 0.95,
        seed: int = 0,
        can_choose: bool = True,
    ) -> None:
        self.options = Options(target=margin / 2.0, confidence=confidence, budget_s=budget_s)
        self.schedule = Race(ROLES, seed, can_choose=can_choose)
        self.rules: tuple[StopRule, ...] = (_when_known, *limits(self.options, latest=1.0))
        self.seed = seed
        self.labels: Mapping[str, str] = {}
        self._margin = margin
        self._benchmarks: dict[str, _Benchmark] = {}
        self._failed: dict[str, dict[str, str]] = defaultdict(dict)
        self._seen: dict[str, set[str]] = {role: set() for role in ROLES}
        self._without: dict[str, str] = {}
        self._changed: set[str] = set()
        self._blocks = 0
        self._latest_s: deque[float] = deque(maxlen=_LATEST)  # times of blocks

    @property
    def known(self) -> tuple[int, int]:
        """How many benchmarks need no more time, and how many both sides have."""
        return len(self._benchmarks) - len(self._open), len(self._benchmarks)

    @property
    def _open(self) -> list[str]:
        return [name for name, benchmark in self._benchmarks.items() if benchmark.narrow < LOOKS]

    def headways(self, engine: Engine[Any]) -> dict[str, Headway]:
        """Return the view of the race on each benchmark."""
        return {
            name: Headway(
                turns=len(benchmark.blocks),
                elapsed_s=engine.elapsed_s,
                busy_s=benchmark.busy_s,
                width=self._width(benchmark),
                narrow=benchmark.narrow,
            )
            for name, benchmark in self._benchmarks.items()
        }

    def _width(self, benchmark: _Benchmark) -> float | None:
        comparison, wanted = benchmark.comparison, self.options.target or math.inf
        if comparison is None or comparison.ratio is None:
            return None
        ratio = comparison.ratio
        width = ratio.half_width / wanted / whole_of_ratio(ratio.value)
        return width if math.isfinite(width) else None

    @property
    def is_due(self) -> bool:
        """Whether every benchmark has as many blocks as a look needs."""
        return self._blocks >= LEAST_BLOCKS

    def check(self, finished: Block) -> None:
        """Take the rounds of the gate as they are."""

    def take(self, finished: Block, _: Engine[Any]) -> None:
        """Add the numbers of a block; a benchmark counts where old and new both gave one."""
        passes = finished.passes
        for role, one in passes.items():
            self._seen[role] |= {*one.values}
            self._failed[NEW if role == NEW else OLD] |= one.failed  # the copy is old code too
            self._without |= one.without
        both = [name for name in passes[OLD].values if name in passes[NEW].values]
        for name in both:
            metric = passes[OLD].metrics[name]
            benchmark = self._benchmarks.setdefault(name, _Benchmark(metric=metric))
            benchmark.blocks.append(self._blocks)
            of_sides = [passes.get(role, _NOT_RUN) for role in ROLES]
            benchmark.values.append([one.values.get(name, math.nan) for one in of_sides])
            benchmark.references.append([one.references.get(name, math.nan) for one in of_sides])
            benchmark.paced_by |= {one.paced_by[name] for one in of_sides if name in one.paced_by}
            benchmark.busy_s += sum(one.spent_s(name) for one in passes.values())
            if passes[NEW].metrics[name].unit != metric.unit:
                benchmark.refuse("old and new have it in different units")
        self._changed |= {*both}
        self._blocks += 1
        self._latest_s.append(finished.elapsed_ns / 1e9)

    def look(self, *, fully: bool) -> None:
        """Compare again each benchmark that the last block added to."""
        if not fully:
            return
        for name in self._changed:
            benchmark = self._benchmarks[name]
            if benchmark.refusal or len(benchmark.values) < _LEAST_PAIRS:
                continue
            try:
                benchmark.comparison = found = self._compare(benchmark, NEW)
            except NotEstimable as error:
                benchmark.refuse(notice_of(error).sentence)
                continue
            width = self._width(benchmark)
            benchmark.narrow = benchmark.narrow + 1 if width is not None and width <= 1.0 else 0
            if found is not None and found.ratio is None:  # as of times that are all 0
                benchmark.narrow = LOOKS
        self._changed.clear()

    def _compare(self, benchmark: _Benchmark, role: str) -> Comparison | None:
        """Compare a side with the old code, pair by pair; None with too few pairs."""
        pairs = benchmark.beside_old(role)
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        if len(pairs) < _LEAST_PAIRS:
            return None
        one, two = (tuple(np.array([value]) for value in side) for side in pairs.T.tolist())
        asked = asked_of(None, self.options.confidence, benchmark.metric.direction)
        positive = bool((pairs >= 0.0).all())
        found = compare_samples(
            one, two, asked, self._margin, paired=True, drawn=True, positive=positive
        )
        return replace(found, readings_in=benchmark.metric.unit)

    def rough_figure(self, _: int) -> Width | None:
        """Make no figure: a suite has none."""

    def state(self, engine: Engine[Any]) -> dict[str, Any]:
        """Return the progress."""
        return {
            "readings": self._blocks,
            "rounds": engine.told,
            "rejected_rounds": 0,
            "widths": (),
            "agreed": False,
            "reading_s": max(self._latest_s, default=0.0),
            "kept": self._blocks,
            "missing": tuple(self._open) or ("blocks",) * (not self.is_due),
        }

    def result(self, engine: Engine[Any]) -> Gate:
        """Judge all benchmarks as one family, and the copies of the old code by the same rule."""
        self.look(fully=True)  # also after an error, or an interrupt
        compared = {
            name: benchmark.comparison
            for name, benchmark in self._benchmarks.items()
            if benchmark.comparison is not None and benchmark.comparison.ratio is not None
        }
        decision = engine.decision
        return Gate(
            labels=self.labels,
            family=self._judged(compared) if compared else None,
            null=self._null(compared),
            at_one_pace=tuple(name for name in compared if self._benchmarks[name].is_paced),
            refused=self._refused(compared),
            failures={role: dict(each) for role, each in self._failed.items() if each},
            only=self._only(),
            blocks=self._blocks,
            elapsed_s=engine.elapsed_s,
            reason=None if decision is None else decision.reason,
            seed=self.seed,
            notices=tuple(engine.notices),
        )

    def _judged(self, compared: Mapping[str, Comparison]) -> Family:
        """Judge new against old, the worst first; without a mean of speeds and times."""
        family = family_of(compared, rate=RATE, independent=False)
        mean = None
        if len({each.direction for each in compared.values()}) == 1:
            logs = {name: self._benchmarks[name].logs(NEW, self._blocks) for name in compared}
            mean = mean_over_blocks(logs, self.options.confidence)
        ordered = {name: compared[name] for name in worst_first(compared, family.verdicts)}
        return replace(family, comparisons=ordered, summary=mean)

    def _null(self, compared: Mapping[str, Comparison]) -> NullArm | None:
        """Judge two copies of the old code as old and new are judged."""
        copies = {name: self._compare(self._benchmarks[name], COPY) for name in compared}
        found = {name: each for name, each in copies.items() if each and each.ratio}
        if not found:
            return None
        return judge_null(
            family_of(found, rate=RATE),
            {name: self._benchmarks[name].logs(COPY, self._blocks) for name in found},
            visible_change=visible_change([*compared.values()], rate=RATE),
            seed=self.seed,
        )

    def _refused(self, compared: Mapping[str, Comparison]) -> dict[str, str]:
        """Return why benchmarks have no ratio."""
        found = {name: why for name, why in self._without.items() if name not in compared}
        for name, benchmark in self._benchmarks.items():
            if name not in compared:
                why = benchmark.refusal or (
                    benchmark.comparison and no_number(benchmark.comparison.notices)
                )
                found[name] = why or f"only {many(len(benchmark.blocks), 'block')} held it"
        return found

    def _only(self) -> dict[str, tuple[str, ...]]:
        """Return the benchmarks of one side that the other neither has nor names."""
        found = {}
        for role, other in ((OLD, NEW), (NEW, OLD)):
            told = {*self._failed[other], *self._without}
            names = self._seen[role] - self._seen[other] - told
            if names:
                found[role] = tuple(sorted(names))
        return found


def _when_known(progress: Progress) -> Decision | None:
    """Stop when every benchmark is narrow enough."""
    return None if progress.missing else Decision(stop=True, reason=StopReason.SATISFIED)
