"""What a surface answers beside predictions: the best point, crossovers, what was left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchrigor.model import Estimate, Floats
from benchrigor.model.one_line import OneLine
from benchrigor.workbench.surfaces.factors import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(OneLine):
    """The configuration whose predicted answer is best.

    Parameters
    ----------
    point
        The level of each factor.
    estimate
        Predicted answer: of the model, which the luck of a single sample moves little.
    regret
        How much better, relative to its answer, the truly best point may be; from 0 on.
    """

    point: Point
    estimate: Estimate
    regret: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover(OneLine):
    """Where two configurations change places.

    Parameters
    ----------
    factor
        That both have in common, and that is varied.
    at
        Its level where they are equal.
    below, above
        Which of them is better on either side.
    probability
        That they change places so within the range of the factor.
    """

    factor: str
    at: Estimate
    below: Point
    above: Point
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(OneLine):
    """What the other samples predict of a point that was measured.

    Parameters
    ----------
    point
        The level of each factor.
    measured
        What was measured there.
    predicted
        What the model of all others says; its interval is for a measurement there.
    """

    point: Point
    measured: Estimate
    predicted: Estimate


def changes_of_sign(
    difference: Floats, drawn: Floats, confidence: float
) -> Iterable[tuple[Floats, float, bool]]:
    """Yield, of each change of sign, place and interval in steps, probability, and direction."""
    tails = (1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0
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
        low, high = np.quantile(places, tails)
        at = np.array([place, min(low, place), max(high, place)])
        yield at, float(np.mean(has_change)), is_first_better
