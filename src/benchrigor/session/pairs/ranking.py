"""Runs measured in turn, compared again by the ratio of each pair, and ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Comparison, Notice, RunRecord
from benchrigor.model.comparison import Ranked
from benchrigor.model.segments import Light
from benchrigor.session.pairs.ratio import compare_in_turn, shared_rounds
from benchrigor.session.red_rounds import report_stops
from benchrigor.stats.comparison.two_sample import in_places
from benchrigor.stats.interference import light_of
from benchrigor.stats.series.interval import MIN_FOR_VARIANCE
from benchrigor.stats.series.undisturbed import STOPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Places of runs, and their comparisons with the first, over the rounds that all have."""

    places: tuple[Ranked, ...] = ()
    against_first: Mapping[str, Comparison] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def compare_with(
    baseline: str, records: Mapping[str, RunRecord], *, margin: float = 0.01
) -> dict[str, Comparison]:
    """Compare every run with the baseline by name, pair by pair, as `measure_pair` does.

    Only rounds that all runs have count, so that all runs share the same minutes. NotEstimable if
    those rounds are too few.
    """
    rounds = shared_rounds([*records.values()])
    shared = {
        name: replace(record, rounds=own)
        for (name, record), own in zip(records.items(), rounds, strict=True)
    }
    confidence = shared[baseline].options.confidence
    compare = partial(compare_in_turn, shared[baseline], confidence=confidence, margin=margin)
    compared = {
        name: replace(compare(run), names=(baseline, name))
        for name, run in shared.items()
        if name != baseline
    }
    for comparison in compared.values():
        if comparison.baseline is None or comparison.candidate is None:
            raise NotEstimable(comparison.notices[0])
    return compared


def rank_in_turn(records: Mapping[str, RunRecord]) -> Ranking:
    """Rank runs by their times over the rounds that all have, the least first.

    Two of m runs differ if the p-value of a paired ratio of 1 is up to (1 - confidence) / (m (m -
    1) / 2) (Bonferroni). A run that does not differ from the first of its group shares its place.
    Runs that ended after their first round have no place.
    """
    whole = {name: shared_rounds([record])[0] for name, record in records.items()}
    records = {name: records[name] for name in records if len(whole[name]) >= MIN_FOR_VARIANCE}
    first = next(iter(records), "")
    if len(records) < 2:
        own = records[first].estimate() if records else None
        return Ranking(places=(Ranked(name=first, estimate=own, place=1),) if own else ())
    against = cache(partial(compare_with, records=records, margin=0.0))
    estimates = {name: comparison.candidate for name, comparison in against(first).items()}
    estimates[first] = next(iter(against(first).values())).baseline
    known = {name: estimate for name, estimate in estimates.items() if estimate is not None}
    ordered = dict(sorted(known.items(), key=lambda one: one[1].value))
    places = in_places(
        ordered,
        lambda leader, name: against(leader)[name].p_beyond,  # without a margin: beyond 1
        known[first].confidence,
    )
    told = notices_of_ranking(records)
    return Ranking(places=places, against_first=against(places[0].name), notices=told)


def notices_of_ranking(records: Mapping[str, RunRecord]) -> tuple[Notice, ...]:
    """Return the Notices of a ranking: lost time, and Notices of the rounds."""
    of_rounds = {
        (name, notice.code): notice.about(name)
        for name, record in records.items()
        for finished in record.rounds
        for notice in finished.notices
        if notice.code not in {Code.CUT_ROUND, Code.STOPPED}  # the latter are among the lost time
    }
    return (*_lost_beside(records), *of_rounds.values())


def _lost_beside(records: Mapping[str, RunRecord]) -> tuple[Notice, ...]:
    """Warn if other work took time of runs: its effect depends on their threads.

    Stopped processes do not count: their lost time has a Notice of its own.
    """
    by_name = {name: record.interference for name, record in records.items()}
    stops = [
        notice.about(name)
        for name, interference in by_name.items()
        for notice in report_stops(interference)
    ]
    lost = [
        interference.measured_percent - interference.delays.get(STOPPED, 0.0)
        for interference in by_name.values()
        if interference
    ]
    if not lost or light_of(max(lost)) is Light.GREEN:
        return tuple(stops)
    least, most = min(lost), max(lost)
    shares = {"least_": least / 100.0, "most_": most / 100.0}
    figures = {"least_percent": least, "most_percent": most}
    return (Notice.of(Code.DISTURBED, "ranked", **shares, **figures), *stops)
