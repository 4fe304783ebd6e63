"""Further detectors: those that options name, and the estimators of ruptures.

Options name the published method, and PELT of ruptures.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import ChangePoints
from benchrigor.model.checks import refuse, wrong_choice, wrong_number
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, as_series
from benchrigor.stats.changepoints.detector import MIN_SEGMENT, MIN_SEGMENTS, detect_changes
from benchrigor.stats.changepoints.variance_inflation import inflation_across, settle_ends
from benchrigor.stats.series.long_run_variance import batch_means

_MEDIAN_TO_SD = 1.4826  # standard over median absolute deviation of normal readings
_MEAN_TO_SD = math.sqrt(math.pi / 2.0)  # standard over mean absolute deviation of normal readings
_LARGEST = 1e100  # size of standardised readings that may still be squared and added


@runtime_checkable
class Estimator(Protocol):
    """The interface of change-point estimators of ruptures."""

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
        # Fitted twice, some estimators keep values of the first series.
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


BUILT_IN, PUBLISHED, PELT = "ranks", "edm", "pelt"
# The cost is quadratic: pelt takes 1 s for this number of readings, and a minute for ten times it.
_MOST_POINTS = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDetector:
    """A detector with a name; PELT sees a long series as up to 2048 means of neighbours."""

    name: str
    search: Callable[[Any], ChangePoints]
    min_segment: int

    def __call__(self, values: npt.ArrayLike) -> ChangePoints:
        """Return the change points of readings, shape (n,), at whole multiples of a batch."""
        series = as_series(values)
        if takes_longest(self):
            return self.search(series)
        size = -(-series.size // _MOST_POINTS)
        points = self.search(batch_means(series, size))
        points = ChangePoints(
            indices=tuple(size * index for index in points.indices),
            n=series.size,
            level=None,
            inflation=inflation_across(series),
        )
        return settle_ends(series, points, self.min_segment)


def takes_longest(detector: object) -> bool:
    """Whether the longest segment between its change points counts whole, as published."""
    return isinstance(detector, NamedDetector) and detector.name == PUBLISHED


def detector_to_trim(name: str, trim: object) -> NamedDetector | None:
    """Return the detector of a name; refuse one that is unknown, or has nothing to cut."""
    problems = wrong_choice("detector", name, (BUILT_IN, PUBLISHED, PELT))
    if not (problems or trim or name == BUILT_IN):
        problems = [f"detector is {name!r}, expected one only where phases are looked for"]
    refuse(problems)
    return detector_named(name)


def detector_named(name: str, min_segment: int | None = None) -> NamedDetector | None:
    """Return the detector of a name in `Options`; None for the built-in one, which trims itself."""
    if name == BUILT_IN:
        return None
    min_segment = min_segment or MIN_SEGMENTS.get(name, MIN_SEGMENT)
    search: Callable[[Any], ChangePoints]
    if name == PUBLISHED:
        search = partial(detect_changes, method=name, min_segment=min_segment)
    else:
        ruptures: Any = import_module("ruptures")  # only who asks for it waits for it
        search = RupturesDetector(ruptures.Pelt(model="l2", min_size=min_segment))
    return NamedDetector(name=name, search=search, min_segment=min_segment)


def as_detector(detector: Any) -> Any:
    """Adapt a ruptures estimator; return a detector, or None for the built-in one, unchanged."""
    if not isinstance(detector, type):
        if detector is None or callable(detector):
            return detector
        if isinstance(detector, Estimator):
            return RupturesDetector(detector)
    raise InvalidInput(
        f"detector is {detector!r}, expected a function that returns the ChangePoints of readings, "
        "or a ruptures estimator such as ruptures.Pelt()"
    )
