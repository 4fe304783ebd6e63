"""The sheets of a peak, a map and a choice, for HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from benchrigor.model import RunRecord
from benchrigor.model.text import show_estimate
from benchrigor.report.fact import facts_of
from benchrigor.report.html import DOUBTFUL, GOOD, Picture, Sheet, chapters_of
from benchrigor.report.sheets import sheet_of_facts
from benchrigor.workbench.data import PeakRate
from benchrigor.workbench.designs import show_point
from benchrigor.workbench.maps import map_report, map_run
from benchrigor.workbench.maps.choice_run import choice_in
from benchrigor.workbench.picture import plot_map, plot_peak
from benchrigor.workbench.planning.best_choice import Choice
from benchrigor.workbench.surface import Surface


def sheet_of_peak(peak: PeakRate, name: str = "the server") -> Sheet:
    """Return the sheet of the result of a search."""
    facts = facts_of(peak)
    limits = next((fact.text for fact in facts if fact.key == "limits"), "its limits")
    words = "Each trial by its load and the ratio of its response to the limit: above the line it "
    words += "was saturated. The band is the interval of the peak."
    drawn = Picture(title="Trials of the search", words=words, draw=partial(plot_peak, peak))
    return replace(
        sheet_of_facts(peak),
        name=name,
        asked=f"How much load does {name} take within {limits}?",
        answer=_peak_in_words(peak),
        tone=GOOD if peak.load is not None else DOUBTFUL,
        pictures=[drawn] if peak.trials else [],
    )


def _peak_in_words(peak: PeakRate) -> str:
    if peak.load is None:
        return str(peak)
    return f"It keeps them up to a load of {show_estimate(peak.load, peak.unit)}."


def sheet_of_surface(
    surface: Surface,
    units: Mapping[str, str] | None = None,
) -> Sheet:
    """Return the sheet of a map, with these units of its responses."""
    units = dict.fromkeys(surface.responses, "") if units is None else units
    first = next(iter(units), "the response")
    answer, pictures = "Too few samples for a model.", list[Picture]()
    if surface.model is not None:
        best = surface.best(first)
        shown = show_estimate(best.estimate, units[first])
        answer = f"The best {first} is {shown}, at {show_point(best.point)}."
        words = "Predictions with their intervals, and the samples that they follow from; the star "
        words += (
            "is the best. The last panel compares each sample with its prediction by the others."
        )
        draw = partial(plot_map, surface, unit=units[first])
        pictures.append(Picture(title="The surface", words=words, draw=draw))
    factors = ", ".join(factor.name for factor in surface.factors)
    return replace(
        sheet_of_facts(surface),
        name="the map",
        asked=f"How does {first} depend on {factors}?",
        answer=answer,
        tone=GOOD if surface.model is not None else DOUBTFUL,
        pictures=pictures,
    )


def sheet_of_stored_map(record: RunRecord) -> Sheet:
    """Return the sheet of a stored map, with all that went wrong meanwhile."""
    surface = map_run.surface_of(record)
    units = {metric.name: metric.unit for metric in record.metrics}
    chapters = chapters_of(map_report.facts_of_stored_map(record, surface.summary))
    return replace(sheet_of_surface(surface, units), name=record.name, chapters=chapters)


def sheet_of_stored_choice(record: RunRecord) -> Sheet:
    """Return the sheet of a stored choice, with its turns."""
    choice = choice_in(record)
    chapters = chapters_of(map_report.facts_of_choice(choice, record))
    return replace(sheet_of_choice(choice), name=record.name, chapters=chapters)


def sheet_of_choice(choice: Choice) -> Sheet:
    """Return the sheet of a choice without its turns."""
    return replace(
        sheet_of_facts(choice),
        name="the choice",
        asked="Which of these configurations is the best on all hosts?",
        answer=map_report.say_choice(choice),
        tone=GOOD if choice.point is not None else DOUBTFUL,
    )
