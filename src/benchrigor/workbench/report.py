"""A search for a peak in text: its result, and how the number came about."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from benchrigor.layout import Page, Part, page, table, wrapped
from benchrigor.report.fact import (
    Depth,
    Fact,
    head,
    known,
    labelled,
    list_rows,
    noticed,
    rows_of,
    step,
    steps_of,
)
from benchrigor.safe_text import escaped
from benchrigor.units import many, percent, show_duration, show_value
from benchrigor.workbench.data import FAILED, Limit, PeakRate, Trial, conditions_of
from benchrigor.workbench.planning.peaks import CLOSED_LOOP, OPEN_LOOP
from benchrigor.workbench.planning.published_search import RunLengthPlan

_FAILURES_SHOWN = 3
_MOST_SHOWN = 100.0  # times the limit
_FORMULAS = {curves.method: curves.formula for curves in (OPEN_LOOP, CLOSED_LOOP)}


def facts_of_peak(peak: PeakRate) -> list[Fact]:
    """Return the facts of a search, and the steps to its number, or why it is missing."""
    limits = ", ".join(map(_show_limit, peak.limits))
    binding = f"{show_metric(peak.binding)} is reached first" * bool(peak.binding)
    goodput = "" if peak.goodput is None else f"{peak.goodput:.4g}/s within the limits"
    trials = ("", *_table_of_trials(peak)) if peak.trials else ()
    facts = known(
        head(str(peak)),
        labelled("limits", limits),
        Fact("binding", Depth.PAGE, "limits", binding, peak.binding),
        Fact("goodput", Depth.PAGE, "goodput", goodput, peak.goodput),
        labelled("hosts", *_hosts(peak)),
        Fact("trials", Depth.DETAILS, "", "", table=trials),
        *(step(key, text) for key, text in _steps(peak)),
    )
    return [*facts, *noticed(peak.notices)]


def _steps(peak: PeakRate) -> Iterator[tuple[str, str]]:
    counting = [trial for trial in peak.trials if trial.counts]
    saturated = sum((trial.ratio or 0.0) >= 1.0 for trial in counting)
    yield (
        "response",
        "A trial's response is the greatest of its values over their limits; it was saturated "
        f"where that is 100% or more. Of the {many(len(counting), 'trial')} that count "
        f"{saturated} were.",
    )
    if peak.load is not None and (formula := _FORMULAS.get(peak.load.method)):
        yield (
            "curves",
            "The peak is where the response is 100%. Its distribution is over all curves "
            f"{formula}, with u the load over the peak, weighed by how well they agree with all "
            "trials, whatever the response of the idle server b, the bend k and the noise of "
            "trials are: see docs/peak.md.",
        )
        yield (
            "interval",
            f"Half of the distribution lies below {peak.load.value:.4g} {peak.unit}; the interval "
            f"from {peak.load.low:.4g} to {peak.load.high:.4g} holds {peak.load.confidence:.0%} of "
            "it.",
        )
    spent = Counter[str]()
    for trial in peak.trials:
        spent.update(trial.result.spent_s)
    parts = ", ".join(f"{what} {show_duration(seconds)}" for what, seconds in spent.items())
    yield "cost", f"The search took {show_duration(peak.cost_s)}: {parts}." if spent else ""


def explain_peak(peak: PeakRate, name: str) -> str:
    """Explain step by step how a peak was found, or why not."""
    facts = facts_of_peak(peak)
    whole = rows_of(facts, Depth.DETAILS)
    return page([f"How {name} came about", "", *steps_of(facts), "", *whole])


def _table_of_trials(peak: PeakRate) -> list[Part]:
    """Return a row per trial."""
    names = ("load", "seconds", "of the limit", "by", "why")
    return table([names, *map(_cells, peak.trials)], ">>><<", indent=2)


def trial_line(
    trial: Trial, peak: PeakRate, *, budget_s: float | None = None, indent: int = 0
) -> Page:
    """Return a line with the result of a trial, and the peak so far."""
    if trial.invalid:
        why, _, _cure = trial.invalid.partition(": ")  # the remedy is printed below the result
        verdict = f"invalid: {why}"
    elif trial.result.crashed:
        verdict = "broke down"
    else:
        ratio = trial.ratio or 0.0
        verdict = f"{show_metric(trial.binding)} {show_ratio(ratio)} of its limit: "
        verdict += "saturated" if ratio >= 1.0 else "kept"
        most = sorted(trial.result.failures.items(), key=lambda pair: -pair[1])[:_FAILURES_SHOWN]
        failures = ", ".join(f"{n} {what}" for what, n in most)
        verdict += f" ({failures})" if failures else ""
    parts = [f"{show_value(trial.asked.load, peak.unit)}", verdict]
    if peak.load is not None:
        parts.append(f"peak {peak.load.low:.3g} to {peak.load.high:.3g}")
    if budget_s is not None and peak.status is None:
        left_s = budget_s - peak.cost_s
        parts += [f"{show_duration(left_s)} left"] if left_s > 0.0 else []
    return page(wrapped(" · ".join(parts), " " * indent, hanging=indent + 2))


def _hosts(peak: PeakRate) -> list[str]:
    """Name the sending hosts, and mark those that were lost."""
    hosts = dict.fromkeys(host for trial in peak.trials for host in trial.result.shares)
    return [
        f"{escaped(host)}"
        + ("" if host in peak.trials[-1].result.shares else ", left out: it was lost")
        for host in hosts
    ]


def _cells(trial: Trial) -> tuple[str, ...]:
    ratio = trial.ratio
    if trial.invalid:
        shown = "invalid"
    elif ratio is None:
        shown = "-"
    else:
        shown = "saturated" if math.isinf(ratio) else show_ratio(ratio)
    return (
        f"{trial.asked.load:.5g}",
        f"{trial.asked.duration_s:.3g}",
        shown,
        show_metric(trial.binding) or ("crash" if trial.result.crashed else ""),
        trial.asked.reason,
    )


def show_ratio(ratio: float) -> str:
    """Show a response over its limit."""
    return percent(ratio) if ratio <= _MOST_SHOWN else f"over {percent(_MOST_SHOWN)}"


def show_metric(metric: str) -> str:
    """Show the name of a limited metric; conditions are "slo"."""
    return "slo" if conditions_of(metric) else metric


def _show_limit(limit: Limit) -> str:
    if limit.conditions:
        return f"slo {limit.metric}: {percent(1.0 - limit.at_most, digits=12)}"
    if limit.metric == FAILED:
        return f"{limit.metric} at most {percent(limit.at_most)}"
    at_most = show_duration(limit.at_most) if limit.is_of_time else f"{limit.at_most:g}"
    return f"{limit.metric} at most {at_most}"


def facts_of_run_lengths(plan: RunLengthPlan) -> list[Fact]:
    """Return a row per run length."""
    rows = [("seconds", "variation", "trials", "cost", "")]
    for length in plan.lengths:
        trials = "-" if length.trials is None else str(length.trials)
        cost = "-" if length.cost_s is None else show_duration(length.cost_s)
        mark = "cheapest" if length is plan.best else ""
        rows.append((f"{length.duration_s:g}", f"{length.variation:.1%}", trials, cost, mark))
    return [list_rows("lengths", table(rows, ">>>><"))]
