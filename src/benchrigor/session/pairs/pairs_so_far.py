"""The pairs of a comparison so far, by readings or by invocations, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.errors import NotEstimable, WorkloadFailed
from benchrigor.model import Code, Comparison, Notice, Observed, Round, Verdict
from benchrigor.model.pace import INTERPRETER
from benchrigor.model.series import Floats
from benchrigor.session.schedule.pacing import INVOCATION
from benchrigor.session.stored_runs import BASELINE, CANDIDATE
from benchrigor.stats.comparison.samples import Question, refuse_zeros
from benchrigor.stats.comparison.two_sample import compare_pairs, compare_samples
from benchrigor.stats.estimators.multimodality import observe
from benchrigor.stats.estimators.rough_figure import latest
from benchrigor.stats.readings.analysis import notice_of
from benchrigor.stats.series.level import MIN_FOR_VARIANCE, too_few
from benchrigor.stats.series.undisturbed import Groups, choose_undisturbed, groups_of, join_groups

_TIME = "time"
STOPPED_PAIR = Notice.warning(
    Code.STOPPED, "A process was stopped, by a signal or with its machine: its pair does not count."
)
Pair = tuple[Round, Round]  # of baseline and candidate, side by side
RATIO = "ratio"
# The pace of a machine changes less from one short invocation to the next.
_SHORT = 100
_LEAST_STEPS = 1e-12  # squared, for a reference that never changes
_WARMING = 1.05  # times as slow as later readings, in all invocations of the first block


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The comparison of the ``n`` undisturbed ones of all pairs.

    If there is an estimate, pairs from ``start`` to ``stop`` count.
    """

    comparison: Comparison
    taken: int
    n: int
    start: int
    stop: int


class PairsOfReadings:
    """Pairs of neighbouring readings."""

    invocation = 1

    def __init__(self, question: Question, *, disturbed: str) -> None:
        self._question, self._disturbed = question, disturbed
        self._chunks: tuple[list[Floats], list[Floats]] = ([], [])
        self._groups: list[Groups] = []
        self.taken = 0

    def add(self, pair: Pair) -> None:
        """Add the readings of two rounds; the delays are those of both."""
        baseline, candidate = map(values_of, pair)
        self._chunks[0].append(baseline)
        self._chunks[1].append(candidate)
        self._groups.append(groups_of(pair[0].delays, baseline + candidate))
        self.taken += baseline.size

    @property
    def readings(self) -> int:
        """How many readings of either there are."""
        return self.taken

    def latest(self, n: int) -> tuple[Floats, Floats]:
        """Return up to ``n`` of the last pairs."""
        one, two = (latest(chunk, n) for chunk in self._chunks)
        return one, two

    def observe(self) -> dict[str, Observed]:
        """Describe the readings of both, and their ratios, by themselves."""
        return observed_of(*(np.concatenate(chunk) for chunk in self._chunks))

    def look(self) -> Look:
        """Compare the pairs so far."""
        baseline, candidate = (np.concatenate([np.empty(0), *chunk]) for chunk in self._chunks)
        self._chunks = [baseline], [candidate]
        baseline, candidate, told = self._leave_out_disturbed(baseline, candidate)
        try:
            refuse_zeros((BASELINE, baseline), (CANDIDATE, candidate))
            comparison, pairs = compare_pairs(baseline, candidate, self._question)
            comparison = replace(comparison, notices=(*comparison.notices, *told))
            start, stop = pairs.start, pairs.stop
        except NotEstimable as error:
            comparison, start, stop = unknown(self._question, notice_of(error)), 0, 0
        return Look(
            comparison=comparison, taken=self.taken, n=baseline.size, start=start, stop=stop
        )

    def _leave_out_disturbed(
        self, baseline: Floats, candidate: Floats
    ) -> tuple[Floats, Floats, tuple[Notice, ...]]:
        """Return the pairs that count: both readings are undisturbed."""
        if self._disturbed == "keep" or not self._groups:
            return baseline, candidate, ()
        self._groups = [join_groups(self._groups)]
        chosen, notices = choose_undisturbed(self._groups[0])
        if chosen is None:
            return baseline, candidate, notices
        if chosen.matters:
            who = "A stop of the process, and other work," if chosen.stopped else "Other work"
            sentence = (
                f"{who} took {100.0 * chosen.lost:.1f}% of the time: the ratio is of pairs "
                f"without delay, {chosen.left_out} of {chosen.n} are left out."
            )
            percent = 100.0 * chosen.lost
            notices += (Notice.note(Code.DISTURBED, sentence, measured_percent=percent),)
        return baseline[chosen.indices], candidate[chosen.indices], notices


class PairsOfInvocations:
    """Pairs of invocations, series of readings or single ones; both sides are cut the same way."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._series: tuple[list[Floats], list[Floats]] = ([], [])
        self._paces: list[tuple[float, ...]] = []

    @property
    def taken(self) -> int:
        """How many pairs there are."""
        return len(self._series[0])

    def add(self, pair: Pair) -> None:
        """Add two invocations, with the times of the reference next to them.

        Rounds measured by turns share the same pace.
        """
        for side, finished in zip(self._series, pair, strict=True):
            side.append(_series_of(finished))
        paces = [*map(_reference_of, pair)]
        if not any(map(is_by_turns, pair)) and all(times.size for times in paces):
            self._paces.append(tuple(float(np.median(times)) for times in paces))

    @property
    def readings(self) -> int:
        """How many readings of both there are."""
        return sum(series.size for side in self._series for series in side)

    @property
    def invocation(self) -> int:
        """Readings that the next invocations take: few, unless the first ones still warm up."""
        if not self.taken:
            return INVOCATION
        first = [series for side in self._series for series in side[:2]]
        is_warming = all(
            series.size <= _SHORT
            or np.median(series[_SHORT // 2 : _SHORT])
            > _WARMING * np.median(series[max(series.size // 2, _SHORT) :])
            for series in first
        )
        return INVOCATION if is_warming else _SHORT

    def latest(self, n: int) -> tuple[Floats, Floats]:
        """Return the means of up to ``n`` of the last pairs."""
        one, two = (np.array([x.mean() for x in side[-n:]]) for side in self._series)
        return one, two

    def observe(self) -> dict[str, Observed]:
        """Describe the means of both, and their ratios, by themselves."""
        return observed_of(*self.latest(self.taken))

    def look(self) -> Look:
        """Compare the pairs so far."""
        question, n = self._question, self.taken
        try:
            comparison = self._compare()
        except NotEstimable as error:
            comparison = unknown(question, notice_of(error))
        return Look(comparison=comparison, taken=n, n=n, start=0, stop=n)

    def _compare(self) -> Comparison:
        """Compare the invocations; a quantile of single readings is taken over all of them."""
        question = self._question
        if self.taken < MIN_FOR_VARIANCE:
            raise NotEstimable(too_few(self.taken, MIN_FOR_VARIANCE))
        refuse_zeros(*zip((BASELINE, CANDIDATE), map(tuple, self._series), strict=True))
        are_series = any(series.size > 1 for side in self._series for series in side)
        if question.asked.q is not None and not are_series:
            one, two = map(np.concatenate, self._series)
            return compare_pairs(one, two, replace(question, trim=False))[0]
        asked = replace(question, trim=are_series)
        return compare_samples(*self._at_one_pace(), asked, positive=True)

    def _at_one_pace(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        """Return the invocations as at the same pace, as far as they follow the reference.

        The machine changes its pace from one process to the next; code that waits for memory
        follows it less than the reference does. The reference is a control variate of logarithms
        (Lavenberg & Welch 1981). Its slope comes from the product of both sides, from one pair to
        the next. With normal noise the product is independent of the ratio; a slope of the ratio
        itself would make intervals too narrow.
        """
        if len(self._paces) != self.taken:
            return self._series
        paces = np.log(np.array(self._paces).T)
        levels = np.log([[series.mean() for series in side] for side in self._series])
        steps, paced = np.diff(levels.sum(axis=0)), np.diff(paces.sum(axis=0))
        slope = np.clip(steps @ paced / max(paced @ paced, _LEAST_STEPS), 0.0, 1.0)
        factors = np.exp(slope * (np.median(paces) - paces))
        one, two = (
            [series * factor for series, factor in zip(*side, strict=True)]
            for side in zip(self._series, factors, strict=True)
        )
        return one, two


def observed_of(baseline: Floats, candidate: Floats) -> dict[str, Observed]:
    """Describe readings of both, and their ratios, by themselves."""
    series = {BASELINE: baseline, CANDIDATE: candidate}
    if baseline.min() > 0.0:
        series[RATIO] = candidate / baseline
    return {name: observe(values) for name, values in series.items()}


def unknown(question: Question, notice: Notice) -> Comparison:
    """Return the comparison of pairs that allow no estimate."""
    return question.answer(
        unit="pair",
        baseline=None,
        candidate=None,
        ratio=None,
        difference=None,
        p_value=None,
        p_beyond=1.0,
        verdict=Verdict.UNDECIDED,
        notices=(notice,),
    )


def is_by_turns(finished: Round) -> bool:
    """Return whether the processes of a pair took their readings by turns."""
    return bool(finished.facts.get("by_turns"))


def _reference_of(finished: Round) -> Floats:
    references = finished.references
    none = np.empty(0)
    return none if references is None else references.seconds.get(INTERPRETER, none)


def values_of(finished: Round) -> Floats:
    """Return the times of a round: of its units of work, or of the whole."""
    units: Floats | None = finished.unit_readings.get(_TIME)
    if units is not None:
        return units
    if _TIME not in finished.readings:
        raise WorkloadFailed(f"it gave no readings of {_TIME!r}, expected some to compare")
    return np.array([finished.readings[_TIME]])


def _series_of(finished: Round) -> Floats:
    """Return the times of an invocation, without those with delay if enough others remain."""
    values = values_of(finished)
    if values.size == 1:
        return values
    chosen, _ = choose_undisturbed(groups_of(finished.delays, values))
    kept: Floats = values if chosen is None else values[chosen.indices]
    return kept
