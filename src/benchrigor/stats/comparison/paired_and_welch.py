"""Two sides held against each other: independent, or paired so that what they share cancels.

Paired levels are compared by the level of c - b for their difference, and of c - R b for their
ratio R, each with its own long-run variance (delta method: R is held at its estimate). Quantiles
of paired series are compared by both sides' own intervals and their long-run correlation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Floats, Notice
from benchrigor.stats.comparison.fieller_mover import Contrast, Side, exact_side, side_of
from benchrigor.stats.comparison.samples import (
    Given,
    estimate_given,
    estimate_values,
    invocation_values,
    thin_tails,
    unit_of,
)
from benchrigor.stats.estimators.quantile import quantile_of
from benchrigor.stats.phases.trimming import bearable_phase, measured_part
from benchrigor.stats.series.interval import estimate_level
from benchrigor.stats.series.level import FEWEST, fit_level, too_few

__all__ = ["Held", "hold_apart", "hold_invocations", "hold_readings", "stable_pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Both sides held against each other.

    Parameters
    ----------
    baseline, candidate
        Each side's own estimate.
    ratio, difference
        What to read either from; without a ratio where the baseline is not above 0.
    methods
        What the difference and the ratio call theirs.
    unit
        What both sides count; None where they differ.
    n, n_effective
        Units in all: of both sides, or pairs.
    notices
        What the reader must know.
    """

    baseline: Estimate
    candidate: Estimate
    ratio: Contrast | None
    difference: Contrast
    methods: tuple[str, str]
    unit: str | None
    n: int
    n_effective: float
    notices: tuple[Notice, ...]


def hold_apart(
    first: Given, second: Given, q: float | None, confidence: float, *, trim: bool
) -> Held:
    """Hold independent sides against each other.

    Parameters
    ----------
    first, second
        Baseline and candidate.
    q
        Share below the quantile; None for the mean.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Remove the non-stable phases of each series first.
    """
    one, two = (estimate_given(each, q, confidence, trim=trim) for each in (first, second))
    units = {unit_of(first), unit_of(second)}
    # A speed is the reciprocal of what was fitted: its reaches differ.
    symmetric = (q is None or units == {"invocation"}) and "round" not in units
    contrast = _contrast(one, two, symmetric=symmetric)
    weak = _merged((*thin_tails(first, q), *one.notices), (*thin_tails(second, q), *two.notices))
    processes = _processes(*map(_of_one_process, (first, second), (one, two)))
    return Held(
        baseline=one,
        candidate=two,
        ratio=contrast,
        difference=contrast,
        methods=("Welch", "Fieller") if symmetric else ("MOVER", "MOVER"),
        unit=units.pop() if len(units) == 1 else None,
        n=one.n + two.n,
        n_effective=one.n_effective + two.n_effective,
        notices=(*processes, *weak),
    )


def hold_invocations(
    first: tuple[Floats, ...],
    second: tuple[Floats, ...],
    q: float | None,
    confidence: float,
    *,
    trim: bool,
) -> Held:
    """Hold pairs of invocations against each other; parameters as for `hold_apart`."""
    values = (invocation_values(each, q, confidence, trim=trim) for each in (first, second))
    # A pair counts where both of its invocations do.
    pairs = [pair if None not in pair else (None, None) for pair in zip(*values, strict=True)]
    one, two = (estimate_values(side, confidence) for side in zip(*pairs, strict=True))
    kept = np.array([pair for pair in pairs if None not in pair], dtype=np.float64)
    held = _levels(kept[:, 0], kept[:, 1], one, two, ())
    # How many there are, the sides have said, in words of their own.
    constant = [each for each in held.notices if each.code is Code.CONSTANT]
    weak = _merged((*thin_tails(first, q), *one.notices), (*thin_tails(second, q), *two.notices))
    return replace(
        held, notices=(*(each for each in weak if each.code is not Code.CONSTANT), *constant)
    )


def hold_readings(
    first: Floats,
    second: Floats,
    q: float | None,
    confidence: float,
    *,
    transients: tuple[float, ...],
) -> Held:
    """Hold interleaved readings of the same number against each other.

    Parameters
    ----------
    first, second
        Baseline and candidate, shape (n,) each.
    q
        Share below the quantile; None for the mean.
    confidence
        Nominal coverage, in (0, 1).
    transients
        Time constants of what is fitted beside the levels; empty where nothing was cut.

    Raises
    ------
    NotEstimable
        With fewer than two pairs, or when a side allows no number.
    """
    if q is None:
        one, two = (
            estimate_level(fit_level(each, transients=transients), confidence)
            for each in (first, second)
        )
        held = _levels(first, second, one, two, transients)
    else:
        one, two = (
            quantile_of(each, q, confidence, transients=transients) for each in (first, second)
        )
        below = (np.asarray(first <= one.value), np.asarray(second <= two.value))
        contrast = replace(
            _contrast(one, two, symmetric=False), correlation=_correlation(*below, transients)
        )
        held = Held(
            baseline=one,
            candidate=two,
            ratio=contrast,
            difference=contrast,
            methods=("MOVER", "MOVER"),
            unit="pair",
            n=one.n,
            n_effective=min(one.n_effective, two.n_effective),
            notices=_merged(one.notices, two.notices),
        )
    return replace(
        held, notices=(_only("The pairs come of one run", "this run only"), *held.notices)
    )


def stable_pairs(first: Floats, second: Floats, confidence: float) -> slice:
    """Return the pairs of which both series, and what they differ by, are stable.

    Noise that both share hides in either a warm-up that their difference shows.

    Raises
    ------
    NotEstimable
        When one of them has no stable phase, or all together fewer than two pairs.
    """
    middle = float(np.median(first))
    ratio = float(np.median(second)) / middle if middle else 1.0
    apart = second - ratio * (first - middle)
    kept = [measured_part(bearable_phase(each, confidence)) for each in (first, second, apart)]
    inside = slice(max(each.start for each in kept), min(each.stop for each in kept))
    if inside.stop - inside.start < FEWEST:
        raise NotEstimable(too_few(max(inside.stop - inside.start, 0), FEWEST))
    return inside


def _contrast(one: Estimate, two: Estimate, *, symmetric: bool) -> Contrast:
    return Contrast(
        baseline=side_of(one, symmetric=symmetric), candidate=side_of(two, symmetric=symmetric)
    )


def _levels(
    first: Floats, second: Floats, one: Estimate, two: Estimate, transients: tuple[float, ...]
) -> Held:
    shift = fit_level(second - first, transients=transients)
    ratio = None
    effective = shift.n_effective
    # Shared drift may widen the baseline's own interval past 0, but readings above 0 have a mean
    # above 0.
    if one.low > 0.0 or float(first.min()) > 0.0:
        change = two.value / one.value
        rest = fit_level(second - change * first, transients=transients)
        ratio = _alone(1.0, change, rest.standard_error / one.value, rest.degrees_of_freedom)
        effective = rest.n_effective
    return Held(
        baseline=one,
        candidate=two,
        ratio=ratio,
        difference=_alone(0.0, shift.level, shift.standard_error, shift.degrees_of_freedom),
        methods=("paired", "paired"),
        unit="pair",
        n=first.size,
        n_effective=effective,
        notices=_prefixed("Differences", estimate_level(shift, one.confidence).notices),
    )


def _alone(against: float, value: float, error: float, freedom: float) -> Contrast:
    """Hold a value, whose error is all there is, against a number."""
    return Contrast(
        baseline=exact_side(against),
        candidate=Side(value=value, below=error, above=error, degrees_of_freedom=freedom),
    )


def _correlation(
    first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], transients: tuple[float, ...]
) -> float:
    """Return the long-run correlation of the shares of readings below two quantiles.

    The difference of two shares, each divided by its error, has variance 2 - 2 rho.
    """
    shares = [each.astype(np.float64) for each in (first, second)]
    errors = [fit_level(each, transients=transients).standard_error for each in shares]
    if min(errors) == 0.0:
        return 0.0
    apart = fit_level(shares[1] / errors[1] - shares[0] / errors[0], transients=transients)
    return min(1.0, max(-1.0, 1.0 - apart.standard_error**2 / 2.0))


def _of_one_process(given: Given, found: Estimate) -> bool:
    """Whether a side speaks for one process: by what was given, or by what its estimate says."""
    said = any(each.code is Code.THIS_PROCESS_ONLY for each in found.notices)
    return said or unit_of(given) == "reading"


def _processes(first: bool, second: bool) -> tuple[Notice, ...]:  # as they come
    """Say which side is one process only."""
    sides = (("baseline", first), ("candidate", second))
    single = [side for side, alone in sides if alone]
    if not single:
        return ()
    who, what = f"The {single[0]} is one process", "this process"
    if len(single) == len(sides):
        who, what = "Baseline and candidate are one process each", "these processes"
    return (_only(who, f"{what} only, and drift passes for a difference: interleave them"),)


def _only(who: str, what: str) -> Notice:
    return Notice.warning(Code.THIS_PROCESS_ONLY, f"{who}: the verdict holds for {what}.")


def _merged(first: tuple[Notice, ...], second: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Gather the notices of both sides; what both say is said once."""
    first, second = (
        tuple(each for each in side if each.code is not Code.THIS_PROCESS_ONLY)
        for side in (first, second)
    )
    both = [each for each in first if each in second]
    one, two = ([each for each in side if each not in both] for side in (first, second))
    return (*both, *_prefixed("Baseline", one), *_prefixed("Candidate", two))


def _prefixed(name: str, notices: Iterable[Notice]) -> tuple[Notice, ...]:
    return tuple(replace(each, sentence=f"{name}: {each.sentence}") for each in notices)
