"""Diagnostics of a work line: what its user must know, as Notices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchrigor.model import Code, Estimate, Notice, WpsFit
from benchrigor.model.series import Floats
from benchrigor.model.text import many, show_amount
from benchrigor.stats.wps.hc3 import Regression
from benchrigor.stats.wps.lack_of_fit import MIN_RANGE, NEGLIGIBLE, LackOfFit

_ENOUGH_ROUNDS = 10
_POOR_PREDICTION = 0.1
_WIDE = 0.25
_EXACT = 1e-9  # error of prediction below which every round is on the line
# Rank correlation of work with the order of rounds from which on a drift is taken for work; in
# sessions it stays below 0.6
_RAMP = 0.7
_TINY = 1e-300
_MATERIAL = 0.5  # half-widths by which outliers may move the speed


def diagnose_line(
    work: Floats, line: Regression, speed: Estimate | None, prediction_error: float
) -> Iterator[Notice]:
    """Yield what weakens a line fitted to rounds."""
    n = line.residuals.size
    if speed is None:
        sentence = (
            "Whether duration grows with work is open (the slope is less than its half-width): "
            "more rounds would tell, or a larger range of work."
        )
        yield Notice.refusal(Code.NO_SPEED, sentence, n=n)
    if not line.residuals.any():
        exact = "The" if prediction_error < _EXACT else "Most of the"
        sentence = f"{exact} {n} rounds lie exactly on a line: the intervals have no width."
        yield Notice.warning(Code.CONSTANT, sentence, n=n)
    if n < (wanted := _ENOUGH_ROUNDS):
        hidden = "autocorrelation and unequal noise"
        sentence = f"Only {n} rounds: fewer than {wanted} do not show {hidden}."
        yield Notice.warning(Code.FEW_READINGS, sentence, n=n, wanted=wanted)
    yield from _doubtful_model(work, speed, prediction_error)
    yield from _ramp(work)


def _doubtful_model(
    work: Floats, speed: Estimate | None, prediction_error: float
) -> Iterator[Notice]:
    spread = float(work.max() / max(work.min(), _TINY))
    width = 0.0 if speed is None else speed.relative_half_width
    if prediction_error > _POOR_PREDICTION or width > _WIDE or spread < MIN_RANGE:
        known = "" if speed is None else f", the speed is known to {width:.1%} (25% wanted)"
        yield Notice.warning(
            Code.WPS_DOUBTFUL,
            f"The line predicts a round to {prediction_error:.1%} (10% wanted){known}, the largest "
            f"amount of work is {spread:.3g} times the smallest: duration may not be linear in "
            "work, or the overhead not steady, or the amounts too similar.",
            prediction_error=prediction_error,
            relative_half_width=width,
            spread=spread,
        )


def _ramp(work: Floats) -> Iterator[Notice]:
    _, places, counts = np.unique(work, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2.0)[places]  # equal amounts rank equally
    correlation = float(np.corrcoef(ranks, np.arange(work.size))[0, 1])
    if work.size >= _ENOUGH_ROUNDS and abs(correlation) >= _RAMP:
        sentence = (
            f"Work {'rises' if correlation > 0.0 else 'falls'} from round to round, so that a "
            "drift in time is taken for work; amounts in bisecting or random order prevent that."
        )
        yield Notice.warning(Code.RAMP, sentence, rank_correlation=correlation)


def diagnose_lack_of_fit(lack: LackOfFit) -> Iterator[Notice]:
    """Yield a warning where duration is not linear in work."""
    bend, shape = lack.bend, lack.shape
    if bend is not None and lack.significant:
        change = f"{'grows' if bend.value > 0.0 else 'shrinks'} by {abs(bend.value):.0%}"
        known = f" (duration grows like {shape})" if shape in ("n log n", "quadratic") else ""
        sentence = (
            f"Duration is not linear in work: the time per unit of work {change} from the smallest "
            f"to the largest amount{known}."
        )
        value, low, high = bend.value, bend.low, bend.high
        yield Notice.warning(Code.NOT_LINEAR, sentence, bend=value, low=low, high=high, shape=shape)


def diagnose_further(fit: WpsFit, work: Floats, duration_s: Floats) -> Iterator[Notice]:
    """Yield a warning where rounds of larger amounts than those fitted are far from the line.

    The line is known to the half-width of its slope, and rounds to twice the error at a round that
    it was fitted without.
    """
    if fit.speed is None or not work.size:
        return
    expected_s = fit.overhead.value + fit.slope.value * work
    excess = float(duration_s.sum() / expected_s.sum()) - 1.0
    if abs(excess) <= fit.slope.relative_half_width + 2.0 * fit.prediction_error:
        return
    largest = float(work.max())
    sentence = (
        f"{many(work.size, 'round')} of larger amounts, up to {show_amount(largest, '')}, took "
        f"{abs(excess):.0%} {'more' if excess > 0.0 else 'less'} time than the line says: its "
        "speed does not hold for them."
    )
    yield Notice.warning(Code.NOT_LINEAR, sentence, excess=excess, largest=largest)


def diagnose_outliers(
    outliers: int, n: int, speed: Estimate | None, faster: float | None
) -> Iterator[Notice]:
    """Yield a warning where outliers change the speed, which is that much faster without them."""
    sentence = f"{outliers} of {n} rounds lie far from the line"
    if not outliers:
        return
    if speed is None or (
        faster is not None and abs(faster) <= max(_MATERIAL * speed.relative_half_width, NEGLIGIBLE)
    ):
        yield Notice.note(Code.OUTLYING_ROUNDS, f"{sentence}.", n=n, outliers=outliers)
        return
    change = "there is no speed"
    if faster is not None:
        change = f"the speed is {abs(faster):.1%} {'higher' if faster > 0.0 else 'lower'}"
    sentence += f" and change the result: without them {change}."
    yield Notice.warning(Code.OUTLYING_ROUNDS, sentence, n=n, outliers=outliers, faster=faster)
