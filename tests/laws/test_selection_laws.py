"""The estimate follows from the readings and from how often each counts, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from simulated.paced import paced
from tests.report.recorded import told

import benchrigor as br
from benchrigor import stats
from benchrigor.model import Delays
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload


def synthetic(**given: object) -> br.RunRecord:
    """Run what warms up."""
    clock = FakeClock()
    options = br.Options(**{"budget_s": 30.0, "target": 0.02, **given})  # type: ignore[arg-type]
    restarted = options.rounds == "restarted"
    warm_up = StepWarmUp(amplitude=2.0, length=80)
    workload = SyntheticWorkload(
        mean=0.001, cv=0.1, warm_up=warm_up, restarted=restarted, seed=54, clock=clock
    )
    return br.Session(options, seed=54, clock=clock).run(workload)


def amounts() -> br.RunRecord:
    """Run rounds of various work, of which the first are left out."""
    session = br.Session(br.Options(work=(1, 10_000), target=1e-9, max_rounds=30), seed=54)
    while (plan := session.ask()) is not None:
        seconds = 0.05 + (plan.work or 0.0) / 500
        session.tell(br.Round(plan=plan, elapsed_ns=10**9, readings={"time": seconds}))
    return session.result()


def one_red() -> br.RunRecord:
    """Run three rounds, of which the second loses its time."""
    units = [np.random.default_rng(54).normal(1.0, 0.1, n) for n in (40, 40, 60)]
    delays = Delays(stops=[40], seconds={"run queue": [30.0]})
    options = {"rounds": "restarted", "trim": 0.1, "red_rounds": "repeat", "max_rounds": 2}
    return told(*units, delays={1: delays}, **options)


RECORDS: dict[str, Callable[[], br.RunRecord]] = {
    "a warm-up": synthetic,
    "subsessions": lambda: synthetic(method="subsessions"),
    "all readings": lambda: synthetic(trim="none"),
    "cut shares": lambda: synthetic(trim=(0.1, 0.05)),
    "restarted rounds": lambda: synthetic(rounds="restarted"),
    "few readings": lambda: synthetic(budget_readings=7),
    "a changing pace": paced,
    "delays": lambda: paced(delay=0.2),
    "delays, all readings": lambda: paced(delay=0.2, trim="none"),
    "delays, subsessions": lambda: paced(delay=0.2, method="subsessions"),
    "pieces": lambda: paced(pieces=4, budget_readings=None, budget_s=0.8),
    "amounts of work": amounts,
    "a red round": one_red,
}


@pytest.fixture(params=RECORDS, scope="module")
def record(request: pytest.FixtureRequest) -> br.RunRecord:
    return RECORDS[request.param]()


def test_each_reading_has_a_reason_and_counts_if_it_is_kept(record: br.RunRecord) -> None:
    selection, analysis = record.selection(), record.analysis()
    assert selection is not None
    assert analysis is not None
    assert selection.reasons.size == selection.counts.size == record.readings().size
    np.testing.assert_array_equal(selection.counts > 0, selection.reasons == br.Reason.KEPT)
    assert selection.counts.sum() == analysis.n_kept


def test_phases_and_delays_of_an_older_record_tell_the_same(record: br.RunRecord) -> None:
    older = [replace(analysis, selection=None) for analysis in record.analyses]
    found, kept = replace(record, analyses=tuple(older)).selection(), record.selection()
    assert kept is not None
    if any(analysis.left_out for analysis in older):  # a reason that only the schedule knew
        assert found is None
        return
    assert found is not None
    np.testing.assert_array_equal(found.reasons, kept.reasons)
    np.testing.assert_array_equal(found.counts, kept.counts)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("all readings", "long-run-variance"),
        ("cut shares", "long-run-variance"),
        ("delays, all readings", "long-run-variance"),
        ("subsessions", "subsessions"),
        ("delays, subsessions", "subsessions"),
    ],
)
def test_the_estimate_is_that_of_the_readings_as_often_as_they_count(
    name: str, method: str
) -> None:
    record = RECORDS[name]()
    selection, estimate = record.selection(), record.estimate()
    assert selection is not None
    assert estimate is not None
    found = stats.estimate_mean(np.repeat(record.readings(), selection.counts), method=method)
    assert (found.value, found.low, found.high) == (estimate.value, estimate.low, estimate.high)


def test_the_line_goes_through_the_rounds_that_count() -> None:
    record = amounts()
    selection, analysis = record.selection(), record.analysis()
    assert selection is not None
    assert analysis is not None
    assert analysis.wps is not None
    pairs = np.array([(done.plan.work, done.duration_s) for done in record.rounds])
    work, duration_s = np.repeat(pairs, selection.counts, axis=0).T
    assert stats.fit_wps(work, duration_s).slope.value == analysis.wps.slope.value


def test_readings_of_a_red_round_say_so() -> None:
    record = one_red()
    selection = record.selection()
    assert selection is not None
    assert record.omitted_rounds == (1,)
    assert set(selection.reasons[40:80]) == {br.Reason.RED_ROUND}
    assert set(selection.reasons[:40]) == {br.Reason.KEPT, br.Reason.CUT}


def test_a_selection_is_kept_with_the_record() -> None:
    record = paced(delay=0.2)
    loaded = br.RunRecord.from_dict(record.to_dict())
    kept, found = record.selection(), loaded.selection()
    assert kept is not None
    assert found is not None
    np.testing.assert_array_equal(found.reasons, kept.reasons)
    np.testing.assert_array_equal(found.counts, kept.counts)
    assert (found.reasons == br.Reason.DISTURBED).any()
