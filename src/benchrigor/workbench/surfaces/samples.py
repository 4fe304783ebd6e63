"""What a map asks for and what it is told: samples of points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchrigor.model.estimate import Estimate
from benchrigor.model.one_line import OneLine
from benchrigor.workbench.surfaces.factors import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(OneLine):
    """A point whose answer a map asks for.

    Parameters
    ----------
    id
        Counted from 0.
    point
        The level of each factor.
    seed_load
        Where a search for a peak may begin: the peak of the nearest finished sample; None before
        there is one.
    accuracy
        Relative half-width at which the answer is known well enough.
    """

    id: int
    point: Mapping[str, Level]
    seed_load: float | None = None
    accuracy: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(OneLine):
    """What a sample found.

    Parameters
    ----------
    sample
        What was asked for.
    estimates
        By response; empty for a sample that failed, or whose answer is only known to be beyond a
        limit.
    at_least, at_most
        Where the answer is only known to be beyond: a peak that was not reached, or not kept at
        the lowest load.
    host
        Where it was measured; None where nobody told.
    cost_s
        Seconds that it took.
    reason
        Why there is no estimate.
    """

    sample: Sample
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    host: str | None = None
    cost_s: float = 0.0
    reason: str | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing at all is known of its answer."""
        return not self.estimates and self.at_least is None and self.at_most is None
