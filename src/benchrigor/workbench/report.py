"""How the number of a search for a peak came about."""

from __future__ import annotations

from benchrigor.layout import Part, page, wrapped
from benchrigor.model.text import many, show_duration
from benchrigor.workbench.arithmetic.peaks import CLOSED_LOOP, OPEN_LOOP
from benchrigor.workbench.data import PeakRate

_FORMULAS = {each.method: each.formula for each in (OPEN_LOOP, CLOSED_LOOP)}


def explain_peak(peak: PeakRate, name: str) -> str:
    """Explain step by step how a peak was found, or why not."""
    counted = [each for each in peak.trials if each.counts]
    saturated = sum((each.ratio or 0.0) >= 1.0 for each in counted)
    steps = [
        "A trial's response is the greatest of its values over their limits; it was saturated "
        "where that is 100% or more. Of the "
        f"{many(len(counted), 'trial')} that count {saturated} were.",
    ]
    formula = _FORMULAS.get(peak.load.method) if peak.load is not None else None
    if peak.load is not None and formula:
        steps += [
            "The peak is where the response is 100%. Its distribution is that of all curves "
            f"{formula}, with u the load over the peak, weighed by how well they "
            "agree with all trials, whatever the response of the idle server b, the bend k and the "
            "noise of trials are: see docs/peak.md.",
            f"Half of it lies below {peak.load.value:.4g} {peak.unit}, the interval from "
            f"{peak.load.low:.4g} to {peak.load.high:.4g} holds "
            f"{peak.load.confidence:.0%} of it.",
        ]
    spent: dict[str, float] = {}
    for each in peak.trials:
        for what, seconds in each.result.spent_s.items():
            spent[what] = spent.get(what, 0.0) + seconds
    if spent:
        parts = ", ".join(f"{what} {show_duration(each)}" for what, each in spent.items())
        steps.append(f"The search took {show_duration(peak.cost_s)}: {parts}.")
    lines: list[Part] = [f"How {name} came about", ""]
    for number, step in enumerate(steps, 1):
        lines += wrapped(step, f"{number:>3}. ")
    return page([*lines, "", *peak.lines()])
