"""The traffic light of a run, and the same without steps (Shah et al. 2018, section 3)."""

from __future__ import annotations

import scipy

from benchrigor.model.interference import Light
from benchrigor.model.series import as_series

YELLOW_FROM, RED_ABOVE = 7.5, 15.0  # limits in per cent of the wall time
_STEEPNESS, _MIDDLE = 0.35, (YELLOW_FROM + RED_ABOVE) / 2.0


def light_of(percent: float) -> Light:
    """Return the light of a share of interference: green below 7.5 %, red above 15 %, else yellow.

    Raises
    ------
    InvalidInput
        When it is no finite number.

    Examples
    --------
    >>> str(light_of(7.5))
    'yellow'
    """
    share = float(as_series([percent], name="percent")[0])
    if share < YELLOW_FROM:
        return Light.GREEN
    return Light.RED if share > RED_ABOVE else Light.YELLOW


def probability_high(percent: float) -> float:
    """Return the probability that a run with this share of interference is highly interfered.

    p(x) = 1 / (1 + exp(-0.35 (x - 11.25))) (Shah et al. 2018, section 3).

    Raises
    ------
    InvalidInput
        When it is no finite number.

    Examples
    --------
    >>> [round(probability_high(percent), 2) for percent in (7.5, 11.25, 15.0)]
    [0.21, 0.5, 0.79]
    """
    share = float(as_series([percent], name="percent")[0])
    return float(scipy.special.expit(_STEEPNESS * (share - _MIDDLE)))
