"""Limits as people write them: p99=500ms, failed=1%."""

from __future__ import annotations

from contextlib import suppress

from benchrigor.units import Quantity, positive_seconds_of, quantity_of, share_of
from benchrigor.workbench.data import FAILED, Limit
from benchrigor.workbench.good_requests import read_slo
from benchrigor.workbench.loadgen.load_command import scale_of


def limit_of(metric: str, text: str, unit: str = "") -> Limit:
    """Read the most that a metric may be; a bare number is in the unit in which it is read.

    ValueError says what is wrong.

    Examples
    --------
    >>> [limit_of(*each).at_most for each in (("p99", "50ms"), ("failed", "1%"), ("depth", "9"))]
    [0.05, 0.01, 9.0]
    """
    if metric == FAILED:
        return Limit(metric=metric, at_most=share_of(text))
    is_time = Limit(metric=metric, at_most=1.0).is_of_time or quantity_of(unit) is Quantity.TIME
    if unit or not is_time:
        with suppress(ValueError):
            return Limit(metric=metric, at_most=float(text.removesuffix(unit)) * scale_of(unit))
    if is_time:
        return Limit(metric=metric, at_most=positive_seconds_of(text, bare_s=None))
    raise ValueError(f"{metric} is {text!r}, expected a number such as 40")


def limit_of_good(text: str) -> Limit:
    """Read a limit of the share of good requests; InvalidInput with all that is wrong."""
    metric, at_most = read_slo(text)
    return Limit(metric=metric, at_most=at_most)
