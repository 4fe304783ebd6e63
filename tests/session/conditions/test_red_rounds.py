from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
import pytest
from simulated.rounds import InRoundsOf

from benchrigor.machine.run_delay import RunDelay
from benchrigor.model import Code, Delays, Notice, Options, Round, RunRecord, StopReason
from benchrigor.report import explain, render
from benchrigor.session import Engine, Session, compare_runs
from benchrigor.session.session import as_workload
from benchrigor.testing import FakeClock, FakeMeter

MS = 1_000_000


class Job:
    """A function of 4 ms, give or take 1 %, that is struck now and then."""

    def __init__(self, clock: FakeClock, strike: Callable[[int], object] = lambda _: None) -> None:
        self._rng = np.random.default_rng(20261206)
        self._clock, self._strike, self.calls = clock, strike, 0

    def __call__(self) -> None:
        self._clock.advance(int(self._rng.normal(4 * MS, 0.04 * MS)))
        self.calls += 1
        self._strike(self.calls)


def every(nth: int, action: Callable[[int], object], amount: int) -> Callable[[int], object]:
    return lambda calls: action(amount) if calls % nth == 0 else None


def notices(record: RunRecord, code: Code) -> list[Notice]:
    return [each for each in record.notices if each.code is code]


def measured(
    clock: FakeClock,
    meter: FakeMeter | None,
    job: Callable[..., object],
    size: int | None = None,
    **options: object,
) -> RunRecord:
    chosen = Options(**{"target": 0.05, "budget_s": 120.0, **options})  # type: ignore[arg-type]
    work = InRoundsOf(size, as_workload(job, clock, meter=meter)) if size else job
    return Session(chosen, seed=1, clock=clock, meter=meter, name="job").run(work)


def test_a_run_that_nobody_disturbs_is_green_and_says_so(
    clock: FakeClock, meter: FakeMeter
) -> None:
    record = measured(clock, meter, Job(clock))
    found = record.interference
    assert found is not None
    assert found.light == "green"
    assert found.total_percent < 0.1
    assert "● green: " in render(record)
    assert not notices(record, Code.DISTURBED)


def test_what_is_measured_is_taken_from_the_readings_before_anything_is_estimated(
    clock: FakeClock, meter: FakeMeter
) -> None:
    record = measured(clock, meter, Job(clock, every(10, meter.lose, 10 * MS)))
    found = record.interference
    assert found is not None
    assert found.measured_percent == pytest.approx(100 * 10 / 50, abs=0.5)
    assert found.percent < 0.1
    assert found.delays == {"run queue": pytest.approx(found.measured_percent)}
    assert found.light == "red"
    assert len(notices(record, Code.DISTURBED)) == 1
    assert "● red: " in render(record)


def test_where_disturbed_readings_count_another_run_is_advised(
    clock: FakeClock, meter: FakeMeter
) -> None:
    job = Job(clock, every(10, meter.lose, 10 * MS))
    record = measured(clock, meter, job, disturbed="keep")
    assert len(notices(record, Code.DISTURBED)) == 1
    assert re.search(r"● red: (19|2\d)", render(record)), render(record)


def test_a_warm_up_is_no_interference(clock: FakeClock, meter: FakeMeter) -> None:
    warm_up = Job(clock, lambda calls: clock.advance(20 * MS) if calls < 100 else None)
    found = measured(clock, meter, warm_up).interference
    assert found is not None
    assert found.total_percent < 0.5


def test_where_nothing_is_stable_only_measured_delay_is_told(
    clock: FakeClock, meter: FakeMeter
) -> None:
    def strike(calls: int) -> None:
        clock.advance(calls * MS // 20)
        if calls % 10 == 0:
            meter.lose(40 * MS)

    record = measured(clock, meter, Job(clock, strike), budget_readings=600)
    assert record.estimate() is None
    found = record.interference
    assert found is not None
    assert found.percent == 0.0
    assert found.unclustered_percent == pytest.approx(100.0)
    assert found.measured_percent == pytest.approx(100 * 4 / (4 + 4 + 15), rel=0.1)


def test_rounds_that_start_anew_are_compared_as_wholes(clock: FakeClock) -> None:
    engine = Engine(
        Options(rounds="restarted", red_rounds="repeat", max_rounds=12, target=1e-6), seed=1
    )
    rng = np.random.default_rng(20261206)
    while (plan := engine.ask()) is not None:
        slow = 1.5 if plan.index == 9 else 1.0
        warm_up = 1.0 + np.exp(-np.arange(60) / 3.0)
        values = slow * warm_up * rng.normal(0.01, 0.0001, 60)
        elapsed_ns = round(1e9 * values.sum())
        engine.tell(Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    assert engine.result().red_rounds == (9,)


def test_a_host_that_is_never_quiet_ends_the_session(clock: FakeClock, meter: FakeMeter) -> None:
    record = measured(clock, meter, Job(clock, lambda _: meter.lose(4 * MS)), red_rounds="repeat")
    assert record.decision is not None
    assert record.decision.reason is StopReason.TOO_MANY_REJECTED
    assert record.red_rounds == tuple(range(100))


def test_where_every_round_is_red_the_light_is_red_and_nothing_is_claimed(
    clock: FakeClock, meter: FakeMeter
) -> None:
    job = Job(clock, lambda _: meter.lose(4 * MS))
    record = measured(clock, meter, job, red_rounds="repeat", max_rounds=6)
    assert record.estimate() is None
    assert record.interference is not None
    assert record.interference.light == "red"
    assert record.interference.measured_percent == pytest.approx(50.0, abs=1.0)
    (said,) = notices(record, Code.RED_ROUNDS)
    assert said.severity == "refusal"
    assert not notices(record, Code.DISTURBED) + notices(record, Code.NO_DATA)
    assert "● red: 50" in render(record)


@pytest.mark.slow
def test_a_program_that_has_changed_for_good_is_not_left_out_for_good(clock: FakeClock) -> None:
    slower = Job(clock, lambda calls: clock.advance(2 * MS) if calls > 1000 else None)
    record = measured(
        clock, None, slower, red_rounds="repeat", size=100, max_rounds=30, target=1e-6
    )
    assert 1 <= len(record.red_rounds) <= 6


@pytest.mark.slow
@pytest.mark.skipif(not RunDelay().available, reason="the kernel does not count run delay")
def test_work_in_other_threads_is_not_claimed_to_be_measured() -> None:
    with ThreadPoolExecutor(2) as pool:

        def spread() -> None:
            list(pool.map(sha256, [bytes(2_000_000)] * 4))

        record = Session(Options(budget_s=0.4, target=1e-6), seed=1).run(spread)
    found = record.interference
    assert found is None or found.measured_percent == 0.0
    (said,) = notices(record, Code.DELAY_NOT_MEASURED)
    within = () if found is None else found.notices
    assert [each for each in within if each.code is said.code] == ([] if found is None else [said])
    assert found is None or found.light == "unknown"


def told(
    *, rounds: int = 12, name: str = "lat", printed: float = 9.5, **delays: object
) -> RunRecord:
    """Tell of rounds of 1.09 s, in each of which a program printed something."""
    engine = Engine(
        Options(rounds="restarted", max_rounds=rounds, target=1e-6, budget_s=60.0), seed=1
    )
    rng = np.random.default_rng(20261207)
    while (plan := engine.ask()) is not None:
        engine.tell(
            Round(
                plan=plan,
                elapsed_ns=1_100 * MS,
                unit_readings={name: rng.normal(printed, 0.1, 30)},
                delays=Delays(stops=[1], duration_s=[1.09], **delays) if delays else None,
            )
        )
    return engine.result()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lat", "time"])
def test_the_light_is_that_of_the_wall_time_whatever_was_printed(name: str) -> None:
    found = told(name=name, seconds={"run queue": [0.5]}).interference
    assert found is not None
    assert found.duration_s == pytest.approx(12 * 1.09)
    assert found.total_percent == pytest.approx(100 * 0.5 / 1.09)
    assert (found.light, found.known_percent, found.n) == ("red", 100.0, 12)


def test_what_was_seen_of_too_little_is_a_lower_limit_and_no_light() -> None:
    record = told(seconds={"run queue": [0.109]}, known=[0.35])
    found = record.interference
    assert found is not None
    assert found.light == "unknown"
    assert (found.known_percent, found.total_percent) == (pytest.approx(35.0), pytest.approx(10.0))
    assert len(notices(record, Code.DELAY_NOT_MEASURED)) == 1
    assert notices(record, Code.DISTURBED)


def test_the_little_that_was_not_seen_waited_like_the_rest() -> None:
    found = told(seconds={"run queue": [0.2]}, known=[0.95]).interference
    assert found is not None
    assert found.total_percent == pytest.approx(100 * 0.2 / 0.95 / 1.09)
    assert (found.light, found.known_percent) == ("red", pytest.approx(95.0))


def test_readings_that_come_without_delays_have_no_light() -> None:
    record = told()
    assert record.interference is None
    assert "light" not in str(record)
    assert "light" not in render(record)
    assert not {each.code for each in record.notices} & {Code.DELAY_NOT_MEASURED, Code.DISTURBED}


@pytest.mark.parametrize(("seconds", "warned"), [(0.9, False), (1.5, True)])
def test_a_round_in_which_others_ran_says_nothing_of_a_session_that_was_measured(
    seconds: float, warned: bool
) -> None:
    engine = Engine(Options(max_rounds=10, target=1e-6), seed=1)
    why = Notice.warning(Code.DELAY_NOT_MEASURED, "Elsewhere.")
    while (plan := engine.ask()) is not None:
        values, is_first = [9.5 + 0.1 * (plan.index % 3)], not plan.index
        lasts_s = seconds if is_first else (10.0 - seconds) / 9
        engine.tell(
            Round(
                plan=plan,
                elapsed_ns=round(lasts_s * 1e9),
                unit_readings={"lat": values},
                delays=None
                if is_first
                else Delays(stops=[1], duration_s=[lasts_s], seconds={"run queue": [0.0]}),
                notices=(why,) if is_first else (),
            )
        )
    record = engine.result()
    assert bool(notices(record, Code.DELAY_NOT_MEASURED)) == warned
    assert record.rounds[0].notices == (why,)


@pytest.mark.parametrize("kind", ["no number", "few readings"])
@pytest.mark.parametrize(("lost_s", "light"), [(0.0, "unknown"), (0.5, "red")])
def test_beside_no_number_and_few_readings_no_light_is_green_but_a_red_one_stays(
    kind: str, lost_s: float, light: str
) -> None:
    delays = Delays(stops=[1], duration_s=[1.09], seconds={"run queue": [lost_s]})
    engine = Engine(Options(max_rounds=4, target=1e-6), seed=1)
    while (plan := engine.ask()) is not None:
        values = np.arange(30.0) if kind == "no number" else [9.5 + 0.1 * (plan.index % 3)]
        readings = {"lat": values + 30.0 * plan.index} if kind == "no number" else {"lat": values}
        given = Round(plan=plan, elapsed_ns=1_100 * MS, unit_readings=readings, delays=delays)
        engine.tell(given)
    record = engine.result()
    assert (record.estimate() is None) == (kind == "no number")
    assert record.interference is not None
    assert record.interference.light == light
    assert record.to_dict()["interference"]["light"] == light
    for text in (str(record), render(record), explain(record), str(record.interference)):
        assert "green light" not in text
        assert "● green" not in text
    assert "at least" not in render(record)


@pytest.mark.slow
@pytest.mark.parametrize(("lost_s", "warned"), [(0.0, False), (0.2, True)])
def test_a_comparison_warns_of_what_was_seen_not_of_what_is_unknown(
    lost_s: float, warned: bool
) -> None:
    records = [
        told(seconds={"run queue": [lost_s]}, known=[0.5], printed=each) for each in (9, 9.5)
    ]
    codes = [each.code for each in compare_runs(*records, direction="lower").notices]
    assert codes.count(Code.DISTURBED) == 2 * warned


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "light", "percent"), [(1.0, "green", 2.0), (0.5, "unknown", 2.0)]
)
def test_what_own_threads_took_is_no_interference(known: float, light: str, percent: float) -> None:
    lost_s = percent / 100 * (1.09 - 0.5)
    record = told(seconds={"run queue": [lost_s]}, own=[0.5], known=[known])
    found = record.interference
    assert found is not None
    assert found.light == light
    assert found.total_percent == pytest.approx(percent)
    assert found.known_percent == pytest.approx(100 * known)
    kept = RunRecord.from_dict(record.to_dict()).rounds[0].delays
    assert kept is not None
    assert kept.own == pytest.approx(0.5)
