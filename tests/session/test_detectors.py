"""The detector that options name cuts whatever is cut, through each entry point of Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Metric, Options, Round, StopReason
from benchrigor.session.pairs.measuring_processes import measure_processes
from benchrigor.session.pairs.pair_engine import PairEngine
from benchrigor.session.replays.recorded_phases import record_with_changes
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.testing import FakeClock, SyntheticWorkload

EDM, METRIC = Options(detector="edm"), Metric(name="time", unit="s")
WARM_UP, STABLE, COOL_DOWN = 60, 400, 40
LEVEL = 20.0


def phased(seed: int) -> np.ndarray:
    """Return a warm-up, a stable phase at the level, and a cool-down."""
    levels = np.repeat([1.5 * LEVEL, LEVEL, 1.2 * LEVEL], [WARM_UP, STABLE, COOL_DOWN])
    return levels + np.random.default_rng([36, seed]).normal(0.0, 1.0, levels.size)


def by_session(series: np.ndarray) -> br.RunRecord:
    """Tell a session the readings of what ends by itself, and return its record."""
    options = br.Options(detector="edm", target=None)
    session = br.Session(options, (METRIC,), clock=FakeClock())
    plan = session.ask()
    assert plan is not None
    session.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": series}))
    session.end(StopReason.EXHAUSTED)
    return session.result()


def by_restarted_rounds(series: np.ndarray) -> br.RunRecord:
    options = Options(detector="edm", rounds="restarted")
    return record_of_readings([series] * 6, options, METRIC, name="rounds")


def test_a_detector_cuts_longer_rounds_after_one_of_a_single_reading() -> None:
    options = br.Options(detector="edm", target=None, rounds="restarted")
    session, sizes = br.Session(options, (METRIC,), clock=FakeClock()), (1, 1, 50, 50, 1, 50)
    for round_index, size in enumerate(sizes):
        plan = session.ask()
        assert plan is not None
        series = np.random.default_rng([36, round_index]).normal(LEVEL, 1.0, size)
        session.tell(Round(plan=plan, elapsed_ns=1, unit_readings={"time": series}))
    record = session.result()
    assert len(record.analyses[0].phases) == len(sizes)
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx(LEVEL, rel=0.02)


DOORS: dict[str, Callable[[np.ndarray], br.RunRecord]] = {
    "session": by_session,
    "file": lambda series: record_of_readings([series], EDM, METRIC, name="file"),
    "rounds": by_restarted_rounds,
    "changes": lambda series: record_with_changes(
        [series], EDM, METRIC, name="file", level=0.01, min_segment=None
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_one_segment_with_more_than_half_is_measured_whole_and_none_at_half(door: str) -> None:
    record = DOORS[door](np.repeat([30.0, 20.0], [30, 130]))
    estimate, phase = record.estimate(), record.analyses[0].phases[0]
    assert estimate is not None
    assert (phase.start, phase.stop, phase.reason) == (30, 160, "longest segment")
    assert estimate.value == 20.0
    record = DOORS[door](np.repeat([30.0, 20.0], 100))
    assert record.estimate() is None
    assert record.analyses[0].phases[0].reason.name == "NO_DOMINANT_SEGMENT"


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_the_published_method_finds_the_stable_phase_of_a_phased_series(door: str) -> None:
    for seed in range(3):
        record = DOORS[door](phased(seed))
        estimate, phase = record.estimate(), record.analyses[0].phases[0]
        assert estimate is not None
        assert estimate.value == phased(seed)[phase.start : phase.stop].mean()
        assert phase.start == pytest.approx(WARM_UP, abs=3)
        published = br.stats.find_stable_phase(phased(seed), detector="edm")
        assert (phase.start, phase.stop) == (published.start, published.stop)


def test_the_published_method_gives_its_known_answer() -> None:
    series = np.repeat([10.0, 30.0, 10.0], [30, 130, 30])
    assert br.stats.detect_changes(series, method="edm").indices == (30, 131)
    by_changes = DOORS["changes"](series)
    assert by_changes.analyses[0].phases[0].change_points.indices == (30, 131)


@pytest.mark.slow
def test_each_function_that_measures_takes_a_detector() -> None:
    clock = FakeClock(resolution_ns=1)
    durations = np.random.default_rng(1).normal(1e6, 3e4, 4096)
    calls = iter(np.tile(durations, 100))

    def work() -> None:
        clock.advance(int(next(calls)))

    record = br.measure(work, detector="edm", clock=clock, batch=1, seed=1, budget_s=2.0)
    assert record.options.detector == "edm"
    assert record.analyses[0].phases[0].change_points.level is None
    many = br.measure_many({"work": work}, detector="edm", clock=clock, batch=1, budget_s=1.0)
    assert many["work"].options.detector == "edm"
    engines: list[Any] = []
    asked = {"detector": "edm", "began": engines.append, "clock": clock, "budget_s": 0.1}
    br.measure_pair(work, work, **asked)
    both = [SyntheticWorkload(restarted=True, seed=seed, clock=clock) for seed in (1, 2)]
    measure_processes(*both, **asked)
    assert [each.options.detector for each in engines] == ["edm", "edm"]


@pytest.mark.slow
@pytest.mark.parametrize("by_round", [False, True])
def test_pairs_are_cut_by_the_detector_that_is_asked_for(by_round: bool) -> None:
    rng = np.random.default_rng(5)
    levels = np.repeat([1.5, 1.0, 1.2], [60, 900, 40])
    sides = [rng.normal(levels, 0.05, (6 if by_round else 1, levels.size)) for _ in range(2)]
    ratios = {}
    for name in ("ranks", "edm"):
        engine = PairEngine(by_round=by_round, detector=name)
        one, two = sides if by_round else (side[0] for side in sides)
        engine.add(list(one) if by_round else one, list(two) if by_round else two, None, ())
        ratio = engine.result().ratio
        assert ratio is not None
        ratios[name] = ratio
        assert ratio.low <= 1.0 <= ratio.high
    assert ratios["edm"] != ratios["ranks"]


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True])
def test_recordings_are_compared_by_the_detector_that_is_asked_for(paired: bool) -> None:
    rng = np.random.default_rng(5)
    levels = np.repeat([1.5, 1.0, 1.2], [60, 900, 40])
    sides = [rng.normal(levels, 0.05) for _ in range(2)]
    usual, published = (
        br.compare_runs(*sides, paired=paired, detector=name) for name in (None, "edm")
    )
    assert usual.ratio is not None
    assert published.ratio is not None
    assert published.ratio != usual.ratio
    assert published.ratio.value == pytest.approx(1.0, rel=0.02)
    runs = [by_session(side) for side in sides]
    assert br.compare_runs(*runs, detector="ranks").ratio == br.compare_runs(*sides).ratio
    assert br.compare_runs(*runs).ratio == br.compare_runs(*sides, detector="edm").ratio
