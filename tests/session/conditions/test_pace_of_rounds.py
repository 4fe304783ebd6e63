"""Figures at full pace of sessions whose rounds carry references."""

import json
import math
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from simulated.paced import FULL_S, SLOW, TRUE_S, paced_round, told

import benchrigor as br
from benchrigor.model import Code, Round
from benchrigor.report import explain
from benchrigor.storage import full_pace


@pytest.mark.slow
def test_the_figure_at_full_pace_stands_beside_the_time_measured_here():
    record = told(1)
    here, full = record.estimate(), record.at_full_pace()
    assert here.value > 1.15 * TRUE_S
    assert full.low < TRUE_S < full.high
    assert record.at_full_pace("time") == full
    assert record.analysis().pace.mean == pytest.approx(math.exp(-0.5 * SLOW), rel=0.05)


def test_plain_numbers_for_each_reading_are_references_and_delays_too():
    session = br.Session(br.Options(max_rounds=1), seed=1)
    plan = session.ask()
    n, rng = 400, np.random.default_rng(1)
    slow = np.repeat(rng.random(n // 20) < 0.5, 20)
    values = TRUE_S * np.exp(SLOW * slow)
    delays = np.where(np.arange(n) % 7 == 0, 2e-4, 0.0)
    session.tell(
        Round(
            plan=plan,
            elapsed_ns=10**9,
            unit_readings={"time": values + delays},
            starts_ns=np.cumsum(np.full(n, 200_000)),
            delays=delays,
            references=FULL_S * np.exp(SLOW * slow),
        )
    )
    record = session.result()
    assert record.estimate().value == pytest.approx(values.mean(), rel=0.05)
    assert record.at_full_pace().value == pytest.approx(TRUE_S, rel=0.02)


@pytest.mark.slow
def test_where_other_threads_did_part_of_the_work_there_is_none():
    record = told(1, facts={"other_cpu_s": 0.2})
    assert record.at_full_pace() is None
    assert record.estimate() == told(1).estimate()


def test_without_references_and_of_other_metrics_there_is_none():
    session = br.Session(br.Options(max_rounds=1), seed=1)
    plan = session.ask()
    values = np.random.default_rng(1).normal(1.0, 0.1, 500)
    session.tell(Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": values}))
    assert session.result().at_full_pace() is None
    metrics = (br.Metric(name="memory", unit="B"),)
    other = br.Session(br.Options(max_rounds=1), metrics, seed=1)
    rng = np.random.default_rng(1)
    other.tell(paced_round(other.ask(), rng, slow_share=0.5, metric="memory"))
    assert other.result().estimate() is not None
    assert other.result().at_full_pace() is None
    with pytest.raises(br.InvalidInput, match="unknown"):
        other.result().at_full_pace("unknown")


@pytest.mark.slow
def test_runs_at_other_paces_are_compared_at_full_pace():
    slow, fast = told(1, slow_share=0.9), told(2, slow_share=0.1)
    comparison = br.compare_runs(slow, fast)
    assert comparison.verdict is not br.Verdict.BETTER
    assert comparison.ratio.low < 1.0 < comparison.ratio.high
    assert Code.AT_FULL_PACE in {each.code for each in comparison.notices}
    assert Code.THIS_PROCESS_ONLY not in {each.code for each in comparison.notices}
    worse = told(3, slow_share=0.1, level_s=1.2 * TRUE_S)
    assert br.compare_runs(slow, worse).verdict is br.Verdict.WORSE


def measured(kept: Path, content: str | None = None) -> br.RunRecord:
    """Return a run with a number and enough references to keep: half a second may not do."""
    for budget_s in (0.5, 1.0, 2.0, 4.0):
        if content is not None:
            kept.write_text(content)
        elif kept.exists():
            kept.unlink()
        record = br.measure(lambda: sum(range(200)), budget_s=budget_s, disturbed="keep")
        if record.at_full_pace() is not None and kept.exists():
            break
    return record


@pytest.mark.slow
def test_the_full_speed_of_this_machine_is_kept_and_used(tmp_path, monkeypatch):
    path = tmp_path / "full_speed.json"
    monkeypatch.setattr(full_pace, "full_pace_path", lambda: path)
    record = measured(path)
    assert Code.FULL_PACE_NEW in {each.code for each in record.notices}
    (kept,) = json.loads(path.read_text()).values()
    _, level, _ = kept["interpreter"][0]
    assert record.analysis().pace.full_s == {"interpreter": pytest.approx(level)}
    again = measured(path, path.read_text().replace(str(level), str(level / 2)))
    assert again.analysis().pace.full_s == {"interpreter": pytest.approx(level / 2)}
    assert Code.FULL_PACE_NEW not in {each.code for each in again.notices}


@pytest.mark.slow
def test_beside_a_profiler_no_full_speed_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "full_speed.json"
    monkeypatch.setattr(full_pace, "full_pace_path", lambda: path)
    sys.setprofile(lambda *_: None)
    try:
        record = measured(path)
    finally:
        sys.setprofile(None)
    assert not path.exists()
    assert Code.FULL_PACE_NOT_KEPT in {each.code for each in record.notices}


def test_the_reference_can_be_left_out():
    session = br.Session(br.Options(reference=False, budget_s=0.1))
    record = session.run(lambda: sum(range(200)))
    assert all(each.references is None for each in record.rounds)
    assert record.at_full_pace() is None


def test_references_that_a_harness_measured_are_not_those_of_this_machine(tmp_path, monkeypatch):
    path = tmp_path / "full_pace.json"
    monkeypatch.setattr(full_pace, "full_pace_path", lambda: path)
    assert told(1).at_full_pace() is not None
    assert not path.exists()


@cache  # a record is frozen, and three tests ask for the same
def restarted(seed, *, warm_up=60):
    """Run ten invocations, each with a warm-up, a level and a share of slow time of its own."""
    session = br.Session(br.Options(rounds="restarted", target=1e-4, max_rounds=10), seed=1)
    rng = np.random.default_rng(seed)
    while (plan := session.ask()) is not None:
        level_s = TRUE_S * math.exp(rng.normal(0.0, 0.01))
        made = paced_round(plan, rng, slow_share=rng.random(), level_s=level_s)
        values = made.unit_readings["time"] * np.where(np.arange(2_000) < warm_up, 2.0, 1.0)
        session.tell(replace(made, unit_readings={"time": values}))
    return session.result()


@pytest.mark.slow
def test_each_invocation_tells_its_level_at_full_pace_without_its_warm_up():
    record = restarted(20310902)
    analysis, full = record.analysis(), record.at_full_pace()
    assert record.estimate().value > 1.1 * TRUE_S
    assert full.value == pytest.approx(TRUE_S, rel=0.02)
    assert full.low < TRUE_S < full.high
    assert full.n == len(analysis.pace.by_piece) == 10
    assert max(analysis.pace.by_piece) < 1.06 * TRUE_S


def without_references(count):
    """Return a run of ten invocations, so many of which have no reference."""
    whole = restarted(20310902)
    rounds = [replace(each, references=None) for each in whole.rounds[:count]]
    session = br.Session(whole.options, seed=1)
    for each in [*rounds, *whole.rounds[count:]]:
        session.tell(replace(each, plan=session.ask()))
    return session.result().analysis()


@pytest.mark.slow
def test_most_invocations_tell_the_level():
    assert without_references(2).at_full_pace.n == 8


@pytest.mark.slow
def test_without_a_level_of_most_invocations_all_have_a_factor_alone():
    analysis = without_references(3)
    assert analysis.pace.level is None
    assert analysis.pace.by_piece == ()
    assert analysis.at_full_pace.value == pytest.approx(TRUE_S, rel=0.05)


def napping(plan, rng, *, rest_s, is_busy_known=True):
    """Make readings that also sleep, the same at any pace."""
    finished = paced_round(plan, rng, slow_share=0.5)
    work = finished.unit_readings["time"]
    stops = finished.references.stops
    busy = np.add.reduceat(work, np.append(0, stops[:-1])) if is_busy_known else None
    values = work + rest_s
    return replace(
        finished,
        elapsed_ns=int(1e9 * values.sum()),
        unit_readings={"time": values},
        references=replace(finished.references, busy=busy),
    )


@pytest.mark.slow
@pytest.mark.parametrize("rest_s", [1e-5, 1e-4, 1e-2])
def test_what_a_reading_slept_is_as_long_at_full_pace(rest_s):
    session = br.Session(br.Options(target=1e-4, max_rounds=4), seed=1)
    rng = np.random.default_rng(3)
    while (plan := session.ask()) is not None:
        session.tell(napping(plan, rng, rest_s=rest_s))
    record = session.result()
    here, full = record.estimate(), record.at_full_pace()
    true_s = TRUE_S + rest_s
    assert full.low < true_s < full.high
    assert full.value == pytest.approx(true_s, rel=0.04 * TRUE_S / true_s)
    assert here.value > full.value
    told_so = "slept" in explain(record)
    assert told_so == (record.analysis().pace.busy < 0.98)


def test_a_round_that_does_not_tell_its_processor_time_counts_as_work():
    session = br.Session(br.Options(max_rounds=2), seed=1)
    rng = np.random.default_rng(3)
    while (plan := session.ask()) is not None:
        session.tell(napping(plan, rng, rest_s=0.0, is_busy_known=False))
    assert session.result().analysis().pace.busy == 1.0
