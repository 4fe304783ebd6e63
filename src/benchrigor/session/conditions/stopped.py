"""Rounds during which the process was stopped, by a signal or with its machine. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.model import Code, Interference, Notice, Round
from benchrigor.model.series import Floats
from benchrigor.model.text import percent, show_value
from benchrigor.stats.series.undisturbed import STOPPED, rest_of, stops_in


def with_stops(rounds: Sequence[Round], *, restarted: bool) -> tuple[Round, ...]:
    """Add to the delays of rounds the time for which their process was stopped.

    The groups of rounds in one process are compared with each other, and so are commands, which
    have one group per round. Groups of other restarted rounds are compared within their round.
    """
    if not rounds:
        return ()
    gaps = [_gaps(round_) for round_ in rounds]
    if restarted and any(rest_s.size > 1 for rest_s, _ in gaps):
        stopped = [stops_in(*gap) for gap in gaps]
    else:
        rest_s, duration_s = (np.concatenate([[], *parts]) for parts in zip(*gaps, strict=True))
        sizes = [rest.size for rest, _ in gaps]
        stopped = np.split(stops_in(rest_s, duration_s), np.cumsum(sizes)[:-1])
    return tuple(
        _with_delay(finished, stopped_s) if stopped_s.any() else finished
        for finished, stopped_s in zip(rounds, stopped, strict=True)
    )


def _gaps(finished: Round) -> tuple[Floats, Floats]:
    """Return the time of a group of readings that is neither work nor delay, and its duration."""
    delays = finished.delays
    if delays is None or delays.duration_s is None:
        return np.zeros(0), np.zeros(0)
    return rest_of(delays, delays.duration_s), delays.duration_s


def _with_delay(finished: Round, stopped_s: Floats) -> Round:
    """Return a round with this delay as well."""
    delays = finished.delays
    if delays is None:
        return finished
    before = delays.seconds.get(STOPPED, np.zeros(stopped_s.size))
    seconds = {**delays.seconds, STOPPED: before + stopped_s}
    return replace(finished, delays=replace(delays, seconds=seconds))


def was_stopped(finished: Round) -> bool:
    """Return whether a signal stopped the process of a round that has one time alone."""
    delays = finished.delays
    if delays is None or finished.n_readings != 1:
        return False
    return bool(np.any(delays.seconds.get(STOPPED, 0.0)))


def report_stops(interference: Interference | None) -> tuple[Notice, ...]:
    """Say how long the process stood still."""
    share = 0.0 if interference is None else interference.delays.get(STOPPED, 0.0) / 100.0
    if interference is None or not share:
        return ()
    lost_s = share * interference.duration_s
    return (
        Notice.warning(
            Code.STOPPED,
            f"The process stood still for {show_value(lost_s, 's')}, {percent(share)} of the time: "
            "it neither worked nor waited for a processor, as when it is stopped by a signal, or "
            "its machine is paused. Readings during that do not count.",
            stopped_s=lost_s,
        ),
    )
