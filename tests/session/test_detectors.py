"""A session with a detector of another package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ruptures as rpt

import benchrigor as br
from benchrigor.errors import DetectorFailed, InvalidInput
from benchrigor.model import ChangePoints, RunRecord, StopReason
from benchrigor.report import explain
from benchrigor.session.engine import Engine
from benchrigor.stats import RupturesDetector
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload

WARM_UP = 60
ESTIMATORS = {
    "Pelt": lambda: rpt.Pelt(model="l2"),
    "KernelCPD": lambda: rpt.KernelCPD(kernel="rbf"),
    "Binseg": lambda: rpt.Binseg(model="l2"),
}


def measured(detector: Any, *, restarted: bool = False, readings: int = 100) -> RunRecord:
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=0.002,
        cv=0.05,
        seed=7,
        clock=clock,
        restarted=restarted,
        warm_up=StepWarmUp(amplitude=0.5, length=WARM_UP),
    )
    options = br.Options(
        target=0.02,
        rounds="restarted" if restarted else "continuous",
        readings_per_round=readings,
        budget_readings=4 * readings,
    )
    return br.Session(options, seed=1, clock=clock, detector=detector).run(workload)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_of_ruptures_is_taken_as_it_is(name: str) -> None:
    record = measured(ESTIMATORS[name]())
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    (phase,) = analysis.phases
    assert phase.start == pytest.approx(WARM_UP, abs=5)
    assert phase.stop == analysis.n
    assert phase.change_points.level is None
    assert estimate is not None
    assert estimate.value == pytest.approx(0.002, rel=0.02)
    assert "Change point" in explain(record)
    assert RunRecord.from_dict(record.to_dict()).same_as(record)


def test_a_bare_estimator_means_its_adapter_with_the_default_penalty() -> None:
    estimator = rpt.KernelCPD(kernel="rbf")
    bare, wrapped = (measured(each) for each in (estimator, RupturesDetector(estimator)))
    assert bare.analyses[0].same_as(wrapped.analyses[0])
    deaf = measured(RupturesDetector(estimator, pen=1e6)).analysis()
    assert deaf is not None
    assert deaf.phases[0].change_points.indices == ()


def test_restarted_rounds_are_cut_one_by_one() -> None:
    analysis = measured(rpt.KernelCPD(kernel="linear"), restarted=True, readings=200).analysis()
    assert analysis is not None
    assert [phase.start for phase in analysis.phases] == [pytest.approx(WARM_UP, abs=3)] * 4


def test_an_estimator_is_not_changed_by_a_session() -> None:
    estimator = rpt.KernelCPD(kernel="rbf")
    measured(estimator)
    assert estimator.n_samples is None
    assert estimator.cost.gamma is None


def test_what_can_be_called_is_a_detector_even_if_it_could_be_fitted() -> None:
    class Both:
        def __call__(self, values: np.ndarray) -> ChangePoints:
            return ChangePoints(indices=(100,), n=values.size, level=0.5, inflation=1.0)

        def fit(self, signal: object) -> None:
            raise AssertionError

        def predict(self, pen: float) -> None:
            raise AssertionError

    analysis = measured(Both()).analysis()
    assert analysis is not None
    assert analysis.phases[0].change_points.level == 0.5


@pytest.mark.parametrize(
    ("detector", "phrase"),
    [
        ("pelt", "detector is 'pelt', expected a function that returns the ChangePoints"),
        (rpt.Pelt, r"detector is <class .*Pelt'>, expected .* such as ruptures.Pelt\(\)"),
        (object(), "detector is <object object"),
        (rpt.Dynp(), "Dynp.predict takes no pen, expected n_bkps"),
    ],
)
@pytest.mark.parametrize("of", [Engine, br.Session])
def test_what_is_no_detector_is_named_before_anything_is_measured(
    of: Any, detector: object, phrase: str
) -> None:
    with pytest.raises(InvalidInput, match=phrase):
        of(detector=detector)


def raising(_: object) -> ChangePoints:
    raise RuntimeError("out of ideas")


FAILING: dict[str, tuple[Any, str]] = {
    "raises": (raising, r"raising.* raised RuntimeError\('out of ideas'\) on [14]00 readings"),
    "gives nothing": (lambda _: None, "returned None, expected ChangePoints"),
    "gives a list": (lambda _: [5], r"returned \[5\], expected ChangePoints"),
    "is of another series": (
        lambda _: ChangePoints(indices=(), n=7, level=None, inflation=1.0),
        "series of 7 values, expected [14]00",
    ),
    "is out of order": (
        lambda values: ChangePoints(indices=(50, 20), n=len(values), level=None, inflation=1.0),
        r"at \(50, 20\), expected ascending",
    ),
    "cannot cut so many": (RupturesDetector(rpt.Dynp(model="l2"), n_bkps=90), "n_bkps=90"),
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("name", FAILING)
def test_a_detector_that_fails_loses_no_round(name: str, restarted: bool) -> None:
    detector, message = FAILING[name]
    with pytest.raises(DetectorFailed, match=message) as caught:
        measured(detector, restarted=restarted)
    record = caught.value.record
    assert isinstance(record, RunRecord)
    # At the first look: of each restarted round, else of all that the budget allows.
    assert record.readings().size == (100 if restarted else 400)
    assert record.estimate() is None
    assert record.decision is not None
    assert record.decision.reason is StopReason.DETECTOR_FAILED
    assert RunRecord.from_dict(record.to_dict()).same_as(record)


def test_told_rounds_stay_when_the_detector_fails() -> None:
    session = br.Session(br.Options(readings_per_round=100), seed=1, detector=raising)
    plan = session.ask()
    assert plan is not None
    told = br.Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": np.ones(600)})
    with pytest.raises(DetectorFailed):
        session.tell(told)
    assert session.result().readings().size == 600
    assert "detector-failed" in str([notice.code.value for notice in session.result().notices])
