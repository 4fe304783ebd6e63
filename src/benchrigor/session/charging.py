"""What the host lost as a whole, charged to the stretches of the round that it befell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchrigor.instrument.host_delays import Rises, charge
from benchrigor.model import Delays, Round
from benchrigor.session.light import segments_of

__all__ = ["charged"]


def charged(finished: Round, rises: Rises, metric: str | None) -> Round:
    """Add to a round's delays what its host counted meanwhile.

    `instrument.host_delays.charge` says what of it is a stretch's.

    Parameters
    ----------
    finished
        The round; one without delays comes back as it is.
    rises
        What the host lost since the round began.
    metric
        The metric that says how long its readings took.
    """
    if finished.delays is None or not any(rises.lost_ns.values()):
        return finished
    seconds = dict(finished.delays.seconds)
    waited_s = seconds["run queue"]
    took_s = segments_of(finished, metric).duration_s
    if took_s.size != waited_s.size:  # the metric has other readings than those measured
        return finished
    took_ns, waited_ns = (
        np.rint(each * 1e9).astype(np.int64).tolist() for each in (took_s, waited_s)
    )
    for source, part_ns in charge(rises, took_ns, waited_ns).items():
        seconds[source] = np.array(part_ns) / 1e9
    if "throttled" in seconds:
        seconds["run queue"] = np.maximum(waited_s - seconds["throttled"], 0.0)
    return replace(finished, delays=Delays(stops=finished.delays.stops, seconds=seconds))
