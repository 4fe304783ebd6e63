"""Suites of runs compared by name, and judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchrigor.errors import InvalidInput, NotComparable, NotEstimable
from benchrigor.model import Code, Comparison, Notice, RunRecord
from benchrigor.model.comparison import Family, SuiteComparison
from benchrigor.model.text import first_few
from benchrigor.protocols import Store
from benchrigor.session.pairs.run_comparison import compare_named
from benchrigor.session.stored_runs import BASELINE, CANDIDATE, StoredRuns
from benchrigor.stats.comparison.multiple_testing import family_of
from benchrigor.stats.comparison.samples import Question
from benchrigor.stats.readings.analysis import notice_of

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
    questions = {name: Question(margin=margin) for name, margin in margins.items()}
    found, refused = _compare_each(pairs, questions, stored=stored)
    if not found:
        raise NotEstimable(_name_refusals(refused)[0])
    return family_of(found, notices=_name_refusals(refused), independent=False)


def compare_suites(
    suites: Mapping[str, Mapping[str, RunRecord]], question: Question, **options: Any
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
        questions = dict.fromkeys(pairs, question)
        found[file], refused[file] = _compare_each(pairs, questions, (first, file), **options)
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
    questions: Mapping[str, Question],
    names: tuple[str, str] = (BASELINE, CANDIDATE),
    **options: Any,
) -> tuple[dict[str, Comparison], dict[str, Notice]]:
    """Compare all pairs, or say why a pair cannot be compared."""
    found: dict[str, Comparison] = {}
    refused: dict[str, Notice] = {}
    for name, (baseline, candidate) in pairs.items():
        sides = dict(zip(names, (baseline, candidate), strict=True))
        try:
            found[name] = compare_named(sides, questions[name], **options)
        except NotEstimable as error:
            refused[name] = notice_of(error)
        except InvalidInput as error:
            refused[name] = Notice.warning(Code.NOT_COMPARED, f"{error}.")
    return found, refused


def _name_refusals(refused: Mapping[str, Notice]) -> Sequence[Notice]:
    named = refused.items()
    return [replace(notice, sentence=f"{name}: {notice.sentence}") for name, notice in named]


def _figures(run: RunRecord) -> dict[str, float]:
    """Return the contents of a file in place of raw readings."""
    held = (notice.evidence for analysis in run.analyses for notice in analysis.notices)
    return {
        name: value
        for evidence in held
        for name, value in evidence.items()
        if isinstance(value, int | float)
    }
