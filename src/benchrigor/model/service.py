"""How fast a stage fed by a queue could go if it never had to wait."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.text import percent, show_estimate

__all__ = ["RateReason", "ServiceMoments", "ServiceProcess", "ServiceRate"]


_COLUMNS = 80
_ROUND_S = 999.5
"""From there on three digits would end in a power of ten."""


class RateReason(enum.StrEnum):
    """Why a service rate has not converged."""

    NO_NONBLOCKING = "no-nonblocking-period"
    """No period was free of waiting, or none in a row long enough."""
    FEW_NONBLOCKING = "few-nonblocking-periods"
    """So few periods were free of waiting that those which were are a lucky choice."""
    FEW_ITEMS = "too-few-items-per-period"
    """Periods hold so few items that staying free of waiting is luck."""
    APART = "readings-apart"
    """The quantile lies more than a quarter above the mean of the same periods."""
    UNSTABLE_PERIOD = "unstable-period"
    """The realised widths of the periods do not keep to the one wanted."""
    NO_ITEMS = "no-items"
    """The stage was busy, and finished nothing."""
    NEVER_BUSY = "never-busy"
    """All of the time was spent waiting."""
    NOT_CONVERGED = "not-converged"
    """The rate is still moving, or its interval is still wide: it is the best so far."""


class ServiceProcess(enum.StrEnum):
    """What the service times look like; a hint, by their first three moments."""

    DETERMINISTIC = "deterministic"
    EXPONENTIAL = "exponential"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMoments:
    """Moments of the time that one item takes a stage.

    Parameters
    ----------
    n
        Periods that they were learned from.
    mean_s
        Mean, in seconds.
    variance_s2
        Variance, in seconds squared.
    third_s3
        Third central moment, in seconds cubed.
    process
        Which of the textbook's processes they resemble.
    """

    n: int
    mean_s: float
    variance_s2: float
    third_s3: float
    process: ServiceProcess

    @property
    def variation(self) -> float:
        """Squared coefficient of variation: 0 for deterministic service, 1 for exponential."""
        return self.variance_s2 / self.mean_s**2


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRate:
    """The rate at which a stage serves while it does not wait, over one stretch of time.

    Parameters
    ----------
    estimate
        In items per second of wall time; None where there is nothing to estimate from. With
        "busy-time" its n counts stretches of the window, which are at most 256.
    converged
        Whether the rate is as well known as was asked for.
    reason
        Why it is not; None where it is.
    method
        "busy-time" or "quantile".
    start_s, stop_s
        The window that the rate speaks of, in seconds since the first period that was told.
    periods
        Periods in the window.
    unblocked
        Those of them in which the stage never waited.
    used
        Those that count.
    period_s
        Their mean width, in seconds.
    items
        Items served in the periods that count.
    servers
        Threads or processes that served side by side; the rate is that of all of them.
    cpu_rate
        In items per second of the stage's processor time; None where that is not known. Where it
        is known of some periods only, it speaks of the items of these.
    delay_share
        Share of the busy time that the stage waited for a processor; None where it is not known.
        Where it is known of some periods only, it is a share of the busy time of these.
    moments
        Of the service time; None where there is too little to learn them from.
    notices
        What the reader must know.
    """

    estimate: Estimate | None
    converged: bool
    reason: RateReason | None
    method: str
    start_s: float
    stop_s: float
    periods: int
    unblocked: int
    used: int
    period_s: float
    items: int
    servers: int = 1
    cpu_rate: Estimate | None = None
    delay_share: float | None = None
    moments: ServiceMoments | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def length_s(self) -> float:
        """How long the window is, in seconds."""
        return self.stop_s - self.start_s

    @property
    def unblocked_share(self) -> float:
        """Share of the periods in which the stage never waited."""
        return self.unblocked / self.periods if self.periods else 0.0

    @property
    def standing(self) -> str:
        """Whether it has converged, or why not, in a few words."""
        if self.converged:
            return "converged"
        if self.reason in {None, RateReason.NOT_CONVERGED}:
            return "not converged"
        return str(self.reason).replace("-", " ")

    def __str__(self) -> str:
        number = "no rate" if self.estimate is None else show_estimate(self.estimate, "items/s")
        window = f"{_seconds(self.start_s)} to {_seconds(self.stop_s)} s"
        share = f"{percent(self.unblocked_share, digits=2)} unblocked"
        line = f"{number} · {window} · {share} · {self.standing}"
        # What the eye can miss gives way to what must be on the screen.
        return line if len(line) <= _COLUMNS else f"{number} · {window} · {self.standing}"


def _seconds(time_s: float) -> str:
    return f"{time_s:.3g}" if time_s < _ROUND_S else f"{time_s:,.0f}"
