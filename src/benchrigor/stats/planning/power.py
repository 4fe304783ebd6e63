"""Power: how many readings a comparison takes, and the cost of a narrower interval."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import scipy

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import refuse, wrong_number, wrong_share
from benchrigor.model.sample_size import Plan, Price
from benchrigor.stats.series.interval import (
    MAX_RELATIVE_WIDTH,
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    PIECE_MEANS,
    required_readings,
    satterthwaite,
    student_t,
)
from benchrigor.stats.statistics.shares_and_quantiles import whole_of
from benchrigor.stats.statistics.statistic import (
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
