"""Comparison of runs that were measured before, of readings from elsewhere, and of suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotComparable, NotEstimable
from benchrigor.model import Analysis, Code, Comparison, Estimate, Notice, Pace, RunRecord
from benchrigor.model.checks import refuse
from benchrigor.model.comparison import THESE_RUNS, Family, Ranked, SuiteComparison
from benchrigor.model.machine import reference_s
from benchrigor.model.notice import is_of_modes
from benchrigor.model.run import BASELINE, CANDIDATE, are_in_turn
from benchrigor.model.text import show_observed
from benchrigor.protocols import Store
from benchrigor.session.pace_of_rounds import with_pace
from benchrigor.session.pairs.compared_sides import (
    Source,
    notices_of_sides,
    other_differences,
    sides_of_runs,
)
from benchrigor.session.pairs.ratio import compare_in_turn
from benchrigor.session.red_rounds import with_stops
from benchrigor.session.stored_runs import LikeRuns, StoredRuns, paced_by
from benchrigor.stats.changepoints.ruptures_adapter import detector_named
from benchrigor.stats.comparison.samples import asked_of, checked_asked, refuse_zeros
from benchrigor.stats.comparison.two_sample import compare_samples, family_of, rank
from benchrigor.stats.pace import Sensitivity, common_sensitivity
from benchrigor.stats.readings.analysis import notice_of, observed_of
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import SINGLE, SUCCESSIVE, unit_of_rounds
from benchrigor.storage import as_store
from benchrigor.units import first_few, percent


def compare_runs(
    baseline: RunRecord | npt.ArrayLike,
    candidate: RunRecord | npt.ArrayLike,
    *,
    metric: str | None = None,
    statistic: str | None = None,
    confidence: float = 0.95,
    margin: float = 0.01,
    direction: str | None = None,
    paired: bool = False,
    detector: str | None = None,
    store: str | Path | Store | None = None,
) -> Comparison:
    """Compare the stable phases of two runs.

    Restarted rounds count as invocations, and so do commands, which run once per round. The verdict
    on a single series holds for its own process only, and a Notice says so.

    Parameters
    ----------
    baseline, candidate
        Runs, or the readings of one continuous series, shape (n,), in the unit of the other side.
    metric
        Metric of the runs; None for the first that must be satisfied.
    statistic
        "mean", "median", a percentile such as "p10", or "trimmed 10%"; None for the runs' own, and
        "mean" for readings.
    confidence
        Nominal coverage, in (0, 1).
    margin
        Relative change that does not matter, 0 or more; 0 for the classical test.
    direction
        Which way is better, "lower" or "higher"; None for the direction of the runs' metric.
        Without a direction, as of bare readings, a change beyond the margin is DIFFERENT.
    paired
        The i-th reading of the baseline was taken next to the i-th of the candidate; only for
        readings from elsewhere, and for both runs that `measure_pair` or ``benchrigor ab`` kept.

    detector
        What finds the stable phases, see `benchrigor.model.Options`; None for the detectors of the
        runs, and "ranks" for readings.
    store
        A store of further runs. A stored run counts with a side if both have the same subject,
        machine, interpreter, commit, source and options, apart from options of length. Runs of
        other versions show how far apart repeated runs are. Used only if both sides recorded the
        pace of the machine and the source of their code.

    Returns
    -------
    Comparison
        Its Notices also say what else differs: machine, name of the metric, how the runs ended,
        and their traffic lights.

    Raises
    ------
    InvalidInput
        When the runs differ in unit, or in direction or statistic and none is given; when pairs
        differ in number; when an argument is out of range.
    NotEstimable
        When baseline or candidate allows no estimate.

    Examples
    --------
    >>> import benchrigor as br
    >>> from benchrigor.testing import SyntheticWorkload
    >>> def run(mean, seed):
    ...     session = br.Session(br.Options(rounds="restarted", max_rounds=20), seed=seed)
    ...     return session.run(SyntheticWorkload(mean=mean, restarted=True, seed=seed))
    >>> comparison = compare_runs(run(1.0, seed=1), run(1.1, seed=2))
    >>> comparison.verdict, comparison.unit
    (<Verdict.WORSE: 'worse'>, 'invocation')
    """
    return compare_named(
        {BASELINE: baseline, CANDIDATE: candidate},
        metric=metric,
        statistic=statistic,
        confidence=confidence,
        margin=margin,
        direction=direction,
        paired=paired,
        detector=detector,
        stored=None if store is None else StoredRuns(as_store(store)),
    )


def compare_named(
    sides: Mapping[str, RunRecord | npt.ArrayLike],
    *,
    metric: str | None = None,
    detector: str | None = None,
    margin: float = 0.01,
    paired: bool = False,
    stored: StoredRuns | None = None,
    **given: Any,
) -> Comparison:
    """Compare two runs as `compare_runs` does, by the names that errors call them."""
    wrong: list[str] = []
    _, margin = checked_asked(wrong, margin=margin, **given)
    try:
        sources = sides_of_runs(sides, metric, detector)
    except InvalidInput as error:
        if not wrong:
            raise
        raise InvalidInput([*error.problems, *wrong]) from error
    refuse(wrong)
    asked = _of_runs(sources, **given)
    _refuse_zeros(sources)
    analyses, told = list[Analysis](), tuple[Notice, ...]()
    if paired:
        found = _compare_pairs(sources, asked, margin)
    else:
        with _showing_readings(sources):
            analyses = [source.analysis(asked.options) for source in sources]
        estimates, told = _at_one_pace(sources, analyses, asked.options.statistic, stored)
        one, two = map(Source.of_processes, sources, estimates)
        found = compare_samples(one, two, asked, margin, positive=_are_positive(sources))
        scope = "" if any(notice.code is Code.AT_FULL_PACE for notice in told) else THESE_RUNS
        found = replace(found, baseline=estimates[0], candidate=estimates[1], scope=scope)
    told = (*told, *other_differences(sources))
    notices = (*told, *notices_of_sides(sources, analyses, found.notices), *found.notices)
    return replace(
        found,
        notices=tuple(sorted(notices, key=lambda notice: not is_of_modes(notice))),
        readings_in=_common_unit(sources),
        names=_names(sources),
    )


def _names(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the names of both sides, with their ids if they are the same; arrays have none."""
    names = tuple(source.label if source.run is None else source.run.name for source in sources)
    if names == (BASELINE, CANDIDATE):
        return ()
    return names if names[0] != names[1] else tuple(source.label for source in sources)


def _compare_pairs(sources: Sequence[Source], asked: Readings, margin: float) -> Comparison:
    """Compare readings, or both sides of a comparison, pair by pair."""
    runs = [source.run for source in sources if source.run is not None]
    if are_in_turn(runs):
        baseline, candidate = runs
        return compare_in_turn(
            baseline,
            candidate,
            margin=margin,
            statistic=asked.options.statistic,
            confidence=asked.options.confidence,
            direction=asked.metric.direction,
        )
    for source in sources:
        if source.run is not None:
            raise InvalidInput(
                f"paired is given a run, {source.label}, expected readings that were taken side "
                "by side, or both runs of one comparison in turn"
            )
        recorded = source.recorded
        if recorded.unit is not SUCCESSIVE or recorded.statistic.averages_rates:
            kind = "a harmonic mean" if recorded.statistic.averages_rates else "rounds"
            raise InvalidInput(
                f"paired is given {kind} of {source.label}, expected one series of readings that "
                "are averaged as they are (arithmetic)"
            )
    one, two = (source.recorded.series[0] for source in sources)
    detector = detector_named(sources[0].recorded.options.detector)
    stable, positive = replace(asked, searched=True, detector=detector), _are_positive(sources)
    with _showing_readings(sources):
        return compare_samples(one, two, stable, margin, paired=True, positive=positive)


def rank_runs(
    runs: Mapping[str, RunRecord | npt.ArrayLike],
    *,
    metric: str | None = None,
    detector: str | None = None,
    **given: Any,
) -> tuple[tuple[Ranked, ...], tuple[Notice, ...]]:
    """Rank runs by name, as `compare_runs` compares them, and say what else differs."""
    sources = sides_of_runs(runs, metric, detector)
    asked = _of_runs(sources, **given)
    _refuse_zeros(sources)
    with _showing_readings(sources):
        analyses = [source.analysis(asked.options) for source in sources]
    estimates, told = _at_one_pace(sources, analyses, asked.options.statistic)
    places = rank(
        dict(zip(runs, estimates, strict=True)),
        statistic=asked.options.statistic,
        confidence=asked.options.confidence,
        direction=asked.metric.direction,
    )
    # Estimates have the other Notices of their analyses.
    modes = filter(is_of_modes, notices_of_sides(sources, analyses))
    notices = (*modes, *told, *other_differences(sources), *notices_of_sides(sources))
    if asked.metric.direction is None:
        notices = (*notices, Notice.of(Code.NO_DIRECTION))
    single = (SUCCESSIVE, SINGLE)
    if any(source.recorded.unit in single and not source.by_process for source in sources):
        notices = (*notices, Notice.of(Code.THIS_PROCESS_ONLY, "place"))
    return places, notices


def _are_positive(sources: Sequence[Source]) -> bool:
    return all(source.is_positive for source in sources)


def _refuse_zeros(sources: Sequence[Source]) -> None:
    """Raise NotEstimable if the times, rates or bare numbers of a source are all 0."""
    refuse_zeros(*((side.label, side.recorded.series) for side in sources if not side.may_be_0))


@contextmanager
def _showing_readings(sources: Sequence[Source]) -> Iterator[None]:
    """Add the observed figures of all sides to a refusal."""
    try:
        yield
    except NotEstimable as error:
        why, shown = notice_of(error), []
        for source in sources:
            observed = observed_of(source.recorded)
            if observed is not None:
                figures = show_observed(observed, source.recorded.metric.unit)
                shown.append(f"{source.label} {figures}")
        sentence = f"{why.sentence} Observed: {'; '.join(shown)}."
        raise NotEstimable(replace(why, sentence=sentence)) from error


def _at_one_pace(
    sources: Sequence[Source],
    analyses: Sequence[Analysis],
    statistic: str,
    stored: StoredRuns | None = None,
) -> tuple[list[Estimate], tuple[Notice, ...]]:
    """Return the figures at a common full speed, or as measured if a run knows no pace.

    The fastest full speed of any run counts for all. Two runs do similar work, so they and the
    stored runs share one sensitivity.
    """
    measured = [analysis.estimate for analysis in analyses if analysis.estimate is not None]
    runs = [source.run for source in sources if source.run is not None]
    known = [source.pace for source in sources if source.pace is not None]
    if len(known) < len(sources) or len(runs) < len(sources):
        return measured, _as_measured("timed no common work beside their own")
    if apart := _say_apart(runs, known):
        return measured, _as_measured(f"differ in {apart}, and so have no full speed in common")
    full_s = {kind: min(pace.full_s[kind] for pace in known) for kind in known[0].full_s}

    def at_full_speed(sensitivity: Sensitivity | None = None) -> list[Analysis]:
        return [
            with_pace(
                analysis,
                with_stops(run.counted_rounds, unit_of_rounds(run.options)),
                full_s,
                statistic,
                sensitivity=sensitivity,
                bounded=False,
            )
            for run, analysis in zip(runs, analyses, strict=True)
        ]

    paced = at_full_speed()
    paces = [analysis.pace for analysis in paced if analysis.pace is not None]
    if len(paces) < len(sources):
        return measured, _as_measured("timed no common work beside their own")
    shares = " and ".join(percent(pace.share) for pace in known)
    told: tuple[Notice, ...] = (Notice.of(Code.AT_FULL_PACE, shares_=shares),)
    if len(paces) == 2:
        name, reference = sources[0].recorded.metric.name, reference_s(full_s)
        beside = stored.beside(runs, paces, statistic, name) if stored else LikeRuns()
        to_full = beside.to_full(min(paces, key=lambda pace: pace.to_full_sd))
        common = common_sensitivity(paces[0], paces[1], beside.paces, to_full=to_full)
        if common is not None:
            figures = _headlines(at_full_speed(common))
            is_speed = analyses[0].wps is not None
            means, more = beside.means(figures, reference, to_full, is_speed=is_speed)
            return means, (*told, *more)
    return _headlines(paced), told


def _headlines(analyses: Iterable[Analysis]) -> list[Estimate]:
    return [figure for analysis in analyses if (figure := analysis.headline) is not None]


def _say_apart(runs: Sequence[RunRecord], paces: Sequence[Pace]) -> str:
    """Say which conditions of full speed differ between runs; empty if none does."""
    of_runs = [paced_by(run.provenance, pace) for run, pace in zip(runs, paces, strict=True)]
    values = {what: sorted({run[what] for run in of_runs}) for what in of_runs[0]}
    different = {what: found for what, found in values.items() if len(found) > 1}
    return ", ".join(f"{what} ({'; '.join(found)})" for what, found in different.items())


def _as_measured(why: str) -> tuple[Notice, ...]:
    return (Notice.of(Code.NO_COMMON_PACE, why_=why),)


def _of_runs(
    sources: Sequence[Source],
    *,
    statistic: str | None = None,
    confidence: float = 0.95,
    direction: str | None = None,
) -> Readings:
    """Ask for the statistic and the direction common to all runs, where none is asked for.

    A run without a direction takes the direction of the others.
    """
    runs = [source for source in sources if source.run is not None]
    units = {source.recorded.metric.unit: source.label for source in sources if _has_unit(source)}
    statistics = {statistic or run.recorded.options.statistic for run in runs}
    ways = (direction or source.recorded.metric.direction for source in sources)
    directions = {str(way) for way in ways if way is not None}
    problems = []
    if len(units) > 1:
        shown = ", ".join(f"{label} in {unit or 'no unit'}" for unit, label in units.items())
        raise NotComparable(f"units differ: {shown}")
    for option, values in (("statistic", statistics), ("direction", directions)):
        if len(values) > 1:
            known = " and ".join(sorted(values))
            problems.append(
                f"the {option} of the runs differs, {known}: choose one with the option {option}"
            )
    refuse(problems)
    named = next(iter(statistics), statistic)
    return asked_of(named, confidence, next(iter(directions), direction))


def _common_unit(sources: Sequence[Source]) -> str:
    """Return the unit that all sources share."""
    return next((source.recorded.metric.unit for source in sources if _has_unit(source)), "")


def _has_unit(source: Source) -> bool:
    """Whether the unit of a source is known: bare readings may have any."""
    return source.run is not None or source.recorded.metric.unit != ""


_SOME = 5  # names that an error lists
_Pairs = Mapping[str, tuple[RunRecord, RunRecord]]


def compare_suite(
    pairs: _Pairs, *, margins: Mapping[str, float], store: Store | None = None
) -> Family:
    """Compare pairs of baseline and candidate, as `compare_runs` does, as one family.

    ``margins`` are by name too; ``store`` holds earlier runs, which say how far runs are apart.
    Pairs that cannot be compared are left out with a Notice. NotEstimable when no pair can. The
    runs of a suite share the pace of their session, and members of a group their baseline.
    """
    stored = None if store is None else StoredRuns(store)
    found, refused = _compare_each(pairs, margins=margins, stored=stored)
    if not found:
        raise NotEstimable(_name_refusals(refused)[0])
    return family_of(found, notices=_name_refusals(refused), independent=False)


def compare_suites(
    suites: Mapping[str, Mapping[str, RunRecord]], **options: Any
) -> SuiteComparison:
    """Compare suites with the first one, benchmark by benchmark, all of them as one family.

    ``suites`` are by the names of their files, their runs by the names of the benchmarks; the
    further options are as of `compare_named`. NotComparable when no name is in two of them.
    """
    first, *others = suites
    baseline = suites[first]
    found, refused = dict[str, dict[str, Comparison]](), dict[str, dict[str, Notice]]()
    for file in others:
        suite = suites[file]
        pairs = {name: (run, suite[name]) for name, run in baseline.items() if name in suite}
        found[file], refused[file] = _compare_each(pairs, (first, file), **options)
    common = tuple(name for name in baseline if any(name in suites[file] for file in others))
    if not common:
        shown = (
            f"{file} has {first_few([*map(repr, suite)], _SOME)}" for file, suite in suites.items()
        )
        raise NotComparable(f"{'; '.join(shown)}: expected benchmarks of the same names")
    names = dict.fromkeys(name for suite in suites.values() for name in suite)
    return SuiteComparison(
        baseline=first,
        names=common,
        families={
            file: family_of(
                own,
                notices=_name_refusals(refused[file]),
                independent=False,
                beside=[one for other in others if other != file for one in found[other].values()],
            )
            for file, own in found.items()
            if own
        },
        refused=refused,
        missing={
            file: tuple(name for name in names if name not in suite)
            for file, suite in suites.items()
        },
        figures={
            file: {name: _figures(run) for name, run in suite.items() if not run.rounds}
            for file, suite in suites.items()
        },
    )


def _compare_each(
    pairs: _Pairs,
    names: tuple[str, str] = (BASELINE, CANDIDATE),
    margins: Mapping[str, float] | None = None,
    **options: Any,
) -> tuple[dict[str, Comparison], dict[str, Notice]]:
    """Compare all pairs, or say why a pair cannot be compared."""
    found: dict[str, Comparison] = {}
    refused: dict[str, Notice] = {}
    for name, (baseline, candidate) in pairs.items():
        sides = dict(zip(names, (baseline, candidate), strict=True))
        try:
            own = options | ({"margin": margins[name]} if margins else {})
            found[name] = compare_named(sides, **own)
        except NotEstimable as error:
            refused[name] = notice_of(error)
        except InvalidInput as error:
            refused[name] = Notice.of(Code.NOT_COMPARED, why_=str(error))
    return found, refused


def _name_refusals(refused: Mapping[str, Notice]) -> Sequence[Notice]:
    named = refused.items()
    return [notice.about(name) for name, notice in named]


def _figures(run: RunRecord) -> dict[str, float]:
    """Return the contents of a file in place of raw readings."""
    held = (notice.evidence for analysis in run.analyses for notice in analysis.notices)
    return {
        name: value
        for evidence in held
        for name, value in evidence.items()
        if isinstance(value, int | float)
    }
