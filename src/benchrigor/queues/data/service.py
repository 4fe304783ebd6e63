"""The service rate of a stage: how fast it serves while it does not wait."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from benchrigor.control_characters import escaped
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import show_estimate
from benchrigor.units import percent

_COLUMNS = 80


class RateReason(enum.StrEnum):
    """Why a service rate has not converged."""

    NO_NONBLOCKING = "no-nonblocking-period"  # no period was free of waiting, or too few in a row
    # The few periods that were free of waiting were chosen by slow service.
    FEW_NONBLOCKING = "few-nonblocking-periods"
    # Periods hold too few items: some are free of waiting by chance.
    FEW_ITEMS = "too-few-items-per-period"
    # The quantile lies more than a quarter above the mean of the same periods.
    APART = "readings-apart"
    UNSTABLE_PERIOD = "unstable-period"  # hardly any period has the wanted width
    NO_ITEMS = "no-items"  # the stage was busy and finished no item
    PROVISIONAL = "provisional"  # the sampling period is sought; the rate is by "busy-time"
    NEVER_BUSY = "never-busy"  # the stage waited all of the time
    # The interval is wider than the target, or the quantile is not steady yet.
    NOT_CONVERGED = "not-converged"


class ServiceProcess(enum.StrEnum):
    """Which textbook process the service times resemble, by their variance."""

    DETERMINISTIC = "deterministic"
    EXPONENTIAL = "exponential"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMoments(OneLine):
    """Moments of the service time of one item.

    Parameters
    ----------
    n
        Number of observations.
    mean_s, variance_s2, third_s3
        Mean, variance and third central moment, in powers of seconds.
    process
        Which textbook process they resemble.
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
class ServiceRate(OneLine):
    """The rate at which a stage serves while it does not wait, in one window of time.

    Parameters
    ----------
    estimate
        Items per second of wall time; None if it cannot be estimated. With "busy-time" the window
        is kept in up to 256 parts, and n counts these.
    converged
        Whether the rate is as precise as the target.
    reason
        Why it is not; None if it is.
    method
        "busy-time" or "quantile".
    start_s, stop_s
        The window, in seconds since the first period.
    periods, unblocked, used
        Number of periods in the window, of periods without waiting, and of periods that count.
    period_s
        Mean width of the periods, in seconds.
    items
        Items served in the periods that count.
    servers
        Threads or processes that serve side by side; the rate is their total.
    cpu_rate
        Items per second of processor time, in the periods in which it is known; else None.
    delay_share
        Share of the busy time that the stage waited for a processor, in the periods in which it
        is known; else None.
    moments
        Of the service time; None with fewer than 30 counts, of periods or of some 64 items.
    item_bytes, byte_rate
        Mean bytes of an item, and the rate in bytes per second for items of this size; None if
        bytes are not counted.
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
    item_bytes: float | None = None
    byte_rate: Estimate | None = None
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
        # A long line leaves out the share.
        shorter = f"{number} · {window} · {self.standing}"
        return escaped(line if len(line) <= _COLUMNS else shorter)


def _seconds(time_s: float) -> str:
    # From 999.5 on three digits would end in a power of ten.
    return f"{time_s:.3g}" if time_s < 999.5 else f"{time_s:,.0f}"
