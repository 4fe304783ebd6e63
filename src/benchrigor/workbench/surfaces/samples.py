"""The samples that a map asks for, and their results.

Places for the levels of factors, in commands, URLs and limits: ``{threads}``.

Further answers of a surface: the best point, crossovers, leave-one-out predictions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate
from benchrigor.model.checks import refuse, wrong_choice, wrong_quantity, wrong_values
from benchrigor.model.notice import Code, Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, short
from benchrigor.stats.series.interval import student_t
from benchrigor.workbench.data import estimate_of
from benchrigor.workbench.surfaces.factors import Level, Point

# {{name}} is the text {name}, and ${name} belongs to a shell.
_PLACE = re.compile(r"\{\{(?P<text>[^\W\d]\w*)\}\}|(?<!\$)\{(?P<name>[^\W\d]\w*)\}")


def places_in(item: Any) -> Iterator[str]:
    """Yield the names of places in a text, or in the texts of plain data.

    Examples
    --------
    >>> [*places_in(["serve", "--threads={threads}", "${HOME}", "{{literally}}"])]
    ['threads']
    """
    if isinstance(item, str):
        yield from (found["name"] for found in _PLACE.finditer(item) if found["name"])
    elif isinstance(item, Mapping | list | tuple):
        for inner in item.values() if isinstance(item, Mapping) else item:
            yield from places_in(inner)


def fill_places(item: Any, point: Point, *, again: bool = False) -> Any:
    """Return texts with the levels of a point in their places; other places stay as they are.

    Arguments of a command are filled one by one, so a level with a space is still one argument.
    Texts to be filled ``again`` later keep their ``{{name}}``.

    Examples
    --------
    >>> fill_places(["serve", "{fs}", "{{fs}} {load}", "{gib}GiB"], {"fs": "my xfs", "gib": 2.0})
    ['serve', 'my xfs', '{fs} {load}', '2GiB']
    """
    if isinstance(item, str):
        return _PLACE.sub(lambda found: _level(found, point, again=again), item)
    if isinstance(item, Mapping):
        return {name: fill_places(inner, point, again=again) for name, inner in item.items()}
    if isinstance(item, list | tuple):
        return type(item)(fill_places(inner, point, again=again) for inner in item)
    return item


def _level(found: re.Match[str], point: Point, *, again: bool) -> str:
    if found["text"]:
        return found[0] if again else f"{{{found['text']}}}"
    level = point.get(found["name"], found[0])
    return str(int(level) if isinstance(level, float) and level.is_integer() else level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(OneLine):
    """The configuration with the best predicted answer.

    Parameters
    ----------
    point
        The levels by factor.
    estimate
        The model's prediction, which the luck of a single sample moves little.
    regret
        How much better, relative to its answer, the truly best point may be; from 0 on.
    """

    point: Point
    estimate: Estimate
    regret: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover(OneLine):
    """The level at which two configurations change places.

    Parameters
    ----------
    factor
        The varied factor, which both have in common.
    at
        Its level with equal answers.
    below, above
        The better one on either side.
    probability
        That they change places in this way within the range of the factor.
    """

    factor: str
    at: Estimate
    below: Point
    above: Point
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(OneLine):
    """The prediction of a measured point from all other points.

    Parameters
    ----------
    point
        The levels by factor.
    measured
        The measurement there.
    predicted
        The prediction from the other points; its interval is for a measurement there.
    """

    point: Point
    measured: Estimate
    predicted: Estimate


def changes_of_sign(
    difference: Floats, drawn: Floats
) -> Iterable[tuple[float, Floats, float, bool]]:
    """Yield changes of sign: place and drawn places in steps, probability, and direction."""
    for index in np.flatnonzero((difference[:-1] > 0.0) != (difference[1:] > 0.0)):
        is_first_better = bool(difference[index] > 0.0)
        better = drawn > 0.0 if is_first_better else drawn <= 0.0
        changes = better[:, :-1] & ~better[:, 1:]
        far = np.where(changes, np.abs(np.arange(changes.shape[1]) - index), np.inf)
        nearest = np.argmin(far, axis=1)
        row = np.arange(len(drawn))
        before, after = drawn[row, nearest], drawn[row, nearest + 1]
        has_change = changes[row, nearest]
        share = before / np.where(has_change, before - after, 1.0)
        end = np.where(better[:, 0], difference.size - 1.0, 0.0)
        places = np.where(has_change, nearest + share, end)
        place = index + difference[index] / (difference[index] - difference[index + 1])
        yield float(place), places, float(np.mean(has_change)), is_first_better


Answer = Estimate | tuple[float, float, float]
_WAYS = ("higher", "lower")
_LEAST_ERROR = 1e-4  # relative, of an answer that counts as exact


def read_answer(name: str, answer: object, confidence: float) -> Estimate:
    """Return an answer, an Estimate or value, low and high, as an Estimate above 0."""
    if isinstance(answer, tuple) and len(answer) == 3:
        answer = estimate_of(*answer, confidence=confidence, n=1, method="told")
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
        since = f", {beyond} of them since the answer is beyond a limit" if beyond else ""
        figures = {"samples": len(samples), "beyond": beyond}
        yield Notice.of(Code.SAMPLES_WITHOUT_NUMBER, lost_=len(lost), since_=since, **figures)
    shares = [sample.lost_share for sample in samples if sample.lost_share]
    if shares:
        n, most = len(shares), max(shares)
        yield Notice.of(Code.DISTURBED, "samples", samples=n, all_=len(samples), most=most)
