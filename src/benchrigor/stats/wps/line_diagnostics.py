"""What makes a line through work and duration weaker than it looks."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Code, Estimate, Evidence, Floats, Notice, Severity
from benchrigor.stats.wps.hc3 import Regression

__all__ = ["doubts"]

_FEW = 10
_POOR_PREDICTION = 0.1
_WIDE = 0.25
_EXACT = 1e-9
"""Error of prediction below which every round is on the line."""
_RAMP = 0.7
"""Rank correlation of work with the order of rounds from which on a drift passes for work; in
sessions it stays below 0.6."""
_ALIKE = 2.0
"""Largest over smallest amount below which a line says little of other amounts."""
_TINY = 1e-300


def doubts(
    work: Floats,
    line: Regression,
    speed: Estimate | None,
    prediction_error: float,
    *,
    merged: int,
) -> tuple[Notice, ...]:
    """Say what makes the line through work and duration weaker than it looks.

    Parameters
    ----------
    work
        Amounts, in round order, in whatever unit.
    line
        As fitted, to rounds or merged rounds.
    speed
        None where there is none.
    prediction_error
        Relative to the mean duration.
    merged
        Rounds summed into one before the fit.
    """
    n = line.residuals.size
    rounds = "rounds" if merged == 1 else "merged rounds"
    found: list[tuple[Code, Severity, bool, str, Evidence]] = [
        (
            Code.NO_SPEED,
            Severity.REFUSAL,
            speed is None,
            "Duration does not surely grow with work (the slope may be 0): more rounds are "
            "needed, or a larger range of work.",
            {"n": n},
        ),
        (
            Code.CONSTANT,
            Severity.WARNING,
            not line.residuals.any(),
            f"{'The' if prediction_error < _EXACT else 'Most of the'} {n} {rounds} lie exactly on "
            "a line: the intervals have no width.",
            {"n": n},
        ),
        (
            Code.FEW_READINGS,
            Severity.WARNING,
            n < _FEW,
            f"Only {n} {rounds}: below {_FEW}, autocorrelation and unequal noise cannot be seen.",
            {"n": n, "wanted": _FEW},
        ),
    ]
    said = tuple(
        Notice(code=code, severity=severity, sentence=sentence, evidence=evidence)
        for code, severity, holds, sentence, evidence in found
        if holds
    )
    return (*said, *_doubtful(work, speed, prediction_error), *_ramp(work))


def _doubtful(work: Floats, speed: Estimate | None, prediction_error: float) -> tuple[Notice, ...]:
    """Doubt the model where it predicts badly, tells little, or was hardly put to the test."""
    spread = float(work.max() / max(work.min(), _TINY))
    width = 0.0 if speed is None else speed.relative_half_width
    if prediction_error <= _POOR_PREDICTION and width <= _WIDE and spread >= _ALIKE:
        return ()
    known = "" if speed is None else f", the speed is known to {width:.1%} (25% wanted)"
    notice = Notice.warning(
        Code.WPS_DOUBTFUL,
        f"The line predicts a round to {prediction_error:.1%} (10% wanted){known}, the largest "
        f"amount of work is {spread:.3g} times the smallest: duration may not be linear in "
        "work, or the overhead not steady, or the amounts too alike.",
        prediction_error=prediction_error,
        relative_half_width=width,
        spread=spread,
    )
    return (notice,)


def _ramp(work: Floats) -> tuple[Notice, ...]:
    """Warn of amounts that rise, or fall, from round to round."""
    _, places, counts = np.unique(work, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2.0)[places]  # alike amounts rank alike
    together = float(np.corrcoef(ranks, np.arange(work.size))[0, 1])
    if work.size < _FEW or abs(together) < _RAMP:
        return ()
    rise = "rises" if together > 0.0 else "falls"
    notice = Notice.warning(
        Code.RAMP,
        f"Work {rise} from round to round, so that whatever drifts in time passes for work: "
        "run the amounts in bisecting or random order.",
        rank_correlation=together,
    )
    return (notice,)
