"""The published subsessions of rounds of various work: their pairs are merged before the fit."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model.series import Floats
from benchrigor.stats.series.long_run_variance import batch_means
from benchrigor.stats.series.subsessions import MIN_MERGED, merge_subsessions, refuse_correlated
from benchrigor.stats.wps.hc3 import CoefficientError, Regression


def merge_pairs(work: Floats, durations: Floats, limit: float) -> tuple[Floats, Floats, int]:
    """Merge adjacent rounds until times per work of neighbours hardly correlate.

    Return the mean work and the mean duration of each subsession, and the rounds in each; rounds
    left over at the end are dropped.
    """
    merged = merge_subsessions(durations / work, limit=limit)
    if merged.size is None or merged.means.size < MIN_MERGED:
        raise NotEstimable(refuse_correlated(merged, f"{work.size} rounds", n=work.size))
    return batch_means(work, merged.size), batch_means(durations, merged.size), merged.size


def least_squares_errors(
    fit: Regression, combinations: npt.ArrayLike
) -> tuple[CoefficientError, ...]:
    """Return combinations of coefficients with the standard errors of ordinary least squares."""
    freedom = float(fit.residuals.size - fit.design.shape[1])
    variance = float(fit.residuals @ fit.residuals) / freedom
    inverse = np.linalg.inv(fit.design.T @ fit.design)
    return tuple(
        CoefficientError(
            value=float(row @ fit.coefficients),
            standard_error=math.sqrt(variance * float(row @ inverse @ row)),
            degrees_of_freedom=freedom,
            inflation=1.0,
        )
        for row in np.asarray(combinations, dtype=np.float64)
    )
