"""The references of successive rounds, along their readings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchrigor.model import References
from benchrigor.model.pace import INTERPRETER
from benchrigor.stats.estimators.one_pace import ReferencesAlong

Timed = tuple[int, References | None]
"""How many readings a round has, and the references between them."""


def references_along(rounds: Sequence[Timed], took_s: float) -> ReferencesAlong | None:
    """Return the references of rounds by their places among all readings; None without any.

    ``took_s`` is the duration of all readings, of which processors worked a share.
    """
    stops, log_s, busy_s = [], [], 0.0
    begun = 0
    for n, references in rounds:
        if references is not None and INTERPRETER in references.seconds:
            stops.append(begun + references.stops)
            log_s.append(np.log(references.seconds[INTERPRETER]))
            busy_s += took_s if references.busy is None else float(references.busy.sum())
        begun += n
    if not stops:
        return None
    return ReferencesAlong(
        stops=np.concatenate(stops),
        log_s=np.concatenate(log_s),
        busy=min(busy_s / took_s, 1.0) if took_s > 0.0 else 1.0,
    )
