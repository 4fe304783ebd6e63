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
        yield Notice.of(Code.LIMIT_NOT_CHECKED, names_=" or ".join(names))


def saturated_at_least(load: float) -> Notice:
    """Report that even the least load exceeds the limits."""
    return Notice.of(Code.NOT_CONVERGED, "least load", load_=load)


def not_offered(why: str, *, below: float | None = None) -> Notice:
    """Report that no greater load was offered; or not one ``below`` others that were."""
    return Notice.of(Code.GENERATOR_LIMIT, "" if below is None else "one", load_=below, why_=why)


def none_offered(invalid: Sequence[Trial]) -> Notice:
    """Report that all trials were invalid."""
    n, why = len(invalid), invalid[-1].invalid
    trials = "the only trial was" if n == 1 else f"all {n} trials were"
    return Notice.of(Code.GENERATOR_LIMIT, "none", which_=trials, why_=why)


def not_narrow(wanted: float | None, *, near: float = 0.0, needed_s: float = 0.0) -> Notice:
    """Report that the interval is wider than wanted, and the time that a peak ``near`` takes."""
    price = ""
    if needed_s:
        price = f" A peak near {near:.3g} takes about {show_duration(needed_s)}."
    return Notice.of(Code.NOT_CONVERGED, "search", price_=price, wanted=wanted)
