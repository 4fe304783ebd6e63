"""Commands that were measured in turn, one line per command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchrigor.layout import Part, row, table
from benchrigor.model import Analysis, Estimate, Metric, RunRecord
from benchrigor.model.text import PEAK_MEMORY, show_peak_memory, show_plus_minus, show_short
from benchrigor.report.facts.number_facts import just_now, notes_on, show_number
from benchrigor.stats.readings.asked_readings import asked_half_width
from benchrigor.units import first_few, show_value

_TIME = "time"
_LISTED = 4  # commands that missed the target


def command_table(
    records: Mapping[str, RunRecord],
    estimates: Mapping[str, Estimate | None],
    places: Mapping[str, str] | None = None,
    *,
    spent: Sequence[Metric] = (),
) -> list[Part]:
    """Return headlines and measured times by command, and whether a target was reached.

    Parameters
    ----------
    records
        Of the commands by name; not empty.
    estimates
        The times that their ratios are of, None for those without a number.
    places
        Of a ranking; None to number the commands as they were given.
    spent
        Their processor times.
    """
    paced, first = _paced_times(records, estimates), next(iter(records.values()))
    statistic = first.options.statistic
    titles = [metric.name.removesuffix("_time") for metric in spent]
    rows: list[tuple[str, ...]] = [
        ("", "command", statistic, "just now", *titles, "memory", "failed")
    ]
    for index, (name, record) in enumerate(records.items(), start=1):
        estimate, headline = estimates.get(name), ""
        shown = "no number" if estimate is None else show_short(estimate, "s")
        if name in paced:
            now = just_now(paced[name])
            headline = show_number(paced[name], "mean")
            shown = show_value(now.value, "s") if now else ""
        known = (record.estimate(metric.name) for metric in spent)
        seconds = ["" if found is None else show_value(found.value, "s") for found in known]
        memory = show_peak_memory(record.facts) if PEAK_MEMORY in record.facts else ""
        failed = ""
        if "failed_runs" in record.facts:
            typical = show_value(float(record.facts["failed_time_s"] or 0.0), "s")
            failed = f"{record.facts['failed_runs']} runs, after {typical}"
        place = f"{index}." if places is None else places.get(name, "-")
        rows.append((place, name, headline, shown, *seconds, memory, failed))
    cells = [(f"{place} {name}".strip(), *others) for place, name, *others in rows]
    corrected = statistic if any(line[2] and line[3] for line in rows[1:]) else ""
    return [
        *table(cells, "<" * len(cells[0])),
        *_target(records, estimates),
        *notes_on((cell for line in rows[1:] for cell in line[2:4]), corrected=corrected),
    ]


def _paced_times(
    records: Mapping[str, RunRecord], estimates: Mapping[str, Estimate | None]
) -> dict[str, Analysis]:
    """Return the times of commands if all that have a number have one at full speed.

    A command without it would seem slower than the others.
    """
    times = {
        name: analysis
        for name, record in records.items()
        if estimates.get(name) and (analysis := record.analysis(_TIME)) is not None
    }
    return times if all(analysis.pace is not None for analysis in times.values()) else {}


def _target(
    records: Mapping[str, RunRecord], estimates: Mapping[str, Estimate | None]
) -> list[Part]:
    """Show the target for the intervals of times, and the commands that missed it."""
    missed, wanted = list[str](), math.inf
    for name, record in records.items():
        analysis = record.analysis(_TIME)
        if not estimates.get(name) or analysis is None or not (own := analysis.estimate):
            continue
        wanted = asked_half_width(own, analysis.metric, record.options) / abs(own.value)
        if own.relative_half_width > wanted:
            missed.append(f"{name} ({show_plus_minus(own.relative_half_width)})")
    if wanted == math.inf:
        return []
    reached = f"missed by {first_few(missed, _LISTED)}" if missed else "reached"
    return row("target", [f"{show_plus_minus(wanted)} of each time as it ran: {reached}"])
