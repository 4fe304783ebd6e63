"""Sessions in pieces: when a piece ends, what is estimated, and what is refused."""

import math

import numpy as np
import pytest
from tests.session.telling import engine_of, told

from benchrigor.model import Code, Metric, Options, StopReason
from benchrigor.session import Session
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock


class Machine:
    """Readings whose level is that of the minute in which they are taken."""

    def __init__(self, clock, mean=0.01, spread=0.1, seed=1):
        self.clock, self.mean, self.spread, self.seed = clock, mean, spread, seed
        self.rng = np.random.default_rng(seed)

    def run(self, plan, recorder):
        minute = np.random.default_rng([self.seed, self.clock.now_ns() // (15 * 10**9)])
        level = self.mean * (1.0 + self.spread * minute.normal())
        began, values, starts = self.clock.now_ns(), [], []
        while len(values) < plan.readings:
            starts.append(self.clock.now_ns())
            values.append(level * (1.0 + 0.02 * self.rng.normal()))
            self.clock.advance(round(values[-1] * 1e9))
            if self.clock.now_ns() - began >= plan.seconds * 1e9:
                break
        recorder.unit_readings("time", values)
        recorder.starts_ns(starts)


def spread_run(*, pieces=6, budget_s=12.0, over_s=120.0, mean=0.01, store=None, seed=1, **options):
    clock = FakeClock()
    session = Session(
        Options(pieces=pieces, budget_s=budget_s, **options), name="f", clock=clock, store=store
    )
    return session.run(Machine(clock, mean=mean, seed=seed), over_s=over_s), clock


@pytest.mark.parametrize("reading_s", [0.0003, 0.05, 0.4, 1.1])
@pytest.mark.parametrize("pieces", [1, 4, 6])
def test_a_round_never_crosses_the_end_of_its_piece(reading_s, pieces):
    options = Options(pieces=pieces, budget_s=12.0, target=1e-9)
    rng, spent = np.random.default_rng(1), [0.0]

    def give(plan):
        end_s = (plan.piece + 1) * options.piece_s
        left_s = max(end_s - spent[-1], 0.01 * options.piece_s if pieces > 1 else 0.0)
        assert plan.seconds == pytest.approx(left_s, abs=1e-6)  # whole nanoseconds
        values = reading_s * rng.uniform(0.98, 1.02, plan.readings)
        spent.append(spent[-1] + values.sum())
        # One reading may be under way at the end; the pieces after it are then shorter.
        assert spent[-1] <= end_s + 0.12 * options.piece_s or plan.readings == 1
        return {"elapsed_ns": round(values.sum() * 1e9), "unit_readings": {"time": values}}

    record = told(engine_of(options, seed=1), give)
    seen = [each.plan.piece for each in record.rounds]
    assert seen == sorted(seen)
    assert set(seen) == set(range(pieces))
    assert spent[-1] <= 1.1 * options.budget_s


def test_no_piece_is_skipped_where_one_took_too_long():
    def give(plan):
        seconds = 3.3 if plan.index == 2 else 0.5
        return {"elapsed_ns": int(seconds * 1e9), "unit_readings": {"time": [seconds]}}

    record = told(engine_of(Options(pieces=4, budget_s=8.0), seed=1), give)
    seen = [each.plan.piece for each in record.rounds]
    assert set(seen) == {0, 1, 2, 3}
    assert seen.count(1) == 1  # its time was gone


def test_pieces_are_spread_and_pauses_count_for_nothing():
    record, clock = spread_run()
    first = {}
    for each in record.rounds:
        first.setdefault(each.plan.piece, each.starts_ns[0] / 1e9)
    assert np.diff([*first.values()]) == pytest.approx((120.0 - 2.0) / 5, abs=0.1)
    assert record.elapsed_s == pytest.approx(12.0, rel=0.02)
    assert clock.now_ns() / 1e9 == pytest.approx(120.0, abs=0.5)


def test_the_levels_of_the_pieces_make_the_interval():
    record, _ = spread_run()
    analysis, found = record.analysis(), record.estimate()
    assert (analysis.kind, found.n, found.method) == ("pieces", 6, "piece means")
    levels = np.array(analysis.levels)
    assert found.value == pytest.approx(levels.mean())
    error = levels.std(ddof=1) / math.sqrt(6)
    reach = 2.570582 * error / found.value  # t(.975, 5), of log(value)
    ends = found.value * np.exp(-reach), found.value * np.exp(reach)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-7)
    # The last hundredth of each piece counts, the first does not.
    sizes = [phase.change_points.n for phase in analysis.phases]
    assert [phase.start for phase in analysis.phases[1:]] == [max(1, n // 100) for n in sizes[1:]]
    assert levels[3] == pytest.approx(kept_of(record, 3).mean())


def kept_of(record, piece):
    """Return the readings of a piece without the first hundredth."""
    rounds = [each for each in record.rounds if each.plan.piece == piece]
    values = np.concatenate([each.unit_readings["time"] for each in rounds])
    return values[values.size // 100 :]


def test_a_quantile_is_that_of_the_pieces():
    record, _ = spread_run(statistic="p90")
    expected = np.quantile(kept_of(record, 5), 0.9, method="averaged_inverted_cdf")
    assert record.analysis().levels[5] == pytest.approx(expected)
    assert record.estimate().value == pytest.approx(np.mean(record.analysis().levels))


def test_it_is_satisfied_from_four_pieces_on(clock):
    session = Session(Options(pieces=8, budget_s=8.0, target=0.05), clock=clock)
    kinds = []
    for progress in session.pieces(Machine(clock, spread=0.001)):
        shown = progress.widths or (progress.provisional,)
        kinds.append((progress.piece, shown[0].estimate.method == "provisional"))
    # Until three pieces are told, a rough figure of the latest readings is all there is.
    assert kinds == [(0, True), (1, True), (2, False)]
    assert session.decision.reason is StopReason.SATISFIED
    assert session.result().estimate().n == 4


@pytest.mark.parametrize("pieces", [2, 3])
def test_fewer_than_four_wanted_pieces_are_all_needed(pieces):
    record, _ = spread_run(pieces=pieces, target=1e4)
    assert record.decision.satisfied is (pieces == 3)  # of two there is one look, and none to agree
    assert record.estimate().n == pieces


def test_a_stop_during_a_pause_gives_what_there_is():
    clock, sessions, waits = FakeClock(), [], []

    def watch(progress):
        if progress.waiting_s:
            waits.append(progress.waiting_s)
            if progress.piece == 3:
                sessions[0].request_stop()

    sessions.append(Session(Options(pieces=6, budget_s=12.0), clock=clock, progress=watch))
    record = sessions[0].run(Machine(clock), over_s=120.0)
    assert record.decision.reason is StopReason.STOP_REQUESTED
    assert record.estimate().n == 4
    assert clock.now_ns() / 1e9 < 3 * 23.6 + 2.0 + 0.5  # within a nap
    assert waits[0] == pytest.approx(23.6 - 2.0, abs=0.1)


def test_an_interrupt_after_one_piece_gives_the_figure_of_one_window(clock):
    session = Session(Options(pieces=6, budget_s=12.0), clock=clock)
    running = session.pieces(Machine(clock))
    next(running)
    with pytest.raises(KeyboardInterrupt) as caught:
        running.throw(KeyboardInterrupt())
    record = caught.value.record
    assert record.decision.reason is StopReason.INTERRUPTED
    assert record.analysis().kind == "unit readings"
    (few,) = (each for each in record.notices if each.code is Code.FEW_PIECES)
    assert few.evidence["pieces"] == 1
    assert few in record.estimate().notices


def test_a_run_is_resumed_in_the_piece_that_comes_next(tmp_path):
    path, clock = tmp_path / "runs.sqlite", FakeClock()
    session = Session(Options(pieces=5, budget_s=10.0), clock=clock, store=path, seed=3)
    running = session.pieces(Machine(clock))
    next(running), next(running)
    running.close()  # as if the process were killed
    (kept,) = Journal(path).runs()
    resumed = Session.resume(path, kept["run_id"], clock=clock)
    assert resumed.subject.piece == 2
    record = resumed.run(Machine(clock), over_s=100.0)
    assert record.estimate().n == 5
    assert record.elapsed_s == pytest.approx(10.0, rel=0.02)


def test_a_hook_that_fails_in_a_pause_ends_the_session_with_what_there_is(clock):
    def fail(progress):
        if progress.waiting_s:
            raise RuntimeError

    session = Session(Options(pieces=4, budget_s=4.0), clock=clock, progress=fail)
    record = session.run(Machine(clock), over_s=40.0)
    assert record.decision.reason is StopReason.HOOK_FAILED
    assert {each.plan.piece for each in record.rounds} == {0}


def test_shares_and_rates_have_levels_of_pieces_too(clock):
    class Both:
        def run(self, plan, recorder):
            clock.advance(round(0.01e9 * plan.readings))
            rng = np.random.default_rng([1, plan.index])
            recorder.unit_readings("ok", (rng.random(plan.readings) < 0.8).astype(float))
            recorder.unit_readings("rate", rng.uniform(50.0, 100.0, plan.readings))

    metrics = (Metric(name="ok", kind="share"), Metric(name="rate", unit="/s"))
    record = Session(Options(pieces=4, budget_s=8.0), metrics, clock=clock).run(Both())
    assert record.estimate("ok").value == pytest.approx(0.8, abs=0.05)
    expected = math.log(2.0) / 50.0  # the mean of 1 / x
    assert 1.0 / record.estimate("rate").value == pytest.approx(expected, rel=0.05)
