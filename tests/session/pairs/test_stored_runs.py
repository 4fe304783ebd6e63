"""Stored runs that are alike count as pieces of one, and tell how far apart runs are."""

import math
from dataclasses import replace

import numpy as np
import pytest
from simulated.paced import TRUE_S, told

import benchrigor as br
from benchrigor.model import Code
from benchrigor.storage import Journal


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def stored(store, levels, *, commit, first=1):
    """Keep runs of a version whose levels differ by chance, and load them again."""
    journal, found = Journal(store), []
    for seed, level in enumerate(levels, first):
        record = told(seed, level_s=level, store=store, rounds=2)
        where = replace(record.provenance, commit=commit, source=None)
        run_id = journal.begin(replace(record, provenance=where, rounds=(), run_id=None))
        for each in record.rounds:
            journal.append(run_id, each)
        journal.finish(run_id, replace(record, provenance=where, run_id=run_id))
        found.append(journal.load(run_id))
    return found


def levels(seed, n, mean=TRUE_S, spread=0.05):
    return mean * np.exp(np.random.default_rng(seed).normal(0.0, spread, n))


def codes(comparison):
    return {each.code for each in comparison.notices}


def test_like_runs_in_the_store_count_with_a_side(store):
    old = stored(store, levels(1, 4), commit="a")
    new = stored(store, levels(2, 4, 1.1 * TRUE_S), commit="b", first=10)
    alone = br.compare_runs(old[0], new[0])
    together = br.compare_runs(old[0], new[0], store=store)
    assert Code.STORED_RUNS in codes(together)
    assert Code.STORED_RUNS not in codes(alone)
    means = [
        math.exp(np.mean([math.log(each.at_full_pace().value) for each in group]))
        for group in (old, new)
    ]
    assert together.ratio.value == pytest.approx(means[1] / means[0], rel=0.02)


@pytest.mark.slow
def test_the_spread_between_them_is_the_variance_between_runs(store):
    """Six degrees of freedom: nothing is assumed of how far apart runs are."""
    steady = stored(store, levels(1, 4, spread=0.001), commit="a")
    other = stored(store, levels(2, 4, spread=0.001), commit="b", first=10)
    few = br.compare_runs(steady[0], other[0])
    many = br.compare_runs(steady[0], other[0], store=store)
    assert many.ratio.relative_half_width < 0.5 * few.ratio.relative_half_width


@pytest.mark.slow
def test_runs_that_are_alike_are_compared_one_by_one(store):
    first, second, *_ = stored(store, levels(1, 7, spread=0.1), commit="a")
    comparison = br.compare_runs(first, second, store=store)
    assert Code.STORED_RUNS not in codes(comparison)
    ratio = second.at_full_pace().value / first.at_full_pace().value
    assert comparison.ratio.value == pytest.approx(ratio, rel=0.05)
    assert comparison.ratio.relative_half_width > 0.15  # the runs are 10 % apart


def test_runs_of_another_machine_or_source_do_not_count(store):
    (mine, *_) = stored(store, levels(1, 3), commit="a")
    other = stored(store, levels(2, 3, 1.3 * TRUE_S), commit="b", first=10)
    where = replace(mine.provenance, source="0123")
    edited = replace(mine, provenance=where, run_id="e" * 8)
    comparison = br.compare_runs(edited, other[0], store=store)
    (told_of,) = (each for each in comparison.notices if each.code is Code.STORED_RUNS)
    assert told_of.sentence.startswith("0 and 2 other stored runs")
