"""Why one reading of a run counts, or does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Round, RunRecord
from benchrigor.model.selection import Reason
from benchrigor.stats.series.undisturbed import total_delay
from benchrigor.units import many, show_value

_WHY = {
    Reason.KEPT: "It counts.",
    Reason.WARM_UP: "It is left out with the warm-up.",
    Reason.COOL_DOWN: "It is left out with the cool-down.",
    Reason.MARGIN: "It is left out as a margin: next to a cut, or at a start that may be cold.",
    Reason.RED_ROUND: "It is left out with its round, which lost too much time to interference.",
    Reason.COLD: "It is left out as cold: it loads data that the next ones find in memory.",
    Reason.PILOT: "Its round is left out: it found the amounts to run.",
    Reason.SHORT: "Its round is left out: it was too short, or of too little work.",
    Reason.CUT: "It is cut off, as was asked.",
    Reason.SMALL_WORK: "Its round is left out: it had more overhead than work.",
    Reason.FURTHER: "Its round is left out: its larger amount only tests the line.",
    Reason.OTHER_LEVEL: "It is left out: it is not at the level of the stable phase.",
    Reason.UNSTEADY: "It does not count: its series has no stable phase.",
}


def explain_reading(record: RunRecord, index: int, metric: str | None = None) -> dict[str, Any]:
    """Explain why one reading counts, or does not.

    Parameters
    ----------
    record
        Of a finished or a running session.
    index
        Its place in ``record.readings(metric)``, from 0.
    metric
        Name; None for the first metric that must be satisfied.

    Returns
    -------
    dict
        metric, index, round, value, reason (the word of a `Reason`, None if an old record does not
        know it), counts (how often it counts), and the sentence that says so.

    Raises
    ------
    InvalidInput
        When no metric has that name, or such a reading is missing.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> explain_reading(record, 0)["metric"]
    'time'
    """
    values, selection = record.readings(metric), record.selection(metric)
    analysis = record.analysis(metric)
    if analysis is None or not 0 <= index < values.size:
        raise InvalidInput(
            f"reading {index} is not there: {record.name} has {many(values.size, 'reading')}, "
            "counted from 0"
        )
    taken = record.readings_by_round(metric)
    begins = np.cumsum([0, *(part.size for _, part in taken)])
    at = int(np.searchsorted(begins, index, side="right")) - 1
    done, place = taken[at][0], index - int(begins[at])
    reason = None if selection is None else Reason(selection.reasons[index])
    counts = 0 if selection is None else int(selection.counts[index])
    if reason is None:
        why = "An earlier version stored this run, which did not keep why single rounds count."
    elif reason is Reason.DISTURBED:
        why = _say_disturbed(done, place)
    else:
        why = _WHY[reason]
    if counts > 1:
        why = f"It counts {counts} times: it also stands for disturbed readings of its length."
    name, value = analysis.metric.name, float(values[index])
    shown = show_value(value, analysis.metric.unit)
    return {
        "metric": name,
        "index": index,
        "round": done.plan.index,
        "value": value,
        "reason": None if reason is None else reason.word,
        "counts": counts,
        "sentence": f"Reading {index} of {name}, {shown} in round {done.plan.index}. {why}",
    }


def _say_disturbed(done: Round, place: int) -> str:
    """Say how much delay was measured during a reading that is left out."""
    if (delays := done.delays) is not None:
        sizes = np.diff(delays.stops, prepend=0)
        group = min(int(np.searchsorted(delays.stops, place, side="right")), sizes.size - 1)
        delay_s, size = float(total_delay(delays)[group]), int(sizes[group])
        if delay_s > 0.0:
            during = "it" if size == 1 else f"its group of {size} readings"
            return f"It does not count: {show_value(delay_s, 's')} of delay during {during}."
    return "It does not count, so that readings of each length keep their share."
