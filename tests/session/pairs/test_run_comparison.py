"""Two runs, or readings from elsewhere, compared by the library."""

from dataclasses import replace

import numpy as np
import pytest
from shared_cases import analysed_again
from simulated.paced import told
from tests.session.telling import codes

import benchrigor as br
from benchrigor.model import Code
from benchrigor.session import compare_runs
from benchrigor.testing import SyntheticWorkload

READINGS = np.random.default_rng(1).normal(1.0, 0.05, 1000)


def run(mean: float, seed: int, **given: object) -> br.RunRecord:
    options = br.Options(rounds="restarted", max_rounds=20, **given)  # type: ignore[arg-type]
    session = br.Session(options, name=f"run {seed}", seed=seed)
    return session.run(SyntheticWorkload(mean=mean, restarted=True, between_cv=0.01, seed=seed))


OLD, NEW = run(1.0, 1), run(1.1, 2)


def test_restarted_rounds_are_compared_one_by_one() -> None:
    comparison = compare_runs(OLD, NEW)
    assert comparison.verdict is br.Verdict.WORSE
    assert comparison.unit == "invocation"
    assert Code.THIS_PROCESS_ONLY not in codes(comparison)
    assert compare_runs(OLD, NEW, direction="higher").verdict is br.Verdict.BETTER
    assert compare_runs(OLD, NEW, margin=0.5).verdict is br.Verdict.EQUIVALENT


def test_the_statistic_is_that_of_the_runs_unless_another_is_given() -> None:
    medians = [run(1.0, seed, statistic="median") for seed in (3, 4)]
    assert compare_runs(*medians).statistic == "median"
    assert compare_runs(*medians, statistic="p10").statistic == "p10"
    assert compare_runs(READINGS, READINGS + 0.1).statistic == "mean"


@pytest.mark.parametrize(
    ("where", "version"), [({"python": "CPython 3.0.0"}, 1), ({"host": "elsewhere"}, 1), ({}, 2)]
)
def test_the_same_readings_beside_a_faster_reference_are_no_change(where, version, tmp_path):
    """As of another interpreter: another full pace, which tells nothing of the readings."""
    record = told(1, store=tmp_path / "runs.sqlite")
    rounds = []
    for each in record.rounds:
        faster = {kind: 0.6 * s for kind, s in each.references.seconds.items()}
        references = replace(each.references, seconds=faster, version=version)
        rounds.append(replace(each, references=references))
    where = replace(record.provenance, **where)
    other = analysed_again(replace(record, provenance=where, rounds=tuple(rounds)))
    comparison = compare_runs(record, other)
    assert comparison.ratio.value == pytest.approx(1.0)
    assert Code.AT_FULL_PACE not in codes(comparison)
    assert Code.NO_COMMON_PACE in codes(comparison)
