"""What a search says at its end: the notices of limits, loads and trials, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchrigor.model import Code, Notice
from benchrigor.model.text import show_duration
from benchrigor.workbench.data import Limit, Trial


def note_unread_limits(limits: Sequence[Limit], trials: Sequence[Trial]) -> Iterator[Notice]:
    """Report limits without a value in any trial."""
    names = [
        repr(limit.metric)
        for limit in limits
        if all(trial.result.value(limit.metric) is None for trial in trials)
    ]
    if trials and names:
        sentence = f"No trial told its {' or '.join(names)}: that limit was not checked."
        yield Notice.warning(Code.LIMIT_NOT_CHECKED, sentence)


def saturated_at_least(load: float) -> Notice:
    """Report that even the least load exceeds the limits."""
    sentence = (
        f"The limits are exceeded at the least load, {load:.4g}: allow lower loads, or take other "
        "limits."
    )
    return Notice.warning(Code.NOT_CONVERGED, sentence)


def not_offered(why: str, *, below: float | None = None) -> Notice:
    """Report that no greater load was offered; or not one ``below`` others that were."""
    what = "No greater load was" if below is None else f"A load of {below:.4g} was not"
    return Notice.warning(Code.GENERATOR_LIMIT, f"{what} offered: {why}.")


def none_offered(invalid: Sequence[Trial]) -> Notice:
    """Report that all trials were invalid."""
    n, why = len(invalid), invalid[-1].invalid
    trials = "the only trial was" if n == 1 else f"all {n} trials were"
    sentence = f"No load could be offered on time: {trials} invalid, since {why}."
    return Notice.warning(Code.GENERATOR_LIMIT, sentence)


def not_narrow(wanted: float | None, *, near: float = 0.0, needed_s: float = 0.0) -> Notice:
    """Report that the interval is wider than wanted, and the time that a peak ``near`` takes."""
    sentence = "The search ended before the interval was as narrow as wanted: allow more."
    if needed_s:
        sentence += f" A peak near {near:.3g} takes about {show_duration(needed_s)}."
    return Notice.warning(Code.NOT_CONVERGED, sentence, wanted=wanted)
