"""A map of a response over configurations: it asks for samples, and takes their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Estimate, StopReason
from benchrigor.model.checks import (
    attempt,
    refuse,
    wrong_choice,
    wrong_number,
    wrong_settings,
    wrong_values,
)
from benchrigor.model.series import Floats
from benchrigor.workbench import designs
from benchrigor.workbench.designs import (
    Answer,
    Factor,
    Level,
    MapSample,
    Measured,
    Point,
    Space,
    read_answer,
)
from benchrigor.workbench.models import AUTO
from benchrigor.workbench.planning.steps import AskedPlans
from benchrigor.workbench.settings import ADAPTIVE, MAP
from benchrigor.workbench.surface import OPTIONS, Surface, fit_surface

D_OPTIMAL, FULL = "d-optimal", "full"
RESPONSE = "response"  # the name of an answer without one
_MOST_ASKED = 3  # samples of one point
_FEWEST = 4  # samples of a first design
_WAYS = ("higher", "lower")


def _wrong_responses(responses: object) -> list[str]:
    is_list = isinstance(responses, Sequence) and not isinstance(responses, str)
    names = list(responses) if is_list else []  # type: ignore[call-overload]
    fits = bool(names) and all(isinstance(name, str) for name in names)
    is_right = fits and len({*names}) == len(names)
    return wrong_values([("responses", responses, is_right, "different names")])


def _wrong_directions(direction: object, responses: object) -> list[str]:
    """Return the problems of directions: one for all, or by response."""
    if not isinstance(direction, Mapping):
        return wrong_choice("direction", direction, _WAYS)
    known = responses if isinstance(responses, Sequence) else [*direction]
    unknown = [name for name in direction if name not in known]
    problems = [
        problem
        for name, way in direction.items()
        for problem in wrong_choice(f"direction of {name}", way, _WAYS)
    ]
    expected = f"names of responses: {', '.join(map(str, known))}"
    return problems + wrong_values([("direction", unknown, not unknown, expected)])


class SurfaceMap:
    """Find how a response depends on factors, with few samples.

    It measures nothing itself: the caller asks for a sample, measures it and passes the result
    back. Several samples may be under way at the same time.

    Parameters
    ----------
    factors
        The factors to vary.
    design
        "adaptive": after a first design, the next sample always reduces the uncertainty most per
        expected second; a point may be sampled again. "d-optimal": the samples that determine a
        quadratic model best. "full": every combination of levels.
    samples
        The maximum number; required for "d-optimal". None for no maximum.
    target
        Relative half-width of predictions at which "adaptive" stops.
    confidence
        Of intervals.
    budget_s
        The limit of the total cost of samples; None without a limit.
    direction
        "higher" or "lower": which answers are better; or one of these by response.
    responses
        Names of several responses; the first one steers. None for the names in the first results.
    seed
        Of designs and draws.
    interchangeable
        Whether hosts may be exchanged freely. Otherwise several hosts have effects of their own,
        and predictions are for the mean over these hosts.
    model
        Of the response: "quadratic" or "gaussian-process"; "auto" for the one that predicts left
        out samples better, see `fit_surface`.

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
        model: str = AUTO,
    ) -> None:
        given = locals()
        self.space = Space(factors)
        refuse(
            wrong_settings(MAP, given),
            _wrong_directions(direction, responses),
            [] if responses is None else _wrong_responses(responses),
            designs.wrong_samples(self.space, samples) if design == D_OPTIMAL else [],
        )
        self.design, self.samples, self.budget_s = design, samples, budget_s
        self._target, self._seed = target, seed
        self._of_surface = {name: given[name] for name in OPTIONS}
        self._responses = tuple(responses or ())
        self._grid = self.space.grid()
        self._first = designs.snake(self.space, self._first_design())
        self._queue = list(self._first)
        self._asked = AskedPlans[MapSample]("sample")
        self._measured: list[Measured] = []
        self._own: list[Measured] = []  # without samples of earlier maps
        self._known: tuple[int, Surface] | None = None

    def _first_design(self) -> list[Point]:
        """Return the points of the first design.

        For "adaptive" they lie far apart. Their number is the number of terms of a quadratic model,
        limited to three quarters of all samples: the others are chosen by the results.
        """
        if self.design == FULL:
            return self._grid
        if self.design == D_OPTIMAL:
            return designs.d_optimal(self.space, self.samples or 0, seed=self._seed)
        terms = self.space.terms(self._grid[:1]).shape[1] + 1
        most = 3 * (self.samples or len(self._grid)) // 4
        return designs.far_apart(self.space, max(_FEWEST, min(terms, most)), seed=self._seed)

    def ask(self) -> MapSample | None:
        """Return the next sample; None if the results so far call for no further one."""
        point = None if self._is_full() else self._next_point()
        if point is None:
            return None
        sample = MapSample(
            id=self._asked.next,
            point=dict(point),
            seed_load=designs.seed_of(self.space, self._answers(), point),
            accuracy=self._target,
        )
        return self._asked.add(sample)

    def take_up(self, sample: MapSample) -> None:
        """Take up a sample that an earlier process asked for and did not finish."""
        refuse(self.space.wrong_point(sample.point))
        self._leave_out([self._asked.add(sample)])

    def tell(
        self,
        sample: MapSample,
        estimate: Answer | Mapping[str, Answer] | None,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        host: str | None = None,
        cost_s: float = 0.0,
        reason: str | None = None,
    ) -> None:
        """Add the result of a sample.

        Parameters
        ----------
        sample
            As `ask` returned it.
        estimate
            An Estimate, or value, low and high; or several of these by response, where some may
            lack. None for a sample that failed, or if its answer is only known to lie beyond
            ``at_least`` or ``at_most``.
        host
            The host that measured it.
        cost_s
            Its cost in seconds.
        reason
            Why there is no estimate.

        Raises
        ------
        PlanMismatch
            When the sample was not asked for, or already has a result.
        InvalidInput
            For an estimate that is not above 0, or not in its interval.
        """
        rest: dict[str, Any] = {"host": host, "cost_s": cost_s, "reason": reason}
        bounds: dict[str, Any] = {"at_least": at_least, "at_most": at_most}
        self._asked.check(sample)
        answers = self._read_answers(estimate)
        known = {name: bound for name, bound in bounds.items() if bound is not None}
        refuse(
            *(wrong_number(name, bound) for name, bound in known.items()),
            wrong_number("cost_s", cost_s, zero=True),
            ["an estimate and a limit are given, expected one of them"] * bool(answers and known),
        )
        self.recall([Measured(sample=sample, estimates=answers, **bounds, **rest)])

    def recall(self, measured: Sequence[Measured], *, own: bool = True) -> None:
        """Add samples of an earlier map of equal factors, subject and host.

        The first design skips their points. Samples of this map itself are its ``own``; others
        count neither towards its number of samples nor its budget.

        Raises
        ------
        InvalidInput
            For a sample of other factors.
        """
        refuse(*(self.space.wrong_point(one.sample.point) for one in measured))
        self._measured += measured
        self._own += list(measured) if own else []
        for one in measured:
            self._asked.recall(one.sample)
        self._leave_out([one.sample for one in measured])

    def _leave_out(self, samples: Sequence[MapSample]) -> None:
        """Drop samples from the first design."""
        known = {self.space.key(sample.point) for sample in samples}
        self._queue = [point for point in self._queue if self.space.key(point) not in known]

    @property
    def own(self) -> Sequence[Measured]:
        """Its results so far, without results of earlier maps."""
        return self._own

    @property
    def done(self) -> int:
        """The number of its samples with results."""
        return len(self._own)

    @property
    def left(self) -> int | None:
        """The maximum number of further samples; None if it depends on their answers."""
        if self.design != ADAPTIVE:
            return len(self._queue) + len(self._asked.under_way)
        return None if self.samples is None else self.samples - self.done

    def planned(self) -> list[MapSample]:
        """Ask for the samples that are known beforehand: its first design, within the maximum."""
        count = len(self._queue) if self.samples is None else min(self.samples, len(self._queue))
        asked = (self.ask() for _ in range(count))
        return [sample for sample in asked if sample is not None]

    @property
    def mean_cost_s(self) -> float:
        """The mean cost of a sample."""
        return float(np.mean([measured.cost_s for measured in self._own])) if self._own else 0.0

    def result(self) -> Surface:
        """Return the surface of all samples so far."""
        if self._known is None or self._known[0] != len(self._measured):
            self._known = len(self._measured), self._fit(self._measured, self._known_responses())
        return self._known[1]

    def reason(self) -> StopReason:
        """Return why the map asks for no further sample."""
        if not self._queue and self._is_certain(self.result()):
            return StopReason.SATISFIED
        if self._is_full():
            is_counted = self.samples is not None and len(self._own) >= self.samples
            return StopReason.ROUND_LIMIT if is_counted else StopReason.TIME_BUDGET
        return StopReason.EXHAUSTED

    def _is_certain(self, surface: Surface) -> bool:
        """Whether predictions reach the target at all points."""
        if surface.model is None:
            return False
        value, _, high = surface.intervals(self._grid, self._steering())
        return bool(np.all(high <= value * (1.0 + self._target)))

    def _fit(self, measured: Sequence[Measured], responses: Sequence[str]) -> Surface:
        return fit_surface(self.space, measured, responses=responses or None, **self._of_surface)

    def _read_answers(self, estimate: Answer | Mapping[str, Answer] | None) -> dict[str, Estimate]:
        """Return the answers by response; raise unless they are estimates of positive numbers."""
        if estimate is None:
            return {}
        by_name = estimate if isinstance(estimate, Mapping) else {RESPONSE: estimate}
        known = self._known_responses() or [*by_name]
        expected = f"some of {sorted(known)}"
        problems = wrong_values([("responses", sorted(by_name), {*by_name} <= {*known}, expected)])
        answers = {}
        for name, answer in by_name.items():
            read = attempt(problems, read_answer, name, answer, self._of_surface["confidence"])
            if read is not None:
                answers[name] = read
        refuse(problems)
        return answers

    def _answers(self) -> list[tuple[Point, float]]:
        """Return the points with an answer, and their values of the steering response."""
        steering = self._steering()
        return [
            (measured.sample.point, measured.estimates[steering].value)
            for measured in self._measured
            if steering in measured.estimates
        ]

    def _is_full(self) -> bool:
        """Whether there is no sample or time left."""
        begun = len(self._own) + len(self._asked.under_way)
        if self.samples is not None and begun >= self.samples:
            return True
        if self.budget_s is None or not self._own:
            return False
        spent_s = sum(measured.cost_s for measured in self._own)
        return spent_s + spent_s / len(self._own) * (len(self._asked.under_way) + 1) > self.budget_s

    def _next_point(self) -> Point | None:
        if self._queue:
            return self._queue.pop(0)
        return self._least_certain() if self.design == ADAPTIVE else None

    def _least_certain(self) -> Point | None:
        """Return the point where a sample reduces the uncertainty most per second.

        Pending samples count as if their results were as predicted. The variance of a prediction
        after another sample is the variance of the combination of two independent numbers.
        """
        surface = self.result()
        if surface.model is None:
            return self._farthest()
        response = self._steering()
        if self._asked.under_way:
            believed = [self._assume(sample, response) for sample in self._asked.under_way]
            surface = self._fit([*self._measured, *believed], [response])
        if self._is_certain(surface):
            return None
        gain = surface.gains(self._grid, response) / self._expected_s()
        gain[~self._candidates()] = -1.0
        best = int(np.argmax(gain))
        return self._grid[best] if gain[best] > 0.0 else None

    def _assume(self, sample: MapSample, response: str) -> Measured:
        """Return a pending sample with its prediction as the result, at the target width."""
        found = self.result().predict(sample.point, response)
        low, high = found.value * (1.0 - self._target), found.value * (1.0 + self._target)
        narrow = replace(found, low=low, high=high, standard_error=None)
        return Measured(sample=sample, estimates={response: narrow})

    def _known_responses(self) -> list[str]:
        """Return the names of the responses: the given ones, or else the first result's."""
        first = next(([*found.estimates] for found in self._measured if found.estimates), [])
        return [*(self._responses or first)]

    def _steering(self) -> str:
        """Return the response that determines the next sample."""
        return next(iter(self._known_responses()), RESPONSE)

    def _farthest(self) -> Point | None:
        """Return the point farthest from all samples, for use without a model."""
        asked = [sample.point for sample in self._all_samples()]
        nearest = np.min([self.space.distances(self._grid, point) for point in asked], axis=0)
        best = int(np.argmax(nearest))
        return self._grid[best] if nearest[best] > 0.0 else None

    def _all_samples(self) -> list[MapSample]:
        return [*(measured.sample for measured in self._measured), *self._asked.under_way]

    def _candidates(self) -> npt.NDArray[np.bool_]:
        """Return the points of the grid that may be sampled: not too often, and not if failed."""
        times = Counter(self.space.key(sample.point) for sample in self._all_samples())
        steering = self._steering()
        without = {
            self.space.key(measured.sample.point)
            for measured in self._measured
            if steering not in measured.estimates
        }
        keys = [self.space.key(point) for point in self._grid]
        return np.array([times[key] < _MOST_ASKED and key not in without for key in keys])

    def _expected_s(self) -> Floats:
        """Return the expected costs of samples at the points of the grid, including changes."""
        asked = self._all_samples()
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
