"""What is estimated: the mean, or a quantile called by its name."""

from __future__ import annotations

import re

from benchrigor.errors import InvalidInput

__all__ = ["quantile_named"]

_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,9})?)")


def quantile_named(statistic: object) -> float | None:
    """Return the share of readings below the quantile that is meant; None for the mean.

    Parameters
    ----------
    statistic
        "mean", "median", or "p" and a percentage above 0 and below 100: "p10", "p99.9".

    Raises
    ------
    InvalidInput
        For anything else.

    Examples
    --------
    >>> quantile_named("mean"), quantile_named("median"), quantile_named("p99")
    (None, 0.5, 0.99)
    """
    word = statistic if isinstance(statistic, str) else ""
    if word == "mean":
        return None
    if word == "median":
        return 0.5
    found = _PERCENTILE.fullmatch(word)
    if found is None or float(found[1]) == 0.0:
        raise InvalidInput(
            f"statistic is {statistic!r}, expected 'mean', 'median' or a percentile such as 'p10'"
        )
    return float(found[1]) / 100.0
