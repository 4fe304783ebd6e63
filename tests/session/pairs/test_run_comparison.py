"""Two runs, or readings from elsewhere, compared by the library."""

from dataclasses import replace

import numpy as np
import pytest
from shared_cases import analysed_again
from simulated.paced import told

import benchrigor as br
from benchrigor.model import Code, References
from benchrigor.session import compare_runs
from benchrigor.testing import SyntheticWorkload

READINGS = np.random.default_rng(1).normal(1.0, 0.05, 1000)


def run(mean: float, seed: int, **given: object) -> br.RunRecord:
    options = br.Options(rounds="restarted", max_rounds=20, **given)  # type: ignore[arg-type]
    session = br.Session(options, name=f"run {seed}", seed=seed)
    return session.run(SyntheticWorkload(mean=mean, restarted=True, between_cv=0.01, seed=seed))


OLD, NEW = run(1.0, 1), run(1.1, 2)


@pytest.mark.slow
def test_restarted_rounds_are_compared_one_by_one() -> None:
    comparison = compare_runs(OLD, NEW)
    assert comparison.verdict is br.Verdict.WORSE
    assert comparison.unit == "invocation"
    assert Code.THIS_PROCESS_ONLY not in {each.code for each in comparison.notices}
    assert compare_runs(OLD, NEW, direction="higher").verdict is br.Verdict.BETTER
    assert compare_runs(OLD, NEW, margin=0.5).verdict is br.Verdict.EQUIVALENT


@pytest.mark.slow
def test_the_statistic_is_that_of_the_runs_unless_another_is_given() -> None:
    medians = [run(1.0, seed, statistic="median") for seed in (3, 4)]
    assert compare_runs(*medians).statistic == "median"
    assert compare_runs(*medians, statistic="p10").statistic == "p10"
    assert compare_runs(READINGS, READINGS + 0.1).statistic == "mean"


@pytest.mark.slow
def test_what_may_differ_beside_the_readings_is_a_notice() -> None:
    assert OLD.provenance is not None
    there = replace(NEW, provenance=replace(OLD.provenance, host="elsewhere"))
    found = {each.code: each for each in compare_runs(OLD, there).notices}
    assert "elsewhere" in found[Code.HOSTS_DIFFER].sentence
    assert Code.METRICS_DIFFER not in found
    rebooted = replace(NEW, provenance=replace(OLD.provenance, environment={"boot_time": "later"}))
    assert Code.HOSTS_DIFFER not in {each.code for each in compare_runs(OLD, rebooted).notices}


@pytest.mark.slow
def test_a_benchmark_that_has_changed_itself_is_told() -> None:
    def of(run: br.RunRecord, name: str, function: str | None) -> br.RunRecord:
        assert run.provenance is not None
        where = replace(run.provenance, function=function)
        return replace(run, provenance=where, subject={"kind": "function", "name": name})

    def codes(*runs: br.RunRecord) -> set[Code]:
        return {each.code for each in compare_runs(*runs).notices}

    old = of(OLD, "m.f", "ab")
    assert Code.FUNCTIONS_DIFFER in codes(old, of(NEW, "m.f", "cd"))
    same, unknown, other = of(NEW, "m.f", "ab"), of(NEW, "m.f", None), of(NEW, "m.g", "cd")
    for each in (same, unknown, other):
        assert Code.FUNCTIONS_DIFFER not in codes(old, each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "version", "words"),
    [
        ({"python": "CPython 3.0.0"}, 1, "interpreter (CPython "),
        ({"host": "elsewhere"}, 1, "machine (elsewhere, "),
        ({}, 2, "version of the reference (interpreter 1; interpreter 2)"),
    ],
)
def test_the_same_readings_beside_a_faster_reference_are_no_change(where, version, words, tmp_path):
    """As of another interpreter: another full pace, which tells nothing of the readings."""
    record = told(1, store=tmp_path / "runs.sqlite")
    rounds = tuple(
        replace(
            each,
            references=References(
                stops=each.references.stops,
                seconds={kind: 0.6 * s for kind, s in each.references.seconds.items()},
                version=version,
            ),
        )
        for each in record.rounds
    )
    there = replace(record.provenance, **where)
    other = analysed_again(replace(record, rounds=rounds, provenance=there))
    comparison = compare_runs(record, other)
    assert comparison.ratio is not None
    assert comparison.ratio.value == pytest.approx(1.0)
    found = {each.code: each for each in comparison.notices}
    assert Code.AT_FULL_PACE not in found
    assert words in found[Code.NO_COMMON_PACE].sentence
