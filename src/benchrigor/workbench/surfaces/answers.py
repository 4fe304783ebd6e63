"""Further answers of a surface: the best point, crossovers, leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Estimate
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats
from benchrigor.workbench.surfaces.factors import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(OneLine):
    """The configuration with the best predicted answer.

    Parameters
    ----------
    point
        The levels by factor.
    estimate
        The model's prediction, which the luck of a single sample moves little.
    regret
        How much better, relative to its answer, the truly best point may be; from 0 on.
    """

    point: Point
    estimate: Estimate
    regret: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover(OneLine):
    """The level at which two configurations change places.

    Parameters
    ----------
    factor
        The varied factor, which both have in common.
    at
        Its level with equal answers.
    below, above
        The better one on either side.
    probability
        That they change places in this way within the range of the factor.
    """

    factor: str
    at: Estimate
    below: Point
    above: Point
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(OneLine):
    """The prediction of a measured point from all other points.

    Parameters
    ----------
    point
        The levels by factor.
    measured
        The measurement there.
    predicted
        The prediction from the other points; its interval is for a measurement there.
    """

    point: Point
    measured: Estimate
    predicted: Estimate


def changes_of_sign(
    difference: Floats, drawn: Floats
) -> Iterable[tuple[float, Floats, float, bool]]:
    """Yield changes of sign: place and drawn places in steps, probability, and direction."""
    for index in np.flatnonzero((difference[:-1] > 0.0) != (difference[1:] > 0.0)):
        is_first_better = bool(difference[index] > 0.0)
        better = drawn > 0.0 if is_first_better else drawn <= 0.0
        changes = better[:, :-1] & ~better[:, 1:]
        far = np.where(changes, np.abs(np.arange(changes.shape[1]) - index), np.inf)
        nearest = np.argmin(far, axis=1)
        row = np.arange(len(drawn))
        before, after = drawn[row, nearest], drawn[row, nearest + 1]
        has_change = changes[row, nearest]
        share = before / np.where(has_change, before - after, 1.0)
        end = np.where(better[:, 0], difference.size - 1.0, 0.0)
        places = np.where(has_change, nearest + share, end)
        place = index + difference[index] / (difference[index] - difference[index + 1])
        yield float(place), places, float(np.mean(has_change)), is_first_better
