"""The references of successive rounds, along their readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchrigor.model import References
from benchrigor.model.pace import INTERPRETER
from benchrigor.model.series import Floats
from benchrigor.stats.statistics.statistic import ReferencesAlong

_UNDISTURBED = 0.9  # quantile of the shares: waiting for a processor only lowers them


class Timed(NamedTuple):
    """The references of a round, and how much of the readings between them was work."""

    n: int  # readings of the round
    references: References | None
    busy: Floats  # share of the time between two references; empty if it was not measured


def timed_round(values: Floats, references: References | None, calls: int) -> Timed:
    """Take a round whose readings are durations of so many calls each."""
    busy = np.empty(0)
    if references is not None and references.stops[-1] > values.size:
        references = None  # they lie between other readings of the round
    if references is not None and references.busy is not None:
        starts = np.append(0, references.stops[:-1])
        took_s = np.add.reduceat(values[: references.stops[-1]], starts) * calls
        busy = references.busy / np.maximum(took_s, 1e-12)
    return Timed(values.size, references, busy)


def references_along(rounds: Sequence[Timed]) -> ReferencesAlong | None:
    """Return the references of rounds by their places among all readings; None without any."""
    found = [round_ for round_ in rounds if round_.references is not None]
    begun = np.cumsum([0, *(round_.n for round_ in rounds)])
    placed = [
        (start + round_.references.stops, round_.references.seconds[INTERPRETER])
        for start, round_ in zip(begun, rounds, strict=False)
        if round_.references is not None and INTERPRETER in round_.references.seconds
    ]
    if not placed:
        return None
    stops, seconds = (np.concatenate(column) for column in zip(*placed, strict=True))
    busy = np.concatenate([round_.busy for round_ in found])
    share = float(np.quantile(busy, _UNDISTURBED)) if busy.size else 1.0
    return ReferencesAlong(stops=stops, log_s=np.log(seconds), busy=min(share, 1.0))
