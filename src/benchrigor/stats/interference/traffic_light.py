"""What a share of time lost means: a light, and the same without steps."""

from __future__ import annotations

from scipy import special

from benchrigor.model import Light, as_series

__all__ = ["light_of", "probability_high"]

_LOW, _HIGH = 7.5, 15.0
_STEEPNESS, _MIDDLE = 0.35, 11.25


def light_of(percent: float) -> Light:
    """Return the light of a share of time lost: green below 7.5 %, red above 15 %, else yellow.

    Raises
    ------
    InvalidInput
        When it is no finite number.

    Examples
    --------
    >>> str(light_of(7.5))
    'yellow'
    """
    lost = float(as_series([percent], name="percent")[0])
    return Light.GREEN if lost < _LOW else Light.RED if lost > _HIGH else Light.YELLOW


def probability_high(percent: float) -> float:
    """Return how likely a run that lost this share of its time is highly interfered with.

    The light without its steps: a logistic function with 1/2 in the middle of yellow, 11.25 %.

    Raises
    ------
    InvalidInput
        When it is no finite number.

    Notes
    -----
    Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
    performance' (Euro-Par 2018), section 3.

    Examples
    --------
    >>> [round(probability_high(percent), 2) for percent in (7.5, 11.25, 15.0)]
    [0.21, 0.5, 0.79]
    """
    lost = float(as_series([percent], name="percent")[0])
    return float(special.expit(_STEEPNESS * (lost - _MIDDLE)))
