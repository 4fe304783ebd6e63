"""What a run lost to others: its light, and rounds that lost too much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.session.telling import codes, engine_of, number, reason, told, units

import benchrigor as br
from benchrigor.model import (
    Code,
    Delays,
    Disturbed,
    Interference,
    Options,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.report import explain, render
from benchrigor.session import Session, compare_runs
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject
from benchrigor.testing import FakeClock, FakeMeter

MS = 1_000_000
Strike = Callable[[int], object]


def measured(clock: FakeClock, meter: FakeMeter, strike: Strike, **options: Any) -> RunRecord:
    """Run a function of 4 ms, give or take 1 %, that is struck by the number of its calls."""
    rng, calls = np.random.default_rng(20261206), iter(range(1, 1_000_000))

    def job() -> None:
        clock.advance(int(rng.normal(4 * MS, 0.04 * MS)))
        strike(next(calls))

    chosen = Options(**{"target": 0.05, "budget_s": 120.0, **options})
    return Session(chosen, seed=1, clock=clock, meter=meter, name="job").run(job)


def light_of(record: RunRecord) -> Interference:
    assert record.interference is not None
    return record.interference


def test_a_run_that_nobody_disturbs_is_green(clock: FakeClock, meter: FakeMeter) -> None:
    record = measured(clock, meter, lambda _: None)
    assert light_of(record).light == "green"
    assert light_of(record).total_percent < 0.1
    assert Code.DISTURBED not in codes(record)


def test_a_warm_up_is_no_interference(clock: FakeClock, meter: FakeMeter) -> None:
    record = measured(clock, meter, lambda calls: clock.advance(20 * MS * (calls < 100)))
    assert light_of(record).total_percent < 0.5


def test_where_nothing_is_stable_only_measured_delay_is_told(
    clock: FakeClock, meter: FakeMeter
) -> None:
    def strike(calls: int) -> None:
        clock.advance(calls * MS // 20)
        if calls % 10 == 0:
            meter.lose(40 * MS)

    record = measured(clock, meter, strike, budget_readings=600)
    assert record.estimate() is None
    found = light_of(record)
    assert found.percent == 0.0
    assert found.unclustered_percent == pytest.approx(100.0)
    assert found.measured_percent == pytest.approx(100 * 4 / (4 + 4 + 15), rel=0.1)


def repeating(**options: Any) -> Engine[Subject]:
    return engine_of(Options(red_rounds="repeat", target=1e-6, **options), seed=1)


def test_a_program_that_has_changed_for_good_is_not_left_out_for_good() -> None:
    levels, rng = iter([0.004] * 1000 + [0.006] * 9000), np.random.default_rng(20261206)
    draw = lambda n: rng.normal(1.0, 0.01, n) * np.fromiter(levels, float, n)  # noqa: E731
    record = told(repeating(max_rounds=30), units(draw, size=100, reading_s=None))
    assert 1 <= len(record.red_rounds) <= 6


def test_a_host_that_is_never_quiet_ends_the_session(clock: FakeClock, meter: FakeMeter) -> None:
    record = measured(clock, meter, lambda _: meter.lose(4 * MS), red_rounds="repeat")
    assert reason(record) is StopReason.TOO_MANY_REJECTED
    assert record.red_rounds == tuple(range(100))


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="the kernel does not count run delay"
)
def test_work_in_other_threads_is_not_claimed_to_be_measured() -> None:
    with ThreadPoolExecutor(2) as pool:

        def spread() -> None:
            list(pool.map(sha256, [bytes(2_000_000)] * 4))

        record = Session(Options(budget_s=0.4, target=1e-6), seed=1).run(spread)
    found = record.interference
    (said,) = (each for each in record.notices if each.code is Code.DELAY_NOT_MEASURED)
    if found is not None:
        assert (found.measured_percent, found.light) == (0.0, "unknown")
        assert [each for each in found.notices if each.code is said.code] == [said]


def lost_by_programs(name: str = "lat", printed: float = 9.5, **delays: Any) -> RunRecord:
    """Tell of rounds of 1.09 s, in each of which a program printed something."""
    rng = np.random.default_rng(20261207)
    given = Delays(stops=[1], duration_s=[1.09], **delays) if delays else None
    options = Options(rounds="restarted", max_rounds=12, target=1e-6, budget_s=60.0)
    return told(
        engine_of(options, seed=1),
        lambda _: {
            "elapsed_ns": 1_100 * MS,
            "unit_readings": {name: rng.normal(printed, 0.1, 30)},
            "delays": given,
        },
    )


@pytest.mark.parametrize(
    ("delays", "light", "known", "total"),
    [
        # Too little of it is a lower limit and no light; a little that is unknown waited alike.
        ({"seconds": {"run queue": [0.109]}, "known": [0.35]}, "unknown", 35.0, 10.0),
        ({"seconds": {"run queue": [0.2]}, "known": [0.95]}, "red", 95.0, 20 / 0.95 / 1.09),
        # What own threads took is no interference.
        ({"seconds": {"run queue": [0.0118]}, "own": [0.5], "known": [1.0]}, "green", 100.0, 2.0),
        ({"seconds": {"run queue": [0.0118]}, "own": [0.5], "known": [0.5]}, "unknown", 50.0, 2.0),
    ],
)
def test_delay_is_known_of_a_part_and_beside_own_threads(
    delays: dict[str, Any], light: str, known: float, total: float
) -> None:
    record = lost_by_programs(**delays)
    found = light_of(record)
    assert found.light == light
    assert found.known_percent == pytest.approx(known)
    assert found.total_percent == pytest.approx(total)
    assert codes(record).count(Code.DELAY_NOT_MEASURED) == (light == "unknown")
    assert (Code.DISTURBED in codes(record)) is (total >= 10.0)
    kept = RunRecord.from_dict(record.to_dict()).rounds[0].delays
    assert kept is not None
    assert kept.own == (pytest.approx(0.5) if "own" in delays else None)


@pytest.mark.parametrize("size", [30, 1], ids=["no number", "few readings"])
@pytest.mark.parametrize(("lost_s", "light"), [(0.0, "unknown"), (0.5, "red")])
def test_beside_no_number_and_few_readings_no_light_is_green_but_a_red_one_stays(
    size: int, lost_s: float, light: str
) -> None:
    delays = Delays(stops=[1], duration_s=[1.09], seconds={"run queue": [lost_s]})
    series = np.arange(120.0) if size == 30 else 9.5 + 0.1 * (np.arange(4) % 3)
    record = told(
        engine_of(Options(max_rounds=4, target=1e-6), seed=1),
        lambda plan: {
            "elapsed_ns": 1_100 * MS,
            "unit_readings": {"lat": series[size * plan.index :][:size]},
            "delays": delays,
        },
    )
    assert (record.estimate() is None) == (size == 30)
    assert light_of(record).light == light
    assert record.to_dict()["interference"]["light"] == light
    for text in (str(record), render(record), explain(record), str(record.interference)):
        assert "green light" not in text
        assert "● green" not in text


@pytest.mark.parametrize(("lost_s", "warned"), [(0.0, False), (0.2, True)])
def test_a_comparison_warns_of_what_was_seen_not_of_what_is_unknown(
    lost_s: float, warned: bool
) -> None:
    records = [
        lost_by_programs(seconds={"run queue": [lost_s]}, known=[0.5], printed=each)
        for each in (9, 9.5)
    ]
    compared = compare_runs(*records, direction="lower")
    assert codes(compared).count(Code.DISTURBED) == 2 * warned


# Readings during which delay was measured are left out


TRUTH_S, DELAY_S = 1e-3, 2e-3
Told = Callable[[np.ndarray, np.ndarray], Mapping[str, Any]]


def by_reading(own: np.ndarray, delay: np.ndarray) -> Mapping[str, Any]:
    return {"unit_readings": {"time": own + delay}, "delays": delay}


def session(how: Told = by_reading, *, hits: float = 0.5, **options: Any) -> br.RunRecord:
    """Tell times without waiting, and delays, which hit long ones more often."""
    rng = np.random.default_rng(20271202)

    def give(plan: RoundPlan) -> Mapping[str, Any]:
        own = TRUTH_S * rng.gamma(100.0, 0.01, plan.readings)
        is_hit = rng.random(own.size) < -np.expm1(-hits * own / TRUTH_S)
        delay = np.where(is_hit, DELAY_S, 0.0)
        elapsed_ns = round(1e9 * float((own + delay).sum()))
        return {"elapsed_ns": elapsed_ns, **how(own, delay)}

    return told(engine_of(br.Options(**{"target": 0.01, **options}), seed=1), give)


def left_out(record: br.RunRecord) -> Disturbed:
    (disturbed, *_) = (each.disturbed for each in record.analyses)
    assert disturbed is not None
    return disturbed


def test_the_number_is_that_of_undisturbed_readings_and_what_all_give_stands_beside_it() -> None:
    record = session()
    found, disturbed, analysis = number(record), left_out(record), record.analyses[0]
    assert disturbed.estimate is not None
    assert found.low <= TRUTH_S <= found.high
    assert found.value == pytest.approx(TRUTH_S, rel=0.01)
    assert disturbed.estimate.value == pytest.approx(record.readings().mean(), rel=0.02)
    assert disturbed.n == analysis.taken == record.readings().size
    assert analysis.n == record.counted().size < record.readings().size
    assert disturbed.lost == pytest.approx(0.44, abs=0.03)


def test_kept_readings_all_count_as_if_nothing_had_been_measured() -> None:
    kept = session(disturbed="keep", budget_readings=900)
    unknown = session(
        lambda own, delay: {"unit_readings": {"time": own + delay}}, budget_readings=900
    )
    assert kept.analyses[0].disturbed is None
    assert kept.analyses[0].estimate == unknown.analyses[0].estimate


def test_other_metrics_are_of_the_same_readings() -> None:
    def with_size(own: np.ndarray, delay: np.ndarray) -> Mapping[str, Any]:
        size = 100.0 + 50.0 * (delay > 0.0) + own
        return {"unit_readings": {"time": own + delay, "size": size}, "delays": delay}

    record = session(with_size, budget_readings=1_000)
    assert number(record, "size").value == pytest.approx(100.0, abs=0.01)


def test_each_restarted_round_leaves_its_own_out() -> None:
    record = session(rounds="restarted", max_rounds=12, target=1e-6, budget_s=1e4)
    (analysis,) = record.analyses
    assert analysis.kind == "invocations"
    assert number(record).value == pytest.approx(TRUTH_S, rel=0.005)
    sizes = [phase.change_points.n for phase in analysis.phases]
    assert sizes == left_out(record).sizes([500] * 12)
    assert sum(sizes) == analysis.n
