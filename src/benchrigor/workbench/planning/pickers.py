"""The published policies pick the next load, depending on the saturation of the last one.

Shivam, Marupadi, Chase, Subramaniam and Babu, "Cutting Corners: Workbench Automation for Server
Benchmarking" (USENIX ATC 2008), section 4.2.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from benchrigor.workbench.planning.steps import Goal

INCREMENT = 20.0  # "small, fixed" in the paper, which does not give it
_COLLAPSED = 0.004  # of a load: such a narrow bracket has a wrong end, and no peak inside
_REOPENED = 0.1
_LEAST_RATIO, _REAL = 1e-9, 1e-9


class Picker(ABC):
    """Picks the next load. ``ratio`` is the mean response at the last one, over its limit."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._low, self._high = 0.0, math.inf  # judged unsaturated, and saturated

    @abstractmethod
    def _further(self, load: float) -> float:
        """Return a greater load, while none was saturated."""

    def next(self, load: float, ratio: float) -> float | None:
        """Return the next load; None if none is left between the least and the greatest."""
        goal = self._goal
        if ratio < 1.0:
            if load == goal.max_load:
                return None
            self._low = max(self._low, load)
        else:
            if load <= goal.min_load:
                return None
            self._high = min(self._high, load)
        return goal.within(self._choose(load, ratio))

    def _choose(self, load: float, ratio: float) -> float:
        if math.isinf(self._high):
            return self._further(load)
        if self._high - self._low < _COLLAPSED * self._high:  # trust the last result
            if ratio < 1.0:
                self._high = load * (1.0 + _REOPENED)
            else:
                self._low = load * (1.0 - _REOPENED)
        return (self._low + self._high) / 2.0


class Binsearch(Picker):
    """Double the load until it saturates, then halve the interval (Algorithm 3)."""

    def _further(self, load: float) -> float:
        return 2.0 * load


class Linear(Picker):
    """Raise the load by a small fixed step until it saturates, then halve the interval."""

    def _further(self, load: float) -> float:
        return load + INCREMENT


class ModelGuided(Binsearch):
    """Fit 1/R = A - B load through two loads, and pick the load at the limit (Algorithm 4).

    The two are the last load, and the other load with the response nearest to the limit. If the
    model has no solution, or one below half the least or above twice the greatest load so far,
    `Binsearch` picks the load.
    """

    points = 2

    def __init__(self, goal: Goal) -> None:
        super().__init__(goal)
        self._tried: dict[float, float] = {}

    def _choose(self, load: float, ratio: float) -> float:
        self._tried[load] = max(ratio, _LEAST_RATIO)
        others = sorted(self._tried.keys() - {load}, key=lambda load: abs(self._tried[load] - 1.0))
        near = [load, *others[: self.points - 1]]
        least, greatest = min(self._tried) / 2.0, max(self._tried) * 2.0
        if len(near) == self.points and math.isfinite(ratio):
            predicted = self._predict(near, [self._tried[load] for load in near])
            if predicted is not None and least <= predicted <= greatest:
                return predicted
        return super()._choose(load, ratio)

    def _predict(self, loads: list[float], ratios: list[float]) -> float | None:
        """Return the load at which the model reaches the limit."""
        (one, two), (inverse, other_inverse) = loads, [1.0 / ratio for ratio in ratios]
        slope = (other_inverse - inverse) / (one - two)
        return one + (inverse - 1.0) / slope if slope > 0.0 else None


class Quadratic(ModelGuided):
    """Fit R = a + b load + c load^2 through three loads instead; the other model of the paper."""

    points = 3

    def _predict(self, loads: list[float], ratios: list[float]) -> float | None:
        if not all(map(math.isfinite, ratios)):
            return None
        last = loads[0]  # the origin, so that three close loads stay distinct
        parabola = np.poly1d(np.polyfit([load - last for load in loads], ratios, 2))
        roots = (parabola - 1.0).roots
        real = [float(root.real) for root in roots if abs(root.imag) < _REAL * abs(last + root)]
        return last + min(real, key=abs) if real else None


PICKERS: dict[str, type[Picker]] = {
    "strawman": Linear,  # its search ends when a load saturates
    "linear": Linear,
    "binsearch": Binsearch,
    "model": ModelGuided,
    "quadratic": Quadratic,
}
