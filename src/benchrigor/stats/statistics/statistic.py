"""What an estimate is to be: the settings of a measurement, as statistics take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.model import ChangePoints, Estimate
from benchrigor.model.analysis import Kind
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.changepoints.named_detector import takes_longest
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE, refuse_wide
from benchrigor.stats.series.level import COMPLETE, TRANSIENTS
from benchrigor.stats.series.wall_time_blocks import BLOCKS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferencesAlong:
    """Times of fixed work between the readings of a series; arrays of shape (k,).

    Parameters
    ----------
    stops
        Index after the last reading before each, ascending.
    log_s
        Logarithms of their seconds.
    busy
        Share of the readings during which a processor worked: only that part follows the pace.
    """

    stops: Ints
    log_s: Floats
    busy: float = 1.0

    def of(self, indices: Ints) -> ReferencesAlong:
        """Return the references along some of the readings, whose indices ascend."""
        stops, first = np.unique(np.searchsorted(indices, self.stops), return_index=True)
        return replace(self, stops=stops, log_s=self.log_s[first])


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which statistic is estimated, of what kind of readings, and by which method."""

    kind: Kind = Kind.UNIT_READINGS
    q: float | None = None  # None for the mean
    confidence: float = 0.95
    # Estimate the stable phase instead of all readings; or what shares at both ends leave.
    trim: bool | tuple[float, float] = False
    method: str = LONG_RUN_VARIANCE
    autocorrelation_limit: float = 0.1  # of neighbouring subsessions
    harmonic: bool = False  # the reciprocal of the mean of reciprocals
    share: bool = False  # readings are outcomes, 0 or 1, or shares of trials
    higher: bool = False  # readings are higher if the machine is faster
    narrow: bool = False  # an interval wider than its value is no number
    batch: int = 1  # calls that each reading averages
    goes_on: bool = False  # more readings could follow: the last ones are no cool-down
    references: ReferencesAlong | None = None  # of one series: the machine may have made steps
    detector: Callable[[Floats], ChangePoints] | None = None  # None for the built-in one

    @property
    def takes_longest(self) -> bool:
        """Whether the longest segment of each series counts whole, as published."""
        return takes_longest(self.detector)

    @property
    def rates(self) -> bool:
        """Whether what is averaged is higher if the machine is faster."""
        return self.higher or self.harmonic

    def number(self, estimate: Estimate) -> Estimate:
        """Return an estimate that is a number; raise NotEstimable if it is too wide for one."""
        return refuse_wide(estimate) if self.narrow else estimate

    def transients(self, series: int) -> tuple[float, ...]:
        """Return the time constants of the transients fitted along with the level of each series.

        Several invocations show their cool-down together; a single one may end in an unseen one.
        Single readings have no warm-up, and what was not looked for is taken as it is.
        """
        if self.trim is not True or self.kind in (Kind.READINGS, Kind.PIECES):
            return ()
        if self.method == BLOCKS:
            return ()
        return COMPLETE if series == 1 else TRANSIENTS
