"""The samples that a map asks for, and their results.

Commands, URLs and limits have places for the levels of factors: ``{threads}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate
from benchrigor.model.checks import refuse, wrong_quantity
from benchrigor.model.notice import Code, Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
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


Answer = Estimate | tuple[float, float, float]
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
