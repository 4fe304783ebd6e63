"""Service rates of recordings, by the same estimator as of running programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.one_line import OneLine
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.periods import Periods
from benchrigor.queues.rates import METHODS, ServiceRateEstimator
from benchrigor.queues.recording.recording_head import Outline, RecordingHead
from benchrigor.queues.recording.recordings import Recording

PUBLISHED = "published"


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
    method = method or ("busy-time" if recording.head.has_blocked_time else "quantile")
    wanted = {"target": target, "confidence": confidence}
    estimators: dict[str, ServiceRateEstimator] = {}
    outlines: dict[str, Outline] = {}
    for name, periods in recording.periods():
        if end is not None and name != end:
            continue
        if name not in estimators:
            estimators[name] = _estimator(method, recording.head, periods, **wanted)
            outlines[name] = Outline()
        periods.tell(estimators[name])
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
    method: str, head: RecordingHead, periods: Periods, **wanted: float
) -> ServiceRateEstimator:
    if method not in {*METHODS, PUBLISHED}:
        known = ", ".join((*METHODS, PUBLISHED))
        raise InvalidInput(f"method is {method!r}, expected one of {known}")
    published = method == PUBLISHED
    # As published, periods of other widths than the wanted one do not count.
    wanted_s = head.period_s or float(np.median(periods.period_s))
    return ServiceRateEstimator(
        "quantile" if published else method,
        period_s=wanted_s if published else None,
        guards=not published,
        servers=periods.servers,
        **wanted,
    )


def _unknown(end: str, recording: Recording) -> str:
    if recording.head.column("end") is None:
        return f"{recording.name} has no column 'end', and so no end {end!r}: leave the name out"
    names = ", ".join(recording.ends[:10]) + (", ..." if len(recording.ends) > 10 else "")
    return f"{recording.name} has no end {end!r}, expected one of {names}"
