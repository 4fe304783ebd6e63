"""A trial of a server under load, and the peak: the greatest load at which it keeps its limits."""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import (
    attempt,
    refuse,
    wrong_number,
    wrong_setting,
    wrong_values,
    wrong_whole,
)
from benchrigor.model.estimate import Estimate
from benchrigor.model.metric import quantile_named
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.series import short
from benchrigor.model.text import show_estimate
from benchrigor.safe_text import escaped, hide_in_text
from benchrigor.stats.shares_and_quantiles import WILSON
from benchrigor.units import (
    Quantity,
    positive_seconds_of,
    quantity_of,
    seconds_of,
    share_of,
    show_duration,
)
from benchrigor.workbench.settings import SEARCH

MEAN, P95, FAILED = "mean", "p95", "failed"
RESPONSE, FIRST_BYTE, CHUNK_GAP = "response", "first-byte", "chunk-gap"
_OF = (RESPONSE, FIRST_BYTE, CHUNK_GAP)
_AND, _BELOW = re.compile(r"\s+and\s+"), re.compile(r"\s*([^\s<]+)\s*<\s*([^\s<=].*?)\s*")
_ARE_CONDITIONS = re.compile(rf"\s*({'|'.join(_OF)})\s*<")
_DIGITS = 12  # of the difference to 100 %
# Of a result: values by name, numbers, and counts.
_BY_NAME = ("metrics", "failures", "spent_s", "shares")
_NUMBERS = ("mean_response_s", "p95_response_s", "lag_p99_s", "cpu_share")
_COUNTS = ("scheduled", "sent", "completed", "within_limits", "failed")
# Maximum requests of a trial: times the expected number, and further ones by chance.
_MOST_SENT, _SPREAD, _FEW = 1.2, 4.0, 5


class PeakStatus(enum.StrEnum):
    """How a search ended; ``docs/codes.md`` explains the members."""

    FOUND = "found"
    NOT_SATURATED = "not-saturated"
    SATURATED_AT_LOWEST = "saturated-at-lowest"
    UNSTABLE = "unstable"
    BUDGET_SPENT = "budget-spent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(OneLine):
    """A limit of a server: a metric of a trial, and its greatest allowed value.

    Parameters
    ----------
    metric
        "mean" or "p95" response, or another quantile ("p99"), in seconds; "failed", the share of
        sent requests that failed; conditions of a good request, such as "response<200ms and
        first-byte<50ms" (or chunk-gap), for the share of requests that are not good; or any metric
        in a result.
    at_most
        The greatest allowed value, more than 0; for shares below 1.

    Raises
    ------
    InvalidInput
        When the metric has no name, or the value is out of range.

    Examples
    --------
    >>> Limit(metric="p99", at_most=0.2).ratio_of(LoadResult(sent=900, metrics={"p99": 0.05}))
    0.25
    """

    metric: str
    at_most: float

    def __post_init__(self) -> None:
        named = isinstance(self.metric, str) and self.metric.strip() != ""
        problems = wrong_values([("metric", self.metric, named, "the name of a metric")])
        problems += wrong_number(f"at_most of {short(self.metric)}", self.at_most)
        conditions = attempt(problems, conditions_of, self.metric) if named else None
        if not problems and (self.metric == FAILED or conditions) and self.at_most >= 1.0:
            problems.append(
                f"at_most of {self.metric!r} is {self.at_most!r}, expected a share below 1"
            )
        refuse(problems)

    @property
    def quantile(self) -> float | None:
        """The share of responses below it: .99 for "p99"; None if it is not a quantile."""
        return _quantile(self.metric)

    @property
    def is_of_time(self) -> bool:
        """Whether it limits response times, in seconds."""
        return self.metric == MEAN or self.quantile is not None

    @property
    def conditions(self) -> Mapping[str, float]:
        """Conditions of a good request: names of times, and seconds; empty for other limits."""
        return conditions_of(self.metric)

    @property
    def times(self) -> Mapping[str, float]:
        """Metrics of times, and the seconds that they do not exceed while the limit is kept."""
        if self.is_of_time:
            return {self.metric: self.at_most}
        share = f"p{100.0 * (1.0 - self.at_most):.10g}"
        return {f"{of}-{share}": below_s for of, below_s in self.conditions.items()}

    @property
    def nearness(self) -> str:
        """The metric of the nearness of good requests to the limit: 1 at the limit."""
        return f"{self.metric}: nearness"

    def ratio_of(self, result: LoadResult) -> float | None:
        """Return the ratio of a trial's value to the limit; None if the trial lacks the value.

        For a share of good requests the metric `nearness` takes precedence, if present.
        """
        if self.conditions and (ratio := result.value(self.nearness)) is not None:
            return ratio
        value = result.value(self.metric)
        return None if value is None else value / self.at_most


def estimate_of(
    value: float, low: float, high: float, *, confidence: float, n: int, method: str
) -> Estimate:
    """Return an estimate of n independent values with a known interval."""
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        n=n,
        n_effective=float(n),
        method=method,
    )


def limit_of(metric: str, text: str, unit: str = "") -> Limit:
    """Read the most that a metric may be; a bare number is in the unit in which it is read.

    ValueError names the problem.

    Examples
    --------
    >>> [limit_of(*each).at_most for each in (("p99", "50ms"), ("failed", "1%"), ("depth", "9"))]
    [0.05, 0.01, 9.0]
    """
    if metric == FAILED:
        return Limit(metric=metric, at_most=share_of(text))
    is_time = Limit(metric=metric, at_most=1.0).is_of_time or quantity_of(unit) is Quantity.TIME
    if unit or not is_time:
        with suppress(ValueError):
            return Limit(metric=metric, at_most=float(text.removesuffix(unit)) * scale_of(unit))
    if is_time:
        return Limit(metric=metric, at_most=positive_seconds_of(text, bare_s=None))
    raise ValueError(f"{metric} is {text!r}, expected a number such as 40")


def scale_of(unit: str) -> float:
    """Return a unit of time in seconds, and a per cent as a share; 1 for other units."""
    try:
        return 0.01 if unit == "%" else seconds_of(f"1{unit}")
    except ValueError:
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTrial(OneLine):
    """One trial that a search asks for.

    Parameters
    ----------
    id
        The trial's identity, counted from 0.
    load
        Offered load: requests per second, or any number that grows with the requested work.
    duration_s
        Duration of the load in seconds, without set-up.
    reason
        The purpose of the trial in the search.

    Raises
    ------
    InvalidInput
        When load or duration is not more than 0, or the id is not a whole number.
    """

    id: int
    load: float
    duration_s: float
    reason: str = ""

    def __post_init__(self) -> None:
        refuse(
            wrong_whole("id", self.id, least=0),
            wrong_setting("load", SEARCH["seed_load"], self.load),
            wrong_number("duration_s", self.duration_s),
        )

    def too_many(self, requests: int, seconds: float = 0.0) -> str:
        """Return the problem if more requests are counted than this rate can yield; else "".

        ``seconds`` is the duration of the load, if that is longer than the trial.
        """
        seconds = max(self.duration_s, seconds)
        expected = self.load * seconds
        if requests <= _MOST_SENT * expected + _SPREAD * math.sqrt(expected) + _FEW:
            return ""
        return (
            f"{requests} requests are counted, expected about {max(round(expected), 1)}, which is "
            f"{self.load:g}/s for {seconds:.4g} s: let the generator obey its rate and duration, "
            "and check the units of both"
        )

    def least(self, seconds: float = math.inf) -> float:
        """Return the least number of scheduled requests at this rate, except for bad luck."""
        expected = self.load * min(self.duration_s, seconds)
        return max(expected - _SPREAD * math.sqrt(expected), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult(OneLine):
    """The result of a trial.

    Parameters
    ----------
    mean_response_s, p95_response_s
        Mean and 95th percentile of the response times in seconds, from the scheduled time of a
        request; failed requests count at their timeout. None if unknown.
    scheduled, sent, completed, failed
        Numbers of scheduled, sent, answered and failed requests. None (0 for the last) if unknown;
        ``completed`` is ``sent`` less ``failed`` by default.
    lag_p99_s
        99th percentile of the lateness of sent requests.
    crashed
        Whether the server broke down: the load is above the peak, and responses do not count.
    growing
        Whether responses kept growing, as with a backlog: a mean does not describe them.
    metrics
        Further values by name, such as "p99" (in seconds).
    response
        The mean, quantile, or share of requests that are not good, whichever is nearest to its
        limit, with its interval within this trial.
    within_limits
        Good answers that came within the greatest limit of a quantile, if there is one.
    cpu_share
        Share of one processor that the generator used.
    failures
        Numbers of failed requests by kind of failure, with secrets hidden.
    spent_s
        Seconds of the trial by use, such as "decision" (on the next load), "set-up", "warm-up",
        "run" and "teardown"; empty for the set-up and duration that the search assumes.
    invalid
        Why the trial did not measure the server, if the generator knows it; else empty.
    shares
        The numbers of requests that hosts were given to send; empty where none but this one sends.

    Raises
    ------
    InvalidInput
        When a number is negative, not finite, or counts contradict each other.
    """

    mean_response_s: float | None = None
    p95_response_s: float | None = None
    scheduled: int | None = None
    sent: int | None = None
    completed: int | None = None
    failed: int = 0
    lag_p99_s: float | None = None
    crashed: bool = False
    growing: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    response: Estimate | None = None
    within_limits: int | None = None
    cpu_share: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    spent_s: Mapping[str, float] = field(default_factory=dict)
    invalid: str = ""
    shares: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_name = {name: getattr(self, name) for name in _BY_NAME}
        refuse(
            wrong_values(
                (name, values, isinstance(values, Mapping), "values by name")
                for name, values in by_name.items()
            )
        )
        numbers = {name: getattr(self, name) for name in (*_NUMBERS, *_COUNTS)}
        for name, values in by_name.items():
            numbers |= {f"{name}[{key!r}]": value for key, value in values.items()}
        refuse(
            *(
                wrong_whole(name, value, least=0)
                if name in _COUNTS
                else wrong_number(name, value, zero=True)
                for name, value in numbers.items()
                if value is not None
            )
        )
        refuse(_wrong_counts(self))
        if self.sent is not None and self.completed is None:
            object.__setattr__(self, "completed", self.sent - self.failed)
        failures = Counter[str]()
        for what, n in self.failures.items():
            failures[hide_in_text(what)] += n
        for name, values in (by_name | {"failures": failures}).items():
            object.__setattr__(self, name, MappingProxyType(dict(values)))

    @property
    def run_s(self) -> float | None:
        """Duration of the load in seconds; None if unknown."""
        spent_s = self.spent_s
        return spent_s.get("warm-up", 0.0) + spent_s["run"] if "run" in spent_s else None

    def value(self, metric: str) -> float | None:
        """Return the value of a metric, by its name in a `Limit`; None if unknown."""
        if metric == MEAN:
            return self.mean_response_s
        if metric == P95 and self.p95_response_s is not None:
            return self.p95_response_s
        if metric == FAILED and FAILED not in self.metrics:
            return self.failed / self.sent if self.sent else None
        return self.metrics.get(metric)


def _wrong_counts(result: LoadResult) -> Iterator[str]:
    """Yield the contradictions between counts of requests."""
    scheduled, sent, completed = result.scheduled, result.sent, result.completed
    if scheduled is not None and sent is not None and sent > scheduled:
        yield f"sent is {sent}, expected at most the {scheduled} scheduled"
    most, named = (scheduled, "scheduled") if sent is None else (sent, "sent")
    if most is not None and result.failed > most:
        yield f"failed is {result.failed}, expected at most the {most} {named}"
    elif most is not None and (completed or 0) + result.failed > most:
        yield (
            f"completed is {completed} and failed {result.failed}, expected at most the "
            f"{most} {named} in all"
        )
    if most is not None and (result.within_limits or 0) > most - result.failed:
        yield (
            f"within_limits is {result.within_limits}, expected at most the "
            f"{max(most - result.failed, 0)} that did not fail"
        )


@runtime_checkable
class LoadGenerator(Protocol):
    """Offers a load to a server.

    Laws: the mean rate is the load of the trial; response times count from the scheduled time of a
    request; failed requests are counted.
    """

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Carry out a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(OneLine):
    """A finished trial, and how it counts.

    Parameters
    ----------
    asked, result
        The requested trial, and its result.
    ratio
        The greatest ratio of its values to their limits: above 1 the server was saturated. Infinite
        for a crash; None without a value.
    binding
        The metric of that limit.
    cost_s
        Its cost in seconds, with set-up.
    invalid
        Why it does not count; empty if it counts.
    tail
        The number of requests of the ratio: those in the tail of a quantile, those that would
        fail at the limit, or independent ones that would not be good; infinite if unknown.
    over
        The number of requests over the limit of a quantile, if that is the only limit; None if
        unknown.
    """

    asked: LoadTrial
    result: LoadResult
    ratio: float | None
    binding: str = ""
    cost_s: float = 0.0
    invalid: str = ""
    tail: float = math.inf
    over: int | None = None

    @property
    def counts(self) -> bool:
        """Whether it measured the server."""
        return self.ratio is not None and not self.invalid

    @property
    def error(self) -> float:
        """Relative standard error of its response, by its own readings; 0 if unknown.

        For a share it comes from the requests that were not good, plus a half: see `half_request`.
        """
        found = self.result.response
        if found is None or not found.standard_error or self.result.growing:
            return 0.0
        if half := self.half_request:
            return math.sqrt((1.0 - found.value) * half / 0.5 / ((self.ratio or 0.0) + half))
        return found.standard_error / found.value if found.value else 0.0

    @property
    def half_request(self) -> float:
        """Half an independent request, over the allowed bad requests; 0 unless they are counted.

        An added half removes most of the bias of the logarithm of a count, and makes it finite for
        a count of 0 (Haldane 1956; Anscombe 1956).
        """
        found = self.result.response
        is_count = found is None or found.method.startswith(WILSON)
        return 0.5 / self.tail if is_count and conditions_of(self.binding) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRate(Reported):
    """The greatest load at which a server keeps its limits; ``print(peak)`` shows it.

    Parameters
    ----------
    status
        How the search ended; None while it runs.
    load
        The peak with its interval; None if the trials do not determine it.
    at_least, at_most
        Loads between which the peak lies; None without such a trial.
    limits
        The limits of the server.
    binding
        The metric that reaches its limit first, near the peak.
    trials
        All trials in the order of their results.
    cost_s
        Their cost in seconds, with set-up.
    goodput
        Answers per second within the limits, at the greatest load that kept them; None if requests
        were not counted.
    unit
        Of the load.
    notices
        Warnings and notes for the reader.
    """

    _facts = "benchrigor.workbench.report:facts_of_peak"
    _sheet = "benchrigor.workbench.sheets:sheet_of_peak"

    status: PeakStatus | None
    load: Estimate | None
    at_least: float | None
    at_most: float | None
    limits: tuple[Limit, ...] = ()
    binding: str = ""
    trials: tuple[Trial, ...] = ()
    cost_s: float = 0.0
    goodput: float | None = None
    unit: str = "req/s"
    notices: tuple[Notice, ...] = ()

    def __str__(self) -> str:
        n = len(self.trials)
        spent = f"{n} trial{'s' if n != 1 else ''}, {show_duration(self.cost_s)}"
        how = "under way" if self.status is None else str(self.status)
        return escaped(f"{self._show_peak()} · {how} · {spent}")

    def _show_peak(self) -> str:
        if self.load is not None:
            return f"peak {show_estimate(self.load, self.unit)}"
        ends = [
            f"{word} {bound:.4g} {self.unit}"
            for word, bound in (("at least", self.at_least), ("at most", self.at_most))
            if bound is not None
        ]
        return f"peak not known{': ' * bool(ends)}{', '.join(ends)}"


# --- good requests: those that keep all conditions, such as response<200ms and first-byte<50ms

# The metric of a `Limit` on their share consists of these conditions. Its value is the share of
# requests that violate a condition: 100 % less the share of good requests.


def conditions_of(metric: str) -> Mapping[str, float]:
    """Return the upper limits of times of a good request in seconds; empty for other metrics.

    Raises
    ------
    InvalidInput
        When a text begins like conditions and is not valid, with all problems.

    Examples
    --------
    >>> conditions_of("response<200ms and first-byte<50ms")
    {'response': 0.2, 'first-byte': 0.05}
    >>> conditions_of("p99")
    {}
    """
    if not _ARE_CONDITIONS.match(metric):
        return {}
    return {of: positive_seconds_of(time, bare_s=None) for of, time in _read(metric, None).items()}


def limit_of_good(text: str) -> Limit:
    """Read a limit of the share of good requests from a text such as response<200ms: 99%.

    With a share of 99 %, p99<200ms means response<200ms: both are equivalent.

    Raises
    ------
    InvalidInput
        With all problems.

    Examples
    --------
    >>> found = limit_of_good("p99 < 200ms and first-byte<50ms: 99%")
    >>> found.metric, found.at_most
    ('response<200ms and first-byte<50ms', 0.01)
    """
    conditions, colon, percentage = text.rpartition(":")
    problems, share = [], None
    if not colon:
        conditions = text
        problems.append(f"--slo {text!r} has no share of good requests, expected ': 99%' after it")
    else:
        try:
            share = share_of(percentage)
        except ValueError as error:
            problems.append(f"--slo {text!r}: {error}")
    if share is not None and not 0.0 < share < 1.0:
        problems.append(
            f"--slo {text!r}: the share is {100.0 * share:.10g}%, expected above 0% and below 100%"
        )
    try:
        found = _read(conditions, share)
    except InvalidInput as error:
        problems += [f"--slo {text!r}: {problem}" for problem in error.problems]
    refuse(problems)
    metric = " and ".join(f"{of}<{time}" for of, time in found.items())
    return Limit(metric=metric, at_most=round(1.0 - (share or 0.0), _DIGITS))


def _read(conditions: str, share: float | None) -> dict[str, str]:
    """Return the times of conditions as they are written."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for condition in _AND.split(conditions):
        read = _BELOW.fullmatch(condition)
        if read is None:
            problems.append(
                f"{condition.strip()!r} is not a condition, expected one as response<200ms"
            )
            continue
        of, time = RESPONSE if _is_quantile(read[1], share) else read[1], read[2]
        problems += _wrong_condition(of, time, share)
        if of in found:
            problems.append(f"{of} is limited twice, expected one time of each")
        found[of] = time
    refuse(problems)
    return found


def _quantile(metric: str) -> float | None:
    """Return the share of responses below a quantile; None if it is not a quantile."""
    try:
        return quantile_named(metric)
    except InvalidInput:
        return None


def _is_quantile(of: str, share: float | None) -> bool:
    """Return whether a word is the quantile that is equivalent to a share of requests."""
    q = _quantile(of)
    return q is not None and share is not None and abs(q - share) < 10.0**-_DIGITS


def _wrong_condition(of: str, time: str, share: float | None) -> Iterator[str]:
    if of not in _OF:
        same = "" if share is None else f", or p{100.0 * share:.10g}, which means response"
        yield f"{of!r} is not a time of a request, expected {', '.join(_OF)}{same}"
    try:
        positive_seconds_of(time, bare_s=None)
    except ValueError as error:
        yield f"{of}: {error}"
