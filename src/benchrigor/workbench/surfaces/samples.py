"""The samples that a map asks for, and their results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse, wrong_choice, wrong_quantity, wrong_values
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Code, Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.model.text import many
from benchrigor.stats.series.interval import student_t
from benchrigor.workbench.surfaces.factors import Level

Answer = Estimate | tuple[float, float, float]
_WAYS = ("higher", "lower")
_LEAST_ERROR = 1e-4  # relative, of an answer that counts as exact


def read_answer(name: str, answer: object, confidence: float) -> Estimate:
    """Return an answer, an Estimate or value, low and high, as an Estimate above 0."""
    if isinstance(answer, tuple) and len(answer) == 3:
        value, low, high = answer
        answer = Estimate(
            value=value,
            low=low,
            high=high,
            confidence=confidence,
            n=1,
            n_effective=1.0,
            method="told",
        )
    if not isinstance(answer, Estimate):
        raise InvalidInput(f"{name} is {short(answer)}, expected an Estimate or three numbers")
    refuse(wrong_quantity(name, answer))
    if answer.low <= 0.0:
        raise InvalidInput(f"{name} is {answer.value!r} from {answer.low!r}, expected more than 0")
    return answer


def direction_of(response: str, direction: str | Mapping[str, str]) -> str:
    """Return which answers of a response are better."""
    return direction if isinstance(direction, str) else direction.get(response, "higher")


def wrong_directions(direction: object, responses: object) -> list[str]:
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


def relative_error(estimate: Estimate) -> float:
    """Return the standard error over the value: by the delta method, the error of its logarithm.

    A disturbed estimate may be off by anything up to the share of its time that others took.
    """
    error = estimate.standard_error
    if error is None:
        error = estimate.half_width / student_t(math.inf, estimate.confidence)
    lost = max(map(lost_share, estimate.notices), default=0.0)
    return math.hypot(max(error / estimate.value, _LEAST_ERROR), lost / math.sqrt(3.0))


def lost_share(notice: Notice) -> float:
    """Return the share of the time that other work took, as a notice says; 0 if it says none."""
    percent = notice.evidence.get("measured_percent") if notice.code is Code.DISTURBED else None
    return percent / 100.0 if isinstance(percent, int | float) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(OneLine):
    """A point that a map asks to measure.

    Parameters
    ----------
    id
        Counted from 0.
    point
        The levels by factor.
    seed_load
        The first load of a search for a peak: the peak of the nearest finished sample; None before
        the first one.
    accuracy
        Target relative half-width of the answer.
    """

    id: int
    point: Mapping[str, Level]
    seed_load: float | None = None
    accuracy: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(OneLine):
    """The result of a sample.

    Parameters
    ----------
    sample
        The sample that the map asked for.
    estimates
        By response; empty for a sample that failed, or if its answer is only known to be beyond a
        limit.
    at_least, at_most
        Bounds of an answer without a value: the peak was not reached, or the lowest load exceeded
        the limits.
    host
        The host that measured it; None if unknown.
    cost_s
        Its cost in seconds.
    reason
        Why estimates are missing.
    """

    sample: Sample
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    host: str | None = None
    cost_s: float = 0.0
    reason: str | None = None

    @property
    def lost_share(self) -> float:
        """The share of its time that other work took, as its estimates say."""
        notices = (notice for one in self.estimates.values() for notice in one.notices)
        return max(map(lost_share, notices), default=0.0)

    def lacks(self, response: str) -> bool:
        """Return whether a response has neither an estimate nor a bound."""
        return response not in self.estimates and self.at_least is None and self.at_most is None


def weak_samples(samples: Sequence[Measured]) -> Iterable[Notice]:
    """Report the samples without a number, which models ignore, and those that others disturbed."""
    lost = [sample for sample in samples if not sample.estimates]
    beyond = sum(sample.at_least is not None or sample.at_most is not None for sample in lost)
    if lost:
        has = "has" if len(lost) == 1 else "have"
        since = f", {beyond} of them since the answer is beyond a limit" if beyond else ""
        sentence = (
            f"{len(lost)} of {many(len(samples), 'sample')} {has} no number{since}; no model "
            "counts them."
        )
        yield Notice.warning(
            Code.SAMPLES_WITHOUT_NUMBER, sentence, samples=len(samples), beyond=beyond
        )
    shares = [sample.lost_share for sample in samples if sample.lost_share]
    if shares:
        sentence = (
            f"Other work took up to {max(shares):.0%} of the time of {len(shares)} of "
            f"{many(len(samples), 'sample')}: they count less."
        )
        yield Notice.warning(Code.DISTURBED, sentence, samples=len(shares), most=max(shares))
