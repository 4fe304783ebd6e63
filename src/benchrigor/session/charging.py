"""What the host lost as a whole, charged to the stretches of the round that it befell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchrigor.instrument.host_delays import shares
from benchrigor.model import Delays, Floats, Round
from benchrigor.session.light import segments_of

__all__ = ["charged"]


def charged(finished: Round, rises_ns: Mapping[str, int], metric: str | None) -> Round:
    """Add to a round's delays what its host counted meanwhile.

    A control group that is throttled waits in the run queue, so throttled time is taken out of
    what was measured there (on Linux 6.18, 2.409 s of run delay for 2.408 s throttled); stolen
    time is not in it. Either is charged to the stretches with most room for it.

    Parameters
    ----------
    finished
        The round; one without delays comes back as it is.
    rises_ns
        By source ("throttled", "steal"), nanoseconds lost since the round began.
    metric
        The metric that says how long its readings took.
    """
    if finished.delays is None or not any(rises_ns.values()):
        return finished
    part, seconds = segments_of(finished, metric), dict(finished.delays.seconds)
    waited_s = seconds["run queue"]
    throttled_s = _shared(rises_ns.get("throttled", 0), np.minimum(waited_s, part.duration_s))
    steal_s = _shared(rises_ns.get("steal", 0), part.duration_s - part.delay_s)
    seconds |= {"run queue": waited_s - throttled_s, "throttled": throttled_s, "steal": steal_s}
    return replace(finished, delays=Delays(stops=finished.delays.stops, seconds=seconds))


def _shared(lost_ns: int, room_s: Floats) -> Floats:
    """Return, in seconds, what each stretch has of a delay."""
    part_s = np.zeros(room_s.size)
    for index, share_ns in shares(lost_ns, (room_s * 1e9).astype(np.int64).tolist()):
        part_s[index] = share_ns / 1e9
    return part_s
