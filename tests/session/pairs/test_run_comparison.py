"""Two runs, or readings from elsewhere, compared by the library."""

from dataclasses import replace

import pytest
from shared_cases import analysed_again
from simulated.paced import told
from tests.session.telling import codes

import benchrigor as br
from benchrigor.model import Code
from benchrigor.session import compare_runs
from benchrigor.testing import SyntheticWorkload


def run(mean: float, seed: int, **given: object) -> br.RunRecord:
    options = br.Options(rounds="restarted", max_rounds=20, **given)  # type: ignore[arg-type]
    session = br.Session(options, name=f"run {seed}", seed=seed)
    return session.run(SyntheticWorkload(mean=mean, restarted=True, between_cv=0.01, seed=seed))


OLD, NEW = run(1.0, 1), run(1.1, 2)


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
