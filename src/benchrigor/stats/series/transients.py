"""Transients that fade from either end of a series, as columns beside its level."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Floats

TRANSIENTS = (1 / 30, 1 / 7)  # time constants fitted beside the level, as shares of the readings

COMPLETE = (*TRANSIENTS, -1 / 24)  # of a complete series, which may end with a cool-down


def transient_basis(size: int, shares: tuple[float, ...]) -> Floats:
    """Return exponentials at the centres of points, a row each; negative shares grow to the end."""
    rates = 1.0 / np.array(shares)[:, np.newaxis]
    centres = (np.arange(size) + 0.5) / size
    basis: Floats = np.exp(-rates * (centres - (rates < 0.0)))
    return basis
