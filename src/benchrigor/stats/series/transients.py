"""Transients that fade from either end of a series, as columns beside its level."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Floats

__all__ = ["COMPLETE", "TRANSIENTS", "transient_basis"]

TRANSIENTS = (1 / 30, 1 / 7)
"""Time constants of the transients fitted beside the level, as shares of the kept readings."""


COMPLETE = (*TRANSIENTS, -1 / 24)
"""The same for a series that has come to its end, where a cool-down may be under way."""


def transient_basis(size: int, shares: tuple[float, ...]) -> Floats:
    """Return exponentials that fade from the start, one per row, at the centres of ``size`` points.

    Parameters
    ----------
    size
        Number of points.
    shares
        Time constants, as shares of ``size``; those below 0 are of growth towards the end.
    """
    rates = 1.0 / np.array(shares)[:, np.newaxis]
    centres = (np.arange(size) + 0.5) / size
    basis: Floats = np.exp(-rates * (centres - (rates < 0.0)))
    return basis
