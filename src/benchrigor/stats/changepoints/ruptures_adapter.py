"""The change-point estimators of ruptures as detectors."""

from __future__ import annotations

import copy
import inspect
import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import ChangePoints
from benchrigor.model.checks import refuse, wrong_number
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, as_series
from benchrigor.stats.changepoints.variance_inflation import inflation_across

_MEDIAN_TO_SD = 1.4826  # standard over median absolute deviation of normal readings
_MEAN_TO_SD = math.sqrt(math.pi / 2.0)  # standard over mean absolute deviation of normal readings
_LARGEST = 1e100  # size of standardised readings that may still be squared and added


@runtime_checkable
class Estimator(Protocol):
    """What the change-point estimators of ruptures have in common."""

    def fit(self, signal: Any, /) -> Any:
        """Take a signal of shape (n, 1)."""

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the ends of all segments, ascending, n included."""


@dataclass(frozen=True, slots=True, eq=False)
class RupturesDetector(OneLine):
    """Makes a change-point estimator of ruptures a `protocols.Detector`.

    It is called with readings, shape (n,), and returns `ChangePoints`. The estimator sees the
    readings less their median and over their median absolute deviation scaled to a standard
    deviation (the mean absolute deviation where more than half of the readings are equal). A
    constant series, and fewer than twice the estimator's ``min_size``, have no change points.

    Parameters
    ----------
    estimator
        ``Pelt``, ``Binseg``, ``BottomUp``, ``Window``, ``KernelCPD``, or any object with their
        ``fit`` and ``predict``; not fitted yet. It is copied for every series.
    pen
        Penalty: the least decrease of cost that a change point must bring; None for 3 ln n.

    Raises
    ------
    InvalidInput
        When the estimator is none, or fitted, or takes no ``pen``; on a call, when the values are
        invalid, or the estimator cannot cut that many.

    Notes
    -----
    The default is the usual penalty for cost "l2", too large where changes widen the median
    absolute deviation, too small where tails are heavy: of 40 lognormal series without change
    (sigma 0.8, n = 500) 39 got change points. "rbf" kernels miss small changes and short segments.
    Other costs have other scales: give ``pen``. Such estimators ignore autocorrelation and promise
    no rate of false change points: the ``level`` of the result is None.

    Examples
    --------
    >>> import ruptures
    >>> detect = RupturesDetector(ruptures.Pelt(model="l2", jump=1))
    >>> detect([4.0] * 30 + [9.0] * 130 + [4.0] * 30).indices
    (30, 160)
    """

    estimator: Estimator
    _: KW_ONLY
    pen: float | None = None

    def __post_init__(self) -> None:
        problems = _wrong_estimator(self.estimator)
        if self.pen is not None:
            problems += wrong_number("pen", self.pen)
        refuse(problems)
        # Fitted twice, some estimators keep what they learned from the first series.
        object.__setattr__(self, "estimator", copy.deepcopy(self.estimator))

    def __call__(self, values: npt.ArrayLike) -> ChangePoints:
        """Return the change points of readings, shape (n,)."""
        series = as_series(values)
        readings = _standardise(series)
        long_enough = series.size >= 2 * getattr(self.estimator, "min_size", 1)
        return ChangePoints(
            indices=self._detect(readings) if long_enough and readings.any() else (),
            n=series.size,
            level=None,
            inflation=inflation_across(series),
        )

    def _detect(self, readings: Floats) -> tuple[int, ...]:
        n = readings.size
        pen = 3.0 * math.log(n) if self.pen is None else self.pen
        estimator = copy.deepcopy(self.estimator)
        try:
            estimator.fit(readings[:, np.newaxis])
            ends = [int(end) for end in estimator.predict(pen=pen)]
        except Exception as error:
            raise InvalidInput(
                f"{type(estimator).__name__} cannot cut {n} values with pen={pen:.3g} ({error!r}): "
                "give more values or another pen"
            ) from error
        return tuple(end for end in ends if end != n)


def _standardise(series: Floats) -> Floats:
    """Return the readings in standard deviations from their median; zeros if all are equal."""
    deviations: Floats = series - np.median(series)
    sizes = np.abs(deviations)
    scale = _MEDIAN_TO_SD * float(np.median(sizes)) or _MEAN_TO_SD * float(sizes.mean())
    return deviations / max(scale, float(sizes.max()) / _LARGEST) if scale else deviations


def _wrong_estimator(estimator: object) -> list[str]:
    if isinstance(estimator, type) or not isinstance(estimator, Estimator):
        expected = "an object with fit and predict, such as ruptures.Pelt()"
        return [f"estimator is {estimator!r}, expected {expected}"]
    name, fitted = type(estimator).__name__, getattr(estimator, "n_samples", None)
    if fitted is not None:
        return [f"estimator {name} is fitted to {fitted} samples already, expected a new one"]
    if "pen" not in inspect.signature(estimator.predict).parameters:
        return [f"{name}.predict takes no pen, expected an estimator that stops at a penalty"]
    return []
