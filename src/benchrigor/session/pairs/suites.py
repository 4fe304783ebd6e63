"""Suites of runs compared by name, and judged together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Comparison, Family, Notice, RunRecord
from benchrigor.protocols import Store
from benchrigor.session.pairs.run_comparison import compare_named
from benchrigor.session.stored_runs import StoredRuns
from benchrigor.stats.comparison.multiple_testing import family_of
from benchrigor.stats.estimators.estimation import notice_of


def compare_suite(
    pairs: Mapping[str, tuple[RunRecord, RunRecord]],
    *,
    margins: Mapping[str, float],
    store: Store | None = None,
) -> Family:
    """Compare pairs of baseline and candidate, each as `compare_runs` does, as one family.

    ``margins`` are by name too; ``store`` holds earlier runs, which tell how far runs are apart.
    Pairs that cannot be compared are left out with a Notice. NotEstimable when no pair can. The
    runs of a suite share the pace of their session, and members of a group their baseline.
    """
    stored = None if store is None else StoredRuns(store)
    found: dict[str, Comparison] = {}
    refused: list[Notice] = []
    for name, (baseline, candidate) in pairs.items():
        sides = {"baseline": baseline, "candidate": candidate}
        try:
            found[name] = compare_named(sides, margin=margins[name], stored=stored)
        except NotEstimable as error:
            notice = notice_of(error)
            refused.append(replace(notice, sentence=f"{name}: {notice.sentence}"))
        except InvalidInput as error:
            refused.append(Notice.warning(Code.NOT_COMPARED, f"{name}: {error}"))
    if not found:
        raise NotEstimable(refused[0])
    return family_of(found, notices=refused, independent=False)
