"""How much to measure: sizes that a comparison needs, and what a narrower interval costs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real

from scipy import special

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice, Plan, Price
from benchrigor.stats.comparison.fieller_mover import Contrast, UncertainValue, difference_of
from benchrigor.stats.estimators.estimation import ENOUGH
from benchrigor.stats.estimators.estimation import INVOCATION_MEANS as BY_INVOCATION
from benchrigor.stats.series.interval import required_readings, student_t
from benchrigor.stats.series.level import FEW

__all__ = ["plan_sizes"]

_BELOW_ZERO = -math.ulp(0.0)
_RANGES = {
    "change": (0.0, math.inf, "a finite number above 0"),
    "power": (0.0, 1.0, "between 0 and 1, both excluded"),
    "confidence": (0.0, 1.0, "between 0 and 1, both excluded"),
    "margin": (_BELOW_ZERO, math.inf, "a finite number from 0 on"),
    "least": (0.0, math.inf, "a whole number from 1 on"),
}
_LARGEST_RATIO = 1e9
_MOST = 10**12
"""Nobody takes more readings than that: beyond it a wish is called out of reach."""


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
    """Tell how many readings show a change, and how many narrower intervals take.

    Parameters
    ----------
    pilot
        What is known so far.
    change
        Relative change of the mean that is to be seen, more than ``margin``.
    power
        Chance of seeing it that is wanted, in (0, 1).
    confidence
        Of the comparison's interval and of the price list, in (0, 1); None for the pilot's.
    margin
        The change counts as seen when the whole interval of the ratio lies beyond this relative
        margin, as in a comparison; 0 for the classical test.
    half_widths
        Relative half-widths whose prices are wanted.
    least
        Size below which the stopping rule judges nothing; no price is lower.

    Returns
    -------
    Plan
        Sizes count what the pilot's ``n`` counts: readings, or invocations. Those of the
        comparison are per side.

    Raises
    ------
    InvalidInput
        When an argument is out of range, the pilot's value is (nearly) 0, or the change is out of
        reach.
    NotEstimable
        When the pilot is a single invocation, or holds no noise.

    Notes
    -----
    Both sides are taken to have the pilot's noise and the same size. The candidate is shown to
    exceed (1 + m) times the baseline by Welch's t test of y_c - (1 + m) y_b, which is what the
    interval of the ratio says (Fieller 1954). With s the standard error of one side's mean over
    the pilot's value, the statistic is noncentral t with the degrees of freedom of Welch (1947)
    and noncentrality (change - m) / (s sqrt(1 + (1 + m)^2)). Only a verdict in the right
    direction counts.

    The range of sizes is what the chi-square interval of the pilot's variance gives, as if the
    readings were normal: with heavy tails it is wider. A pilot that by chance shows little noise
    plans too little, and sizes from small pilots reach a little less power on average: who wants
    to be sure takes ``n_high``.

    Examples
    --------
    >>> pilot = Estimate(value=10.0, low=9.9, high=10.1, confidence=0.95, n=400,
    ...                  n_effective=400.0, method="long-run-variance")
    >>> found = plan_sizes(pilot, change=0.01)
    >>> found.n, found.n_low, found.n_high
    (1626, 1422, 1877)
    >>> [price.n for price in found.prices]
    [16, 100, 400, 1600]
    """
    level = pilot.confidence if confidence is None else confidence
    wish = {"change": change, "power": power, "confidence": level, "margin": margin}
    widths = _check({**wish, "least": least}, half_widths, pilot)
    noise = _noise_of(pilot)
    _refuse_what_tells_nothing(noise, pilot.value)
    test = _Test(power=power, confidence=level, margin=margin)
    factors = _variance_range(noise.degrees_of_freedom, level)
    n, n_low, n_high = (
        test.size(replace(noise, error=noise.error * math.sqrt(factor)), change)
        for factor in (1.0, *factors)
    )
    estimate = _at_confidence(pilot, noise, level)
    by_invocation = pilot.method == BY_INVOCATION
    return Plan(
        pilot=estimate,
        counted_in="invocation" if by_invocation else "reading",
        change=change,
        margin=margin,
        power=power,
        n=n,
        n_low=n_low,
        n_high=n_high,
        power_now=test.chance(noise, change),
        change_now=test.smallest(noise),
        prices=tuple(_price(estimate, width, factors, least) for width in widths),
        # A pilot is short of its target by nature.
        notices=(
            *(each for each in pilot.notices if each.code is not Code.NOT_CONVERGED),
            *_few(n, by_invocation=by_invocation),
        ),
    )


def _price(estimate: Estimate, width: float, factors: tuple[float, float], least: int) -> Price:
    n = required_readings(estimate, width)
    low, high = (math.ceil(n * factor) for factor in factors)
    return Price(half_width=width, n=max(n, least), n_low=max(low, least), n_high=max(high, least))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    """A relative standard error, and how it shrinks when more is measured.

    Parameters
    ----------
    error
        Standard error over the size of the value.
    degrees_of_freedom
        Of the standard error.
    n
        Readings (or invocations) that it comes from.
    density
        Degrees of freedom that each of so many brings.
    """

    error: float
    degrees_of_freedom: float
    n: int
    density: float

    @property
    def least(self) -> int:
        """Size from which on there is a degree of freedom, and so an interval."""
        return max(2, math.ceil(2.0 / self.density - 1e-9))

    def at(self, size: int) -> _Noise:
        """Return the noise of an estimate from ``size`` readings (or invocations).

        The variance of a mean shrinks with the size; degrees of freedom, with the one that the
        mean took, grow with it.
        """
        return replace(
            self,
            error=self.error * math.sqrt(self.n / size),
            degrees_of_freedom=max(self.density * size - 1.0, min(1.0, self.degrees_of_freedom)),
            n=size,
        )


def _noise_of(estimate: Estimate) -> _Noise:
    """Return the noise of an estimate, from its interval where it carries no standard error."""
    freedom = estimate.degrees_of_freedom
    if freedom is None:
        freedom = max(estimate.n_effective - 1.0, 1.0)
    error = estimate.standard_error
    if error is None:
        error = estimate.half_width / student_t(freedom, estimate.confidence)
    # Long series are averaged before their variance is learned, which leaves them less freedom
    # than shorter ones would keep: half of the effective readings, or so.
    density = max(freedom + 1.0, estimate.n_effective / 2.0) / estimate.n
    # A value of 0 with any noise is refused before, one without any afterwards.
    size = abs(estimate.value) or 1.0
    return _Noise(error=error / size, degrees_of_freedom=freedom, n=estimate.n, density=density)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """The comparison that is planned for."""

    power: float
    confidence: float
    margin: float

    def _spread(self, noise: _Noise) -> tuple[float, float, float]:
        """Return standard error, degrees of freedom and critical value of the comparison."""
        candidate = _side(1.0, noise)
        found = difference_of(
            Contrast(baseline=_side(1.0 + self.margin, noise), candidate=candidate),
            self.confidence,
            (noise.n, float(noise.n)),
            "planned",
        )
        error, freedom = found.standard_error, found.degrees_of_freedom
        assert error is not None  # noqa: S101  # for the type checker
        assert freedom is not None  # noqa: S101  # likewise
        return error, freedom, found.half_width / error

    def chance(self, noise: _Noise, change: float) -> float:
        """Return the chance that the whole interval lies beyond the margin."""
        error, freedom, critical = self._spread(noise)
        miss = float(special.nctdtr(freedom, (change - self.margin) / error, critical))
        # It is NaN where the chance of a miss is too small for a double.
        return 1.0 if math.isnan(miss) else 1.0 - miss

    def smallest(self, noise: _Noise) -> float:
        """Return the smallest change that has the chance wanted."""
        error, freedom, critical = self._spread(noise)
        return self.margin + error * float(special.nctdtrinc(freedom, 1.0 - self.power, critical))

    def size(self, noise: _Noise, change: float) -> int:
        """Return the smallest size at which a change has the chance wanted."""
        sizes = range(noise.least, _MOST)
        index = bisect_left(
            sizes, x=True, key=lambda size: self.chance(noise.at(size), change) >= self.power
        )
        if index == len(sizes):
            raise InvalidInput(
                f"change is {change!r} with a margin of {self.margin!r}: out of reach, it takes "
                f"more than {_MOST:.0e} readings"
            )
        return sizes[index]


def _side(factor: float, noise: _Noise) -> UncertainValue:
    error = factor * noise.error
    return UncertainValue(
        value=factor, below=error, above=error, degrees_of_freedom=noise.degrees_of_freedom
    )


def _variance_range(freedom: float, confidence: float) -> tuple[float, float]:
    """Return by which factors the true variance may differ from one of so much freedom."""
    tail = (1.0 - confidence) / 2.0
    return (
        freedom / float(2.0 * special.gammainccinv(freedom / 2.0, tail)),
        freedom / float(2.0 * special.gammaincinv(freedom / 2.0, tail)),
    )


def _at_confidence(estimate: Estimate, noise: _Noise, confidence: float) -> Estimate:
    """Return the estimate with an interval of that confidence."""
    if estimate.confidence == confidence:
        return estimate
    reach = student_t(noise.degrees_of_freedom, confidence) * noise.error * abs(estimate.value)
    return replace(
        estimate,
        low=estimate.value - reach,
        high=estimate.value + reach,
        confidence=confidence,
    )


def _check(wish: Mapping[str, object], half_widths: object, pilot: Estimate) -> tuple[float, ...]:
    """Return the half-widths; raise InvalidInput naming everything out of range, in one go."""
    problems = [
        f"{name} is {wish[name]!r}, expected {expected}"
        for name, (low, high, expected) in _RANGES.items()
        if not _between(wish[name], low, high)
    ]
    widths: tuple[float, ...] = ()
    try:
        widths = tuple(half_widths)  # type: ignore[arg-type]  # what is no sequence is told
    except TypeError:
        problems.append(f"half_widths is {half_widths!r}, expected a sequence such as (0.05, 0.01)")
    problems += [
        f"half_widths holds {width!r}, expected finite numbers above 0"
        for width in widths
        if not _between(width, 0.0, math.inf)
    ]
    change, margin = wish["change"], wish["margin"]
    if not problems and not change > margin:  # type: ignore[operator]  # both are numbers here
        problems.append(f"change is {change!r}, expected more than the margin, {margin!r}")
    if pilot.half_width > 0.0 and pilot.relative_half_width > _LARGEST_RATIO:
        problems.append(f"the value is {pilot.value!r}: no change is relative to (nearly) 0")
    if problems:
        raise InvalidInput(problems)
    return widths


def _between(item: object, low: float, high: float) -> bool:
    """Whether it is a number between the ends, both excluded."""
    return isinstance(item, Real) and not isinstance(item, bool) and low < float(item) < high


def _refuse_what_tells_nothing(noise: _Noise, value: float) -> None:
    if noise.n == 1:
        raise NotEstimable(
            Notice.refusal(
                Code.THIS_PROCESS_ONLY,
                "One invocation tells nothing of how much invocations differ: a plan needs "
                "two or more.",
                invocations=1,
            )
        )
    if noise.error == 0.0:
        raise NotEstimable(
            Notice.refusal(
                Code.CONSTANT,
                f"The {noise.n} readings hold no noise that a plan could start from.",
                n=noise.n,
                value=value,
            )
        )


def _few(n: int, *, by_invocation: bool) -> tuple[Notice, ...]:
    """Warn of a plan for so few that its intervals would be believed too readily."""
    wanted = ENOUGH if by_invocation else FEW
    if n >= wanted:
        return ()
    why = "a rare case is easily missed" if by_invocation else "autocorrelation cannot be seen"
    return (
        Notice.note(
            Code.FEW_INVOCATIONS if by_invocation else Code.FEW_READINGS,
            f"{n} a side would do, but below {wanted} {why}: take {wanted}.",
            n=n,
            wanted=wanted,
        ),
    )
