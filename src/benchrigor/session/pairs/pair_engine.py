"""Two sides measured in turn: whose reading is next, and when their ratio is known. No I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.model import (
    Comparison,
    Decision,
    Floats,
    Notice,
    Options,
    Progress,
    StopReason,
    as_series,
)
from benchrigor.protocols import StopRule
from benchrigor.session.outcomes import check_seed
from benchrigor.session.pairs.ratio_look import (
    RATIO,
    How,
    PairLook,
    as_analysis,
    judge_pairs,
    not_converged,
    noted,
    required_pairs,
)
from benchrigor.session.round_size import Pace, next_readings
from benchrigor.session.stop_rules import (
    GROWTH,
    MinimumEffective,
    Satisfied,
    StopRequested,
    TimeBudget,
    floor_for,
)
from benchrigor.stats.comparison.samples import attempt, check_margin, direction_named
from benchrigor.stats.phases.trimming import moved_on

__all__ = ["BASELINE", "CANDIDATE", "PairEngine", "PairPlan"]

BASELINE, CANDIDATE = "baseline", "candidate"

_BLOCKS = (
    (BASELINE, CANDIDATE, CANDIDATE, BASELINE),
    (CANDIDATE, BASELINE, BASELINE, CANDIDATE),
)
_CLASSICAL = 0.005
"""Half-width wanted where there is no margin to tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlan:
    """Readings to be taken of both sides, in turn.

    Parameters
    ----------
    index
        The plan's identity, counted from 0.
    order
        Whose reading is next: "baseline" or "candidate", four to a block. The i-th reading of
        the one and the i-th of the other are a pair.
    """

    index: int
    order: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.order) // 2


class PairEngine:
    """Decides whose reading is next, and when the ratio is known well enough; does nothing itself.

    The order is made of blocks, baseline-candidate-candidate-baseline or the reverse, as many of
    either, shuffled: whatever drifts alike for both cancels within each block.

    Parameters
    ----------
    margin
        Relative change that does not matter, at least 0.
    target
        Half-width of the ratio wanted; None for half the margin, or 0.005 without a margin. From
        a ratio of 2 on, which is told in times, it grows in proportion.
    confidence
        Nominal coverage of the interval, in (0, 1).
    statistic
        "mean", "median", or a percentile such as "p10".
    budget_s
        Seconds of the plans' wall time that may be spent; ``math.inf`` for no limit.
    direction
        Which way is better: "lower" or "higher".
    preset
        Evidence asked for, see `benchrigor.model.Options`.
    seed
        Of the order.

    Raises
    ------
    InvalidInput
        Naming every argument that is out of range, in one go.

    Notes
    -----
    It looks at 500 pairs first (by the preset), then at half as many again each time, and is
    satisfied by the width of the ratio's interval alone, on 100 effective pairs of which the
    stable phase holds 0.8. Neither a verdict nor a p-value is ever looked at: whoever goes on
    until there is a difference will find one.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> engine = PairEngine(seed=1)
    >>> while (plan := engine.ask()) is not None:
    ...     old, new = (rng.normal(mean, 0.02, plan.pairs) for mean in (1.0, 1.03))
    ...     decision = engine.tell(plan, old, new, elapsed_ns=1_000_000)
    >>> engine.result().verdict, decision.reason
    (<Verdict.WORSE: 'worse'>, <StopReason.SATISFIED: 'satisfied'>)
    """

    def __init__(
        self,
        *,
        margin: float = 0.01,
        target: float | None = None,
        confidence: float = 0.95,
        statistic: str = "mean",
        budget_s: float = 60.0,
        direction: str = "lower",
        preset: str | None = None,
        seed: int = 0,
    ) -> None:
        self.options, self._how, self.seed = _checked(
            target=target,
            confidence=confidence,
            statistic=statistic,
            budget_s=budget_s,
            preset=preset,
            margin=margin,
            direction=direction,
            seed=seed,
        )
        self._floor = floor_for(self.options, by_round=False)
        self._rules: tuple[StopRule, ...] = (
            Satisfied(
                criteria=(
                    MinimumEffective(effective=self._floor.effective),
                    self._is_steady,
                    self._is_narrow,
                )
            ),
            StopRequested(),
            TimeBudget(seconds=self.options.budget_s),
        )
        self._chunks: tuple[list[Floats], list[Floats]] = ([], [])
        self._pairs = self._plans = self._elapsed_ns = 0
        self._last = (0, 0)
        self._next_check = self._floor.first_check
        self._standing: PairLook | None = None
        self._judged_at = -1
        self._pending: PairPlan | None = None
        self._stop_requested = False
        self._decision: Decision | None = None
        self._progress: Progress | None = None
        self._notices: list[Notice] = []

    @property
    def pairs(self) -> int:
        """Pairs told so far."""
        return self._pairs

    @property
    def decision(self) -> Decision | None:
        """How it ended; None while it runs."""
        return self._decision

    @property
    def progress(self) -> Progress | None:
        """How it stands since the last plan: its metric is the ratio, its readings are pairs."""
        return self._progress

    def request_stop(self) -> None:
        """Let the plan under way be told, then end with what there is."""
        self._stop_requested = True

    def end(self, reason: StopReason, notice: Notice | None = None) -> None:
        """End from outside with what there is; nothing once it has ended."""
        if self._decision is not None:
            return
        if notice is not None:
            self.note(notice)
        self._pending = None
        self._decision = Decision(stop=True, reason=reason)

    def note(self, notice: Notice) -> None:
        """Add a Notice for the reader of the result."""
        self._notices.append(notice)

    def ask(self) -> PairPlan | None:
        """Return the next plan, the same one until it is told; None when finished."""
        if self._stop_requested and self._pending is None:
            self.end(StopReason.STOP_REQUESTED)
        if self._decision is not None:
            return None
        if self._pending is None:
            pace = Pace(
                readings=self._pairs,
                elapsed_s=self._elapsed_ns / 1e9,
                last_readings=self._last[0],
                last_s=self._last[1] / 1e9,
                to_next_check=self._next_check - self._pairs,
            )
            blocks = math.ceil(next_readings(pace, self.options) / 2)
            self._pending = PairPlan(index=self._plans, order=self._order(blocks))
        return self._pending

    def _order(self, blocks: int) -> tuple[str, ...]:
        """Shuffle as many blocks of either kind; of an odd number chance takes the last."""
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, self._plans]))
        kinds = (np.arange(blocks) + rng.integers(2)) % 2
        return tuple(side for kind in rng.permutation(kinds) for side in _BLOCKS[kind])

    def tell(
        self,
        plan: PairPlan,
        baseline_values: npt.ArrayLike,
        candidate_values: npt.ArrayLike,
        elapsed_ns: int,
    ) -> Decision:
        """Take in the readings of a plan and decide whether to go on.

        Parameters
        ----------
        plan
            From `ask`.
        baseline_values, candidate_values
            In the order in which they were taken, shape (plan.pairs,) each.
        elapsed_ns
            Wall time since the plan before, in whole nanoseconds.

        Raises
        ------
        PlanMismatch
            When the plan was never asked for, or has been told already.
        InvalidInput
            Naming all that is wrong with readings and time; the plan stays open.
        """
        if self._pending is None or plan != self._pending:
            raise PlanMismatch(
                f"plan {plan.index} is not the one that ask() returned last, or was told already; "
                "tell each plan once"
            )
        told = _checked_values(plan, (baseline_values, candidate_values), elapsed_ns)
        for chunks, values in zip(self._chunks, told, strict=True):
            chunks.append(values)
        self._pending = None
        self._plans += 1
        self._pairs += plan.pairs
        self._elapsed_ns += int(elapsed_ns)
        self._last = plan.pairs, int(elapsed_ns)
        progress = self._judged(look=self._pairs >= self._next_check)
        if progress.decision is not None and not progress.fresh:
            # Before it ends, it looks once more at all that it was given.
            progress = self._judged(look=True)
        self._progress, self._decision = progress, progress.decision
        return self._decision or Decision(stop=False)

    def result(self) -> Comparison:
        """Return everything found so far, also while it runs; changes nothing.

        Where the pairs allow no honest number the Comparison holds none: its verdict is UNDECIDED,
        and a Notice says why.
        """
        look = self._look()
        found = look.comparison
        ended = self._decision is not None and self._decision.reason is not StopReason.SATISFIED
        before = not_converged(found, self._how) if ended else ()
        over = moved_on(look.n - look.stop, "pairs") if 0 < look.stop < look.n else ()
        return replace(
            noted(found, before=before, after=(*over, *self._notices)),
            reason=None if self._decision is None else self._decision.reason,
            elapsed_s=self._elapsed_ns / 1e9,
        )

    def _look(self) -> PairLook:
        if self._standing is None or self._judged_at != self._pairs:
            first, second = (np.concatenate([np.empty(0), *each]) for each in self._chunks)
            self._standing, self._judged_at = judge_pairs(first, second, self._how), self._pairs
            for chunks, series in zip(self._chunks, (first, second), strict=True):
                chunks[:] = [series]
        return self._standing

    def _judged(self, *, look: bool) -> Progress:
        """Look at the pairs, or not yet, and ask the stop rules: the first to stop wins."""
        if look:
            self._look()
            if self._pairs >= self._next_check:
                self._next_check = math.ceil(self._pairs * GROWTH)
        progress = self._progress_now(fresh=look)
        answers = (rule(progress) for rule in self._rules)
        stops = (answer for answer in answers if answer is not None and answer.stop)
        return replace(progress, decision=next(stops, None))

    def _progress_now(self, *, fresh: bool) -> Progress:
        standing, floor = self._standing, self._floor
        elapsed_s = self._elapsed_ns / 1e9
        left = self.options.budget_s - elapsed_s
        required = None if standing is None else required_pairs(standing, self._how, floor)
        needed = None if required is None else max(0, required - self._pairs)
        if needed is not None:
            left = min(left, needed * elapsed_s / self._pairs)
        return Progress(
            rounds=self._plans,
            readings=self._pairs,
            rejected_rounds=0,
            elapsed_s=elapsed_s,
            seconds_left=max(left, 0.0) if math.isfinite(left) else None,
            readings_needed=needed,
            stop_requested=self._stop_requested,
            analyses=() if standing is None else (as_analysis(standing, required),),
            fresh=fresh,
            missing=() if self._pairs >= floor.first_check else (RATIO.name,),
        )

    def _is_steady(self, _: Progress) -> bool:
        return self._standing is not None and self._standing.is_steady

    def _is_narrow(self, progress: Progress) -> bool:
        return all(
            each.estimate is not None
            and each.estimate.half_width <= self._how.wanted(each.estimate.value)
            for each in progress.analyses
        )


def _checked(
    *, target: float | None, margin: float, direction: str, seed: int, **options: Any
) -> tuple[Options, How, int]:
    """Check all arguments of `PairEngine`, and raise once for all problems."""
    problems: list[str] = []
    margin = attempt(problems, check_margin, margin) or 0.0
    wanted = (margin / 2.0 or _CLASSICAL) if target is None else target
    checked = attempt(problems, lambda: Options(target=wanted, **options))
    way = attempt(problems, direction_named, direction)
    attempt(problems, check_seed, seed)
    if problems or checked is None or way is None:
        raise InvalidInput(problems)
    how = How(
        statistic=checked.statistic,
        confidence=checked.confidence,
        margin=margin,
        direction=way,
        target=float(wanted),
    )
    return checked, how, int(seed)


def _checked_values(
    plan: PairPlan, values: tuple[npt.ArrayLike, npt.ArrayLike], elapsed_ns: object
) -> list[Floats]:
    """Check what was told, and raise once for all problems."""
    problems: list[str] = []
    told: list[Floats] = []
    for name, given in zip((BASELINE, CANDIDATE), values, strict=True):
        try:
            series = as_series(given, name=f"{name}_values")
        except InvalidInput as error:
            problems += error.problems
            continue
        told.append(series)
        if series.size != plan.pairs:
            problems.append(f"{name}_values are {series.size}, expected {plan.pairs} as planned")
    if isinstance(elapsed_ns, bool) or not isinstance(elapsed_ns, Integral) or elapsed_ns < 0:
        problems.append(f"elapsed_ns is {elapsed_ns!r}, expected whole nanoseconds of 0 or more")
    if problems:
        raise InvalidInput([f"plan {plan.index}: {each}" for each in problems])
    return told
