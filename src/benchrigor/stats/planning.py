"""Power: how many readings a comparison takes, and the cost of a narrower interval."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import scipy

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Notice, RunRecord
from benchrigor.model.checks import refuse, wrong_number, wrong_share
from benchrigor.model.comparison import Plan, Price, RunPair, Standing, Tally, TrackRecord
from benchrigor.stats.comparison.fieller_mover import Contrast, difference_of, uncertain_value
from benchrigor.stats.series.interval import (
    MAX_RELATIVE_WIDTH,
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    PIECE_MEANS,
    required_readings,
    satterthwaite,
    student_t,
)
from benchrigor.stats.shares_and_quantiles import estimate_proportion, whole_of
from benchrigor.stats.statistic import (
    INVOCATION_MEANS,
    MIN_INVOCATIONS,
    MIN_PIECES,
)

_MAX_READINGS = 10**12  # a plan that takes more is out of reach


def plan_sizes(
    pilot: Estimate,
    *,
    change: float = 0.03,
    power: float = 0.8,
    confidence: float | None = None,
    margin: float = 0.0,
    half_widths: Sequence[float] = (0.05, 0.02, 0.01, 0.005),
    least: int = 2,
) -> Plan:
    """Plan the sizes of a comparison and of narrower intervals, see `benchrigor.plan`.

    Welch's t test of y_c - (1 + m) y_b, of candidate and baseline with the pilot's noise and the
    same size, agrees with the interval of the ratio (Fieller 1954): noncentral t with
    noncentrality (change - m) / (s sqrt(1 + (1 + m)^2)), s the standard error of one mean over the
    pilot's value. Only a verdict in the right direction counts. The range of sizes follows from the
    chi-square interval of the pilot's variance. No size of an interval is below ``least``.

    Raises InvalidInput when an argument is invalid, the pilot's value is (nearly) 0, or the change
    is out of reach; NotEstimable when the pilot is a single invocation, or has no noise.
    """
    level = pilot.confidence if confidence is None else confidence
    problems = [
        *wrong_number("change", change),
        *wrong_share("power", power),
        *wrong_share("confidence", level),
        *wrong_number("margin", margin, zero=True),
        *wrong_number("least", least),
    ]
    widths = _read_half_widths(half_widths, problems)
    if not problems and change <= margin:
        problems.append(f"change is {change!r}, expected more than the margin, {margin!r}")
    if pilot.half_width > 0.0 and pilot.relative_half_width > MAX_RELATIVE_WIDTH:
        problems.append(f"the value is {pilot.value:.6g}: no change is relative to (nearly) 0")
    refuse(problems)
    noise = _noise_of(pilot)
    design = _Design(power=power, confidence=level, margin=margin)
    factors = _variance_range(noise.degrees_of_freedom, level)
    n, n_low, n_high = (
        design.size(replace(noise, error=noise.error * math.sqrt(factor)), change)
        for factor in (1.0, *factors)
    )
    estimate, unit = _at_confidence(pilot, noise, level), _UNITS.get(pilot.method, "reading")
    return Plan(
        pilot=estimate,
        counted_in=unit,
        change=change,
        margin=margin,
        power=power,
        n=n,
        n_low=n_low,
        n_high=n_high,
        power_now=design.power_of(noise, change),
        change_now=design.smallest_change(noise),
        prices=tuple(_price(estimate, width, factors, least) for width in widths),
        # A pilot is short of its target by nature.
        notices=(
            *(notice for notice in pilot.notices if notice.code is not Code.NOT_CONVERGED),
            *_too_small(n, unit),
        ),
    )


def _read_half_widths(half_widths: Sequence[float], problems: list[str]) -> tuple[float, ...]:
    try:
        widths = tuple(half_widths)
    except TypeError:
        problems.append(f"half_widths is {half_widths!r}, expected a sequence such as (0.05, 0.01)")
        return ()
    for index, width in enumerate(widths):
        problems += wrong_number(f"half_widths[{index}]", width)
    return widths


def _price(estimate: Estimate, width: float, factors: tuple[float, float], least: int) -> Price:
    whole, _ = whole_of(estimate)
    n = required_readings(estimate, width * whole / abs(estimate.value))
    low, high = (math.ceil(n * factor) for factor in factors)
    return Price(half_width=width, n=max(n, least), n_low=max(low, least), n_high=max(high, least))


_UNITS = {INVOCATION_MEANS: "invocation", PIECE_MEANS: "piece"}  # of inference, by method


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    """A relative standard error, and how it shrinks when more is measured."""

    error: float
    degrees_of_freedom: float
    n: int
    density: float  # degrees of freedom per reading (or invocation)

    def at(self, size: int) -> _Noise:
        """Return the noise of an estimate from ``size`` readings (or invocations)."""
        return replace(
            self,
            error=self.error * math.sqrt(self.n / size),
            degrees_of_freedom=max(self.density * size - 1.0, min(1.0, self.degrees_of_freedom)),
            n=size,
        )


def _noise_of(pilot: Estimate) -> _Noise:
    """Return the noise of a pilot, from its interval where it carries no standard error."""
    freedom = pilot.degrees_of_freedom
    if freedom is None:
        freedom = max(pilot.n_effective - 1.0, 1.0)
    error = pilot.standard_error
    if error is None:
        error = pilot.half_width / student_t(freedom, pilot.confidence)
    if pilot.n == 1:
        raise NotEstimable(Notice.of(Code.THIS_PROCESS_ONLY, "pilot", invocations=1))
    if error == 0.0:
        raise NotEstimable(Notice.of(Code.CONSTANT, "pilot", n=pilot.n, value=pilot.value))
    # Long series are averaged before their variance is estimated, which leaves them fewer degrees
    # of freedom than shorter ones would keep: half of the effective sample size, or so.
    density = max(freedom + 1.0, pilot.n_effective / 2.0) / pilot.n
    return _Noise(
        error=error / abs(pilot.value), degrees_of_freedom=freedom, n=pilot.n, density=density
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """The comparison that is planned for."""

    power: float
    confidence: float
    margin: float

    def _welch(self, noise: _Noise) -> tuple[float, float, float]:
        """Return standard error, degrees of freedom and critical value of y_c - (1 + m) y_b."""
        square = (1.0 + self.margin) ** 2
        error = noise.error * math.sqrt(1.0 + square)
        freedom = satterthwaite((1.0, 1.0 + self.margin), [noise.degrees_of_freedom] * 2)
        return error, freedom, student_t(freedom, self.confidence)

    def power_of(self, noise: _Noise, change: float) -> float:
        """Return the chance that the whole interval lies beyond the margin."""
        error, freedom, critical = self._welch(noise)
        miss = float(scipy.special.nctdtr(freedom, (change - self.margin) / error, critical))
        # It is NaN if the chance of a miss is too small for a double.
        return 1.0 if math.isnan(miss) else 1.0 - miss

    def smallest_change(self, noise: _Noise) -> float:
        """Return the smallest change that is shown with the power wanted."""
        error, freedom, critical = self._welch(noise)
        return self.margin + error * float(
            scipy.special.nctdtrinc(freedom, 1.0 - self.power, critical)
        )

    def size(self, noise: _Noise, change: float) -> int:
        """Return the smallest size that shows a change with the power wanted."""
        # From the least size on there is a degree of freedom, and so an interval.
        least = max(MIN_FOR_VARIANCE, math.ceil(2.0 / noise.density - 1e-9))
        sizes = range(least, _MAX_READINGS)
        index = bisect_left(
            sizes, x=True, key=lambda size: self.power_of(noise.at(size), change) >= self.power
        )
        if index == len(sizes):
            raise InvalidInput(
                f"change is {change!r} with a margin of {self.margin!r}: out of reach, it takes "
                f"more than {_MAX_READINGS:.0e} readings"
            )
        return sizes[index]


def _variance_range(freedom: float, confidence: float) -> tuple[float, float]:
    """Return by which factors the true variance may differ from its estimate (chi-square)."""
    tail = (1.0 - confidence) / 2.0
    return (
        freedom / float(2.0 * scipy.special.gammainccinv(freedom / 2.0, tail)),
        freedom / float(2.0 * scipy.special.gammaincinv(freedom / 2.0, tail)),
    )


def _at_confidence(pilot: Estimate, noise: _Noise, confidence: float) -> Estimate:
    """Return the pilot with an interval of that confidence."""
    if pilot.confidence == confidence:
        return pilot
    quantile = student_t(noise.degrees_of_freedom, confidence)
    half_width = quantile * noise.error * abs(pilot.value)
    low, high = pilot.value - half_width, pilot.value + half_width
    return replace(pilot, low=low, high=high, confidence=confidence)


def _too_small(n: int, unit: str) -> tuple[Notice, ...]:
    """Note that a plan is for fewer than an interval should rest on."""
    wanted, code = {
        "invocation": (MIN_INVOCATIONS, Code.FEW_INVOCATIONS),
        "piece": (MIN_PIECES, Code.FEW_PIECES),
        "reading": (MIN_FOR_AUTOCORRELATION, Code.FEW_READINGS),
    }[unit]
    return (Notice.of(code, "plan", n=n, wanted=wanted),) if n < wanted else ()


_TAIL = 0.025  # less likely counts, on one side, contradict the nominal coverage

_Key = tuple[str, ...]
_Run = tuple[str, Analysis, str | None]  # when it began, its analysis, its id


def track_record(
    pairs: Sequence[tuple[Estimate, Estimate]],
    *,
    names: Sequence[str] = (),
    host: str | None = None,
) -> TrackRecord:
    """Count how often an earlier interval contained the estimate of a later, independent run.

    The later run errs as well: an interval held if that of the difference, at its confidence,
    contains 0. Of an asymmetric interval that end counts which points towards the other run.

    Parameters
    ----------
    pairs
        Estimate of the earlier and of the later run, all at one confidence, no run in two pairs.
    names
        Subjects, one name per pair; or empty.
    host
        Name of the machine.

    Notes
    -----
    The interval of the difference is MOVER (Zou & Donner 2008), or Welch (1947) if both are
    symmetric; that of the share is Wilson (1927), 95%. The nominal coverage is tested by the
    binomial test, each tail 2.5%.

    Examples
    --------
    >>> first, second, third = (
    ...     Estimate(value=value, low=value - 1.0, high=value + 1.0, confidence=0.95, n=50,
    ...              n_effective=50.0, method="long-run-variance")
    ...     for value in (10.0, 11.2, 11.6))
    >>> record = track_record([(first, second), (first, third)])
    >>> record.held, record.pairs, round(record.low, 3), round(record.high, 3)
    (1, 2, 0.095, 0.905)
    """
    confidence = pairs[0][0].confidence
    distances = [_distance(earlier, later) for earlier, later in pairs]
    held = sum(distance <= 1.0 for distance in distances)
    share = estimate_proportion(held, len(pairs))
    return TrackRecord(
        held=held,
        pairs=len(pairs),
        low=share.low,
        high=share.high,
        confidence=confidence,
        standing=_standing(held, len(pairs), confidence),
        widening=_widening(distances, confidence),
        host=host,
        by_name=_tallies(names, distances),
    )


def track_records(pairs: Iterable[RunPair]) -> tuple[TrackRecord, ...]:
    """Count how often intervals held, for each machine and each confidence by itself.

    Parameters
    ----------
    pairs
        From `pair_runs`.

    Returns
    -------
    tuple of TrackRecord
        Those with the most pairs first.
    """
    groups: dict[tuple[str, float], list[RunPair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.host, pair.earlier.confidence].append(pair)
    records = [
        track_record(
            [(pair.earlier, pair.later) for pair in group],
            names=[pair.name for pair in group],
            host=host,
        )
        for (host, _), group in groups.items()
    ]
    return tuple(sorted(records, key=lambda record: -record.pairs))


def pair_runs(records: Iterable[RunRecord]) -> tuple[RunPair, ...]:
    """Pair runs of the same thing, in order of time, on the same machine.

    The first is paired with the second, the third with the fourth, so that the pairs are
    independent. Figures are at full speed if both runs have one. Only complete runs
    count, which met their target or found it out of reach, each with the first metric that must be
    satisfied. Runs are the same when name, subject, machine, interpreter, commit, metric,
    statistic, method, confidence, work amount and kind of rounds are.

    Parameters
    ----------
    records
        In any order.
    """
    runs: dict[_Key, list[_Run]] = defaultdict(list)
    for record in records:
        _add_run(runs, record)
    pairs = []
    for (name, host, *_), group in runs.items():
        group.sort(key=lambda run: run[0])
        for one, other in zip(group[::2], group[1::2], strict=False):  # an odd one waits
            earlier, later = _at_one_speed(one[1], other[1])
            pairs.append(
                RunPair(
                    name=name,
                    host=host,
                    earlier=earlier,
                    later=later,
                    earlier_id=one[2],
                    later_id=other[2],
                )
            )
    return tuple(pairs)


def _add_run(runs: dict[_Key, list[_Run]], record: RunRecord) -> None:
    """Add a complete run to those that it may be paired with."""
    where, analysis, decision = record.provenance, record.analysis(), record.decision
    complete = decision is not None and decision.complete
    if where is None or analysis is None or analysis.estimate is None or not complete:
        return
    metric, options = analysis.metric, record.options
    key = (
        record.name,
        str(where.host),
        json.dumps(dict(record.subject), sort_keys=True, default=str),
        where.python,
        str(where.commit),
        metric.name,
        metric.unit,
        metric.averaging,
        options.statistic,
        options.method,
        str(options.autocorrelation_limit),
        str(options.trim),
        options.detector,
        options.rounds,
        str(options.work),
        str(analysis.estimate.confidence),
    )
    runs[key].append((where.started_at, analysis, record.run_id))


def _at_one_speed(one: Analysis, other: Analysis) -> tuple[Estimate, Estimate]:
    """Return what two runs show: their figures at full speed, if both have one."""
    figures = [run.at_full_pace for run in (one, other) if run.at_full_pace is not None]
    measured = [run.estimate for run in (one, other) if run.estimate is not None]
    earlier, later = figures if len(figures) == 2 else measured
    return earlier, later


def _distance(earlier: Estimate, later: Estimate) -> float:
    """Return the difference in half-widths of its interval, towards 0; up to 1 if it held."""
    baseline, candidate = (uncertain_value(run, symmetric=False) for run in (earlier, later))
    contrast = Contrast(baseline=baseline, candidate=candidate)
    size = (earlier.n, earlier.n_effective)
    difference = difference_of(contrast, earlier.confidence, size, "held-out")
    value = difference.value
    if value == 0.0:
        return 0.0
    half_width = value - difference.low if value > 0.0 else difference.high - value
    return abs(value) / half_width if half_width > 0.0 else math.inf


def _standing(held: int, pairs: int, confidence: float) -> Standing:
    """Test the nominal coverage: Wilson's interval is too short to do so when few or all held."""
    if float(scipy.special.bdtr(held, pairs, confidence)) < _TAIL:
        return Standing.LESS
    at_least = 1.0 - float(scipy.special.bdtr(held - 1, pairs, confidence)) if held else 1.0
    return Standing.MORE if at_least < _TAIL else Standing.AS_CLAIMED


def _widening(distances: list[float], confidence: float) -> float | None:
    """Return the distance within which the nominal share of pairs lies; None with too few."""
    most = math.ceil(confidence * len(distances) - 1e-9)
    if most >= len(distances):
        return None
    widening = sorted(distances)[most - 1]
    return widening if math.isfinite(widening) else None


def _tallies(names: Sequence[str], distances: list[float]) -> tuple[Tally, ...]:
    by_name: dict[str, list[bool]] = defaultdict(list)
    for name, distance in zip(names, distances, strict=False):  # there may be no names
        by_name[name].append(distance <= 1.0)
    tallies = [Tally(name=name, held=sum(held), pairs=len(held)) for name, held in by_name.items()]
    return tuple(sorted(tallies, key=lambda tally: (tally.share, -tally.pairs)))
