"""A map of an answer over configurations: asked for the next sample, told what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import PlanMismatch
from benchrigor.model import Estimate, Floats, StopReason
from benchrigor.model.checks import (
    attempt,
    refuse,
    wrong_choice,
    wrong_number,
    wrong_share,
    wrong_values,
    wrong_whole,
)
from benchrigor.model.series import short
from benchrigor.stats.series.interval import student_t
from benchrigor.workbench.surfaces.designs import d_optimal, far_apart, seed_of, snake
from benchrigor.workbench.surfaces.factors import Factor, Level, Point, Space
from benchrigor.workbench.surfaces.samples import (
    Answer,
    Measured,
    Sample,
    read_answer,
    wrong_directions,
)
from benchrigor.workbench.surfaces.surface import Surface, fit_surface

ADAPTIVE, D_OPTIMAL, FULL = "adaptive", "d-optimal", "full"
DESIGNS = (ADAPTIVE, D_OPTIMAL, FULL)
RESPONSE = "response"  # the name of an answer that has none
_MOST_ASKED = 3  # times that the same point is asked, to narrow it
_FEWEST = 4  # samples of a first design


def _wrong_responses(responses: object) -> list[str]:
    is_list = isinstance(responses, Sequence) and not isinstance(responses, str)
    names = list(responses) if is_list else []  # type: ignore[call-overload]
    fits = bool(names) and all(isinstance(name, str) for name in names)
    is_right = fits and len({*names}) == len(names)
    return wrong_values([("responses", responses, is_right, "different names")])


class SurfaceMap:
    """Find how an answer depends on factors, with as few samples as it takes.

    It does nothing itself: it is asked for a sample and told what that found. Several samples may
    be asked for before one is told.

    Parameters
    ----------
    factors
        What is varied.
    design
        "adaptive": after a first design, each next sample is where it makes predictions the most
        certain per expected second; a point may be asked again. "d-optimal": that many samples
        which determine a quadratic model best. "full": every combination of levels.
    samples
        How many at most; needed of "d-optimal". None for as many as it takes.
    target
        Relative half-width of predictions at which "adaptive" stops.
    confidence
        Of intervals.
    budget_s
        What all samples may cost; None for no limit.
    direction
        "higher" or "lower": which answers are better; or one of these by response.
    responses
        Names of several answers, the first of which steers; None for those that are told first.
    seed
        Of designs and draws.
    interchangeable
        Whether it does not matter which host a sample is told from. Else several hosts have effects
        of their own, and what is predicted is the mean over them.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Examples
    --------
    >>> factors = [Factor("disks", levels=[1, 2, 3, 4]), Factor("fs", levels=["ext4", "xfs"])]
    >>> search = SurfaceMap(factors)
    >>> while (sample := search.ask()) is not None:
    ...     peak = 100.0 * sample.point["disks"] * (1.2 if sample.point["fs"] == "xfs" else 1.0)
    ...     search.tell(sample, (peak, 0.98 * peak, 1.02 * peak))
    >>> surface = search.result()
    >>> surface.best().point
    {'disks': 4, 'fs': 'xfs'}
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        *,
        design: str = ADAPTIVE,
        samples: int | None = None,
        target: float = 0.05,
        confidence: float = 0.95,
        budget_s: float | None = None,
        direction: str | Mapping[str, str] = "higher",
        responses: Sequence[str] | None = None,
        seed: int = 1,
        interchangeable: bool = False,
    ) -> None:
        self.space = Space(factors)
        refuse(
            wrong_choice("design", design, DESIGNS),
            [] if samples is None else wrong_whole("samples", samples),
            wrong_share("target", target),
            wrong_share("confidence", confidence),
            [] if budget_s is None else wrong_number("budget_s", budget_s),
            wrong_directions(direction, responses),
            wrong_whole("seed", seed, least=0),
            [] if responses is None else _wrong_responses(responses),
            ["samples is None, expected a number for a d-optimal design"]
            * (design == D_OPTIMAL and samples is None),
        )
        self.design, self.samples, self.budget_s = design, samples, budget_s
        self._target, self._confidence = target, confidence
        self._direction, self._seed = direction, seed
        self._interchangeable = interchangeable
        self._responses = tuple(responses or ())
        self._grid = self.space.grid()
        self._first = snake(self.space, self._first_design())
        self._queue = list(self._first)
        self._pending: dict[int, Sample] = {}
        self._measured: list[Measured] = []
        self._own: list[Measured] = []  # without those of earlier maps
        self._asked = 0
        self._known: tuple[int, Surface] | None = None

    def _first_design(self) -> list[Point]:
        """Return the points to begin with.

        Of "adaptive" they lie far apart, and are as many as a quadratic model has terms, but at
        most three quarters of all samples, so that some are left to be chosen by what these say.
        """
        if self.design == FULL:
            return self._grid
        if self.design == D_OPTIMAL:
            return d_optimal(self.space, self.samples or 0, seed=self._seed)
        terms = self.space.terms(self._grid[:1]).shape[1] + 1
        most = 3 * (self.samples or len(self._grid)) // 4
        return far_apart(self.space, max(_FEWEST, min(terms, most)), seed=self._seed)

    def ask(self) -> Sample | None:
        """Return the next sample; None when nothing more is to be asked, as far as is known."""
        point = None if self._is_full() else self._next_point()
        if point is None:
            return None
        sample = Sample(
            id=self._asked,
            point=dict(point),
            seed_load=seed_of(self.space, self._answers(), point),
            accuracy=self._target,
        )
        self._asked += 1
        self._pending[sample.id] = sample
        return sample

    def take_up(self, sample: Sample) -> None:
        """Go on with a sample that an earlier process had asked for, and did not tell."""
        refuse(self.space.wrong_point(sample.point))
        self._leave_out([sample])
        self._pending[sample.id] = sample

    def tell(
        self,
        sample: Sample,
        estimate: Answer | Mapping[str, Answer] | None,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        host: str | None = None,
        cost_s: float = 0.0,
        reason: str | None = None,
    ) -> None:
        """Add what a sample found.

        Parameters
        ----------
        sample
            As `ask` returned it.
        estimate
            An Estimate, or value, low and high; several by the names of their responses, of which
            some may lack; None for a sample that failed, or whose answer is only known to be
            beyond ``at_least`` or ``at_most``.
        host
            Where it was measured.
        cost_s
            Seconds that it took.
        reason
            Why there is no estimate.

        Raises
        ------
        PlanMismatch
            When the sample was not asked for, or has been told already.
        InvalidInput
            For an estimate that is not above 0, or not in its interval.
        """
        if not isinstance(sample, Sample) or self._pending.get(sample.id) != sample:
            known = any(measured.sample == sample for measured in self._measured)
            what = "has been told already" if known else "was never asked for"
            raise PlanMismatch(
                f"{short(sample)} {what}; tell each sample that ask() returned, once"
            )
        answers = self._checked(estimate)
        limits = [("at_least", at_least), ("at_most", at_most)]
        refuse(
            *(wrong_number(name, limit) for name, limit in limits if limit is not None),
            wrong_number("cost_s", cost_s, zero=True),
            ["an estimate and a limit are told, expected one of them"]
            * (bool(answers) and (at_least is not None or at_most is not None)),
        )
        del self._pending[sample.id]
        told = Measured(
            sample=sample,
            estimates=answers,
            at_least=at_least,
            at_most=at_most,
            host=host,
            cost_s=cost_s,
            reason=reason,
        )
        self._measured.append(told)
        self._own.append(told)

    def recall(self, measured: Sequence[Measured], *, own: bool = True) -> None:
        """Take in samples of an earlier map of equal factors, subject and host.

        Their points are not asked again by a first design. Those that are not this map's ``own``,
        taken up again, count neither towards its samples nor its budget.

        Raises
        ------
        InvalidInput
            For a sample of other factors.
        """
        refuse(*(self.space.wrong_point(one.sample.point) for one in measured))
        self._measured += measured
        self._own += list(measured) if own else []
        self._leave_out([one.sample for one in measured])

    def _leave_out(self, samples: Sequence[Sample]) -> None:
        """Ask no sample of a first design again, and count on from the last one."""
        known = {self.space.key(sample.point) for sample in samples}
        self._queue = [point for point in self._queue if self.space.key(point) not in known]
        self._asked = max([self._asked, *(sample.id + 1 for sample in samples)])

    @property
    def last(self) -> Measured:
        """What was told last."""
        return self._measured[-1]

    @property
    def done(self) -> int:
        """How many samples it has asked for and was told."""
        return len(self._own)

    @property
    def left(self) -> int | None:
        """How many more there may be, at most; None where only their answers tell."""
        if self.design != ADAPTIVE:
            return len(self._queue) + len(self._pending)
        return None if self.samples is None else self.samples - self.done

    def planned(self) -> list[Sample]:
        """Ask for the samples that are known beforehand: those of its first design, at most all."""
        count = len(self._queue) if self.samples is None else min(self.samples, len(self._queue))
        asked = (self.ask() for _ in range(count))
        return [sample for sample in asked if sample is not None]

    @property
    def mean_cost_s(self) -> float:
        """What a sample took on average."""
        return float(np.mean([measured.cost_s for measured in self._own])) if self._own else 0.0

    def result(self) -> Surface:
        """Return the surface of all samples so far."""
        if self._known is None or self._known[0] != len(self._measured):
            self._known = len(self._measured), self._fitted(self._measured, self._known_responses())
        return self._known[1]

    def reason(self) -> StopReason:
        """Return why no further sample is asked for."""
        if not self._queue and self._is_certain():
            return StopReason.SATISFIED
        if self._is_full():
            is_counted = self.samples is not None and len(self._own) >= self.samples
            return StopReason.ROUND_LIMIT if is_counted else StopReason.TIME_BUDGET
        return StopReason.EXHAUSTED

    def _is_certain(self) -> bool:
        """Whether predictions are as narrow as wanted at all points."""
        surface = self.result()
        if surface.model is None:
            return False
        _, sd = surface.predictions(self._grid, self._steering())
        return not np.any(np.expm1(self._quantile() * sd) > self._target)

    def _quantile(self) -> float:
        """Return how many standard errors half an interval is wide."""
        return student_t(max(len(self._answers()) - 1.0, 1.0), self._confidence)

    def _fitted(self, measured: Sequence[Measured], responses: Sequence[str]) -> Surface:
        return fit_surface(
            self.space,
            measured,
            responses=responses or None,
            confidence=self._confidence,
            direction=self._direction,
            seed=self._seed,
            interchangeable=self._interchangeable,
        )

    def _checked(self, estimate: Answer | Mapping[str, Answer] | None) -> dict[str, Estimate]:
        """Return the answers by response; raise for what is no estimate of a positive number."""
        if estimate is None:
            return {}
        by_name = estimate if isinstance(estimate, Mapping) else {RESPONSE: estimate}
        known = self._known_responses() or [*by_name]
        expected = f"some of {sorted(known)}"
        problems = wrong_values([("responses", sorted(by_name), {*by_name} <= {*known}, expected)])
        answers = {}
        for name, answer in by_name.items():
            read = attempt(problems, read_answer, name, answer, self._confidence)
            if read is not None:
                answers[name] = read
        refuse(problems)
        return answers

    def _answers(self) -> list[tuple[Point, float]]:
        """Return the points that have an answer, with the first response."""
        steering = self._steering()
        return [
            (measured.sample.point, measured.estimates[steering].value)
            for measured in self._measured
            if steering in measured.estimates
        ]

    def _is_full(self) -> bool:
        """Whether there is no sample or time left."""
        begun = len(self._own) + len(self._pending)
        if self.samples is not None and begun >= self.samples:
            return True
        if self.budget_s is None or not self._own:
            return False
        spent_s = sum(measured.cost_s for measured in self._own)
        return spent_s + spent_s / len(self._own) * (len(self._pending) + 1) > self.budget_s

    def _next_point(self) -> Point | None:
        if self._queue:
            return self._queue.pop(0)
        return self._least_certain() if self.design == ADAPTIVE else None

    def _least_certain(self) -> Point | None:
        """Return the point whose sample makes its prediction the most certain per second.

        Pending samples count as if they were told what is predicted. The variance of a prediction
        after another sample is that of two independent numbers combined.
        """
        surface = self.result()
        if surface.model is None:
            return self._farthest()
        response = self._steering()
        if self._pending:
            believed = [self._believed(sample, response) for sample in self._pending.values()]
            surface = self._fitted([*self._measured, *believed], [response])
        _, sd = surface.predictions(self._grid, response)
        quantile = self._quantile()
        if not np.any(np.expm1(quantile * sd) > self._target):
            return None
        gain = surface.gains(self._grid, response) / self._expected_s()
        gain[~self._may_be_asked()] = -1.0
        best = int(np.argmax(gain))
        return self._grid[best] if gain[best] > 0.0 else None

    def _believed(self, sample: Sample, response: str) -> Measured:
        """Return a pending sample as if it found what is predicted, as narrow as wanted."""
        found = self.result().predict(sample.point, response)
        low, high = found.value * (1.0 - self._target), found.value * (1.0 + self._target)
        narrow = replace(found, low=low, high=high, standard_error=None)
        return Measured(sample=sample, estimates={response: narrow})

    def _known_responses(self) -> list[str]:
        """Return the names of the responses, where none are given those that were told first."""
        told = next(
            ([*measured.estimates] for measured in self._measured if measured.estimates), []
        )
        return [*(self._responses or told)]

    def _steering(self) -> str:
        """Return the response that says where the next sample is."""
        return next(iter(self._known_responses()), RESPONSE)

    def _farthest(self) -> Point | None:
        """Return the point farthest from all that were asked, while no model is known."""
        asked = [sample.point for sample in self._all_asked()]
        nearest = np.min([self.space.distances(self._grid, point) for point in asked], axis=0)
        best = int(np.argmax(nearest))
        return self._grid[best] if nearest[best] > 0.0 else None

    def _all_asked(self) -> list[Sample]:
        return [*(measured.sample for measured in self._measured), *self._pending.values()]

    def _may_be_asked(self) -> npt.NDArray[np.bool_]:
        """Tell which points of the grid may be asked: not too often, and none that failed."""
        times = Counter(self.space.key(sample.point) for sample in self._all_asked())
        steering = self._steering()
        without = {
            self.space.key(measured.sample.point)
            for measured in self._measured
            if steering not in measured.estimates
        }
        keys = [self.space.key(point) for point in self._grid]
        return np.array([times[key] < _MOST_ASKED and key not in without for key in keys])

    def _expected_s(self) -> Floats:
        """Return what a sample of each point of the grid is expected to cost, changes included."""
        asked = self._all_asked()
        before: Mapping[str, Level] = max(asked, key=lambda sample: sample.id).point
        changes = [
            sum(
                factor.change_s
                for factor in self.space.factors
                if point[factor.name] != before[factor.name]
            )
            for point in self._grid
        ]
        typical_s = float(np.mean([measured.cost_s for measured in self._measured]))
        return np.array(changes) + max(typical_s, 1e-9)
