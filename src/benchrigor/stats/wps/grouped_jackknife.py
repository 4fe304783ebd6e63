"""Standard errors of a line from subsessions: it is fitted without each of them in turn."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.model.series import Floats
from benchrigor.stats.series.subsessions import MIN_MERGED, merge_subsessions, refuse_correlated
from benchrigor.stats.wps.hc3 import CoefficientError, Regression

_DETERMINED = 1e-9  # of the determinant that must be left without a subsession


def subsession_size(fit: Regression, limit: float) -> int:
    """Return how many adjacent rounds to merge so that residuals of neighbours hardly correlate."""
    merged = merge_subsessions(fit.residuals, limit=limit)
    if merged.size is None or merged.means.size < MIN_MERGED:
        n = fit.residuals.size
        raise NotEstimable(refuse_correlated(merged, f"the residuals of {n} rounds", n=n))
    return merged.size


def jackknife_errors(
    fit: Regression, combinations: npt.ArrayLike, size: int
) -> tuple[CoefficientError, ...]:
    """Return combinations of coefficients, with standard errors from subsessions of this size.

    The variance is (h - 1)/h times the sum of squares of what the coefficients move by without
    each of h groups of adjacent rounds (Kuensch 1989, blocks that do not overlap), and has h - k
    degrees of freedom. Rounds left over at the end belong to the last group.
    """
    moves, single = _moves(fit, size), _moves(fit, 1)
    errors = []
    for row in np.asarray(combinations, dtype=np.float64):
        grouped, plain = (
            (len(moved) - 1.0) / len(moved) * float(np.sum((moved @ row) ** 2))
            for moved in (moves, single)
        )
        errors.append(
            CoefficientError(
                value=float(row @ fit.coefficients),
                standard_error=math.sqrt(grouped),
                degrees_of_freedom=float(len(moves) - row.size),
                inflation=max(grouped / plain, 1.0) if plain > 0.0 else 1.0,
            )
        )
    return tuple(errors)


def _moves(fit: Regression, size: int) -> Floats:
    """Return by how much the coefficients move without each group, shape (h, k)."""
    design, n = fit.design, fit.residuals.size
    starts = np.arange(n // size) * size
    scores = np.add.reduceat(design * fit.residuals[:, None], starts)
    squares = np.add.reduceat(design[:, :, None] * design[:, None, :], starts)
    whole = squares.sum(axis=0)
    left = np.linalg.det(whole - squares)
    if left.min() <= _DETERMINED * float(np.linalg.det(whole)):
        sentence = f"The work of {n} rounds differs in one subsession of {size} only."
        raise NotEstimable(Notice.refusal(Code.TOO_FEW_READINGS, sentence, n=n))
    moves: Floats = np.linalg.solve(whole - squares, scores[:, :, None])[:, :, 0]
    return moves
