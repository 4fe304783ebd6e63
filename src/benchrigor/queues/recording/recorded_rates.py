"""Service rates of recordings, by the same estimator as of running programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.periods import PeriodTable, PooledPeriods, join, table_of
from benchrigor.queues.arithmetic.service_rate import BUSY_TIME, METHODS, QUANTILE, Asked
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.rates import ServiceRateEstimator, estimator_of, tell_periods
from benchrigor.queues.recording.recordings import Recording, RecordingHead

PUBLISHED = "published"
_MOST = 4096  # stretches that are kept; joining halves their number
_ROUNDING = 1e-9


class Stretches(NamedTuple):
    """Successive stretches of time, shape (n,)."""

    start_s: Floats  # seconds since the first period
    stop_s: Floats
    # Items per second of the time in which the end did not wait; NaN if it always did.
    rates: Floats
    # Share of the time in which it waited, or of the periods if only these are known.
    waiting: Floats


class Outline:
    """What an end did over time, in few enough stretches for memory and a picture."""

    def __init__(self) -> None:
        self._pooled = PooledPeriods(table_of(items=()), most=_MOST)
        self._stop_s = 0.0

    def add(self, periods: PeriodTable) -> None:
        """Take more periods, which follow those before."""
        stop_s = self._stop_s + np.cumsum(periods["period_s"])
        periods["start_s"] = stop_s - periods["period_s"]
        self._stop_s = float(stop_s[-1])
        self._pooled.add(periods)

    def stretches(self, most: int = 400) -> Stretches:
        """Return the time in up to ``most`` stretches."""
        table = self._pooled.all()
        table = join(table, np.arange(0, table.size, max(1, -(-table.size // most))))
        start_s, period_s, busy_s = table["start_s"], table["period_s"], table["busy_s"]
        capacity_s = table["servers"] * period_s
        is_busy = busy_s > _ROUNDING * capacity_s
        served = table["served"] * table["servers"]
        return Stretches(
            start_s=start_s,
            stop_s=start_s + period_s,
            rates=np.divide(served, busy_s, out=np.full(table.size, np.nan), where=is_busy),
            waiting=1.0 - busy_s / capacity_s,
        )

    def throughput(self, start_s: float, stop_s: float) -> tuple[float, float | None]:
        """Return items per second between two times since the first period, and mean bytes of one.

        Waiting is included. The bytes are None if they were not counted, or no item passed.
        """
        table = self._pooled.all()
        middle_s = table["start_s"] + table["period_s"] / 2.0
        inside = (middle_s >= start_s) & (middle_s <= stop_s)
        window = table[inside if inside.any() else slice(None)]
        wall_s, items, size = (float(window[name].sum()) for name in ("period_s", "items", "bytes"))
        known = items > 0.0 and math.isfinite(size) and size > 0.0
        return items / wall_s, size / items if known else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedEnd(OneLine):
    """One end of a recording.

    Parameters
    ----------
    name
        Of the end; empty if the recording names none.
    rates
        In order; empty without a period.
    outline
        Its rate and its waiting over time.
    """

    name: str
    rates: tuple[ServiceRate, ...]
    outline: Outline


def rate_recording(
    recording: Recording,
    *,
    end: str | None = None,
    method: str | None = None,
    target: float = 0.05,
    confidence: float = 0.95,
) -> list[RecordedEnd]:
    r"""Estimate how fast the ends of a recording could go if they never had to wait.

    Parameters
    ----------
    recording
        A new one, not read before.
    end
        Only this one.
    method
        "busy-time", "quantile", or "published" ("quantile" without guards); None for "busy-time"
        if blocked time is known, and for "quantile" if only blocked periods are.
    target, confidence
        As of `ServiceRateEstimator`.

    Returns
    -------
    list of RecordedEnd
        In the order in which they first appear.

    Raises
    ------
    InvalidInput
        Naming line and column of a value that does not fit, or the ends that the recording has.

    Examples
    --------
    >>> rows = (f"0.1,{45 + number % 2},0.009\n" for number in range(100))
    >>> recording = Recording(["period_s,items,blocked_s\n", *rows], name="run.csv")
    >>> (found,) = rate_recording(recording)
    >>> found.rates[-1].converged, round(found.rates[-1].estimate.value)
    (True, 500)
    """
    method = method or (BUSY_TIME if "blocked_s" in recording.head.roles else QUANTILE)
    wanted = {"target": target, "confidence": confidence}
    estimators: dict[str, ServiceRateEstimator] = {}
    outlines: dict[str, Outline] = {}
    for name, periods in recording.periods():
        if end is not None and name != end:
            continue
        if name not in estimators:
            estimators[name] = _estimator(method, recording.head, periods, **wanted)
            outlines[name] = Outline()
        tell_periods(estimators[name], periods)
        outlines[name].add(periods)
    if end is not None and end not in recording.ends:
        raise InvalidInput(_unknown(end, recording))
    return [
        RecordedEnd(
            name=name,
            rates=tuple(estimators[name].rates) if name in estimators else (),
            outline=outlines.get(name, Outline()),
        )
        for name in recording.ends
        if end in {None, name}
    ]


def _estimator(
    method: str, head: RecordingHead, periods: PeriodTable, **wanted: float
) -> ServiceRateEstimator:
    if method not in {*METHODS, PUBLISHED}:
        known = ", ".join((*METHODS, PUBLISHED))
        raise InvalidInput(f"method is {method!r}, expected one of {known}")
    is_published = method == PUBLISHED
    asked = Asked(
        method=QUANTILE if is_published else method,
        period_s=head.period_s or float(np.median(periods["period_s"])),
        guards=not is_published,
        servers=int(periods["servers"][0]),
        **wanted,
    )
    return estimator_of(asked)


def _unknown(end: str, recording: Recording) -> str:
    if "end" not in recording.head.roles:
        return f"{recording.name} has no column 'end', and so no end {end!r}: leave the name out"
    names = ", ".join(recording.ends[:10]) + (", ..." if len(recording.ends) > 10 else "")
    return f"{recording.name} has no end {end!r}, expected one of {names}"
