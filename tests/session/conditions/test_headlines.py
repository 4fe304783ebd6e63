"""Headlines of rounds with references and a known level at full speed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.paced import FULL_S, TRUE_S, paced_round

import benchrigor as br
from benchrigor.model import Delays, References

KEPT = {"interpreter": [(FULL_S, 0.9)] * 9}
"""Nine runs before found this level."""


def run(seed, *, slow_share=0.0, delay=0.0, kept=KEPT, busy=None, slept_s=0.0, **given):
    """Return a run whose readings wait for that share of the time, each group by itself."""
    session = br.Session(br.Options(target=1e-4, max_rounds=3), name="work", seed=1)
    session.kept_levels = kept
    rng = np.random.default_rng(seed)
    while (plan := session.ask()) is not None:
        made = paced_round(plan, rng, slow_share=slow_share, **given)
        references = made.references
        values = made.unit_readings["time"] + slept_s
        work_s = np.add.reduceat(values, np.append(0, references.stops[:-1]))
        waits = np.where(rng.random(work_s.size) < delay, work_s, 0.0)
        session.tell(
            replace(
                made,
                unit_readings={"time": values + np.repeat(waits / 5.0, 5)},
                elapsed_ns=int(1e9 * (values.sum() + waits.sum())),
                delays=Delays(stops=references.stops, seconds={"run queue": waits}),
                references=references
                if busy is None
                else References(
                    stops=references.stops,
                    seconds=references.seconds,
                    busy=work_s * busy,
                ),
            )
        )
    return session.result()


def test_on_a_machine_with_one_speed_the_headline_is_what_was_measured():
    for kept in ({}, KEPT):
        record = run(1, kept=kept)
        assert record.headline().value == pytest.approx(record.estimate().value, rel=0.005)
        assert record.headline() == record.at_full_pace()
        assert 0.03 < record.headline().relative_half_width < 0.07


def test_a_run_that_was_slow_throughout_is_moved_to_the_full_speed_of_those_before():
    record = run(1, slow_share=1.0)
    assert record.estimate().value > 1.4 * TRUE_S
    assert record.headline().low < TRUE_S < record.headline().high
    assert record.headline().relative_half_width > 0.15
    alone = run(1, slow_share=1.0, kept={})
    assert alone.headline().value == pytest.approx(alone.estimate().value, rel=0.01)


@pytest.mark.parametrize("faster", [1.02, 1.3])
def test_the_headline_is_never_above_just_now_by_more_than_its_half_width(faster):
    """Where runs before were slower than this one."""
    record = run(1, kept={"interpreter": [(faster * FULL_S, 0.9)] * 9})
    headline, measured = record.headline(), record.estimate()
    assert headline.value - measured.value <= headline.half_width
    assert headline.low <= measured.value


def test_on_a_busy_machine_it_is_corrected_by_the_pace():
    record = run(1, slow_share=0.7, delay=0.3)
    assert record.estimate().value > 1.2 * TRUE_S
    headline = record.headline()
    assert headline.value == pytest.approx(TRUE_S, rel=0.02)
    assert headline.low < TRUE_S < headline.high
    assert headline.relative_half_width < 0.08
    assert record.headline("time") == headline


def told_until_it_ends(slow_share, **options):
    """Return a run of rounds of a hundred readings each, and how many more it could have had."""
    options = br.Options(budget_s=1e9, max_rounds=2000, **options)
    session, rng = br.Session(options, seed=1), np.random.default_rng(3)
    while (plan := session.ask()) is not None:
        session.tell(paced_round(plan, rng, n=100, slow_share=slow_share))
    return session.result()


@pytest.mark.slow
def test_a_session_ends_when_more_readings_would_hardly_narrow_the_headline():
    record = told_until_it_ends(0.5, target=1e-4)
    assert record.decision.reason is br.StopReason.OUT_OF_REACH
    assert len(record.rounds) < 1000
    reducible = record.analysis().pace.reducible
    assert 0.0 < reducible <= 0.2
    headline = record.headline()
    error = headline.standard_error / headline.value
    more = told_until_it_ends(0.5, target=None, budget_readings=100_000, min_rounds=1000)
    assert more.headline().standard_error / more.headline().value > 0.85 * error


def test_a_target_that_is_met_comes_first():
    assert told_until_it_ends(0.0, target=0.02).decision.satisfied


def test_what_sleeps_is_not_corrected():
    record = run(1, slow_share=0.7, delay=0.3, slept_s=100 * TRUE_S, busy=0.01)
    assert record.headline().value == pytest.approx(record.estimate().value, rel=0.01)
    assert record.headline().relative_half_width < 0.015


def of_steps(followed):
    """Return a run of rounds of 90 readings, of which a reference follows so many."""
    session = br.Session(br.Options(target=1e-4, max_rounds=12), name="steps", seed=1)
    session.kept_levels, rng = KEPT, np.random.default_rng(4)
    while (plan := session.ask()) is not None:
        values = TRUE_S * (1.0 + rng.normal(0.0, 0.01, 90))
        session.tell(
            br.Round(
                plan=plan,
                elapsed_ns=10**9,
                unit_readings={"time": values},
                references=References(stops=[followed], seconds={"interpreter": [FULL_S]}),
            )
        )
    return session.result()


@pytest.mark.parametrize("followed", [60, 90])
def test_readings_after_the_last_reference_of_a_round_move_no_headline(followed):
    record = of_steps(followed)
    assert record.analysis().pace.level == pytest.approx(TRUE_S, rel=0.01)
    assert record.headline().value == pytest.approx(TRUE_S, rel=0.01)


def test_references_after_few_of_the_readings_show_no_pace():
    record = of_steps(1)
    assert record.analysis().pace is None
    assert record.headline() == record.estimate()


@pytest.mark.slow
def test_headlines_hold_the_level_at_full_speed():
    """Of runs that differ by 1.2 %, on an idle and on a busy machine."""
    rng, trials, held, widths = np.random.default_rng(20271127), 36, 0, []
    for seed in range(trials):
        level_s = TRUE_S * math.exp(rng.normal(0.0, 0.012))
        slow_share, delay = ((0.0, 0.0), (0.4, 0.1), (0.8, 0.4))[seed % 3]
        found = run(seed, slow_share=slow_share, delay=delay, level_s=level_s, n=1_000).headline()
        held += found.low <= TRUE_S <= found.high
        widths.append(found.relative_half_width)
    assert held >= scipy_stats.binom.ppf(0.001, trials, 0.95)
    assert np.median(widths) < 0.07


def test_the_full_speed_of_commands_moves_no_headline_of_functions():
    """A machine learns the levels of commands when it has measured some."""
    commands = {"command": 0.02, "command cpu": 0.01, "command rest": 0.001}
    learned = KEPT | {kind: [(seconds, 1.0)] for kind, seconds in commands.items()}
    before, after = run(1), run(2, kept=learned)
    assert after.analysis().pace.full_s == {"interpreter": pytest.approx(FULL_S, rel=0.01)}
    assert br.compare_runs(before, after).ratio.value == pytest.approx(1.0, rel=0.02)


def test_waiting_of_fresh_processes_is_in_no_headline():
    """Where hardly any reading of a process is undisturbed, all count as measured."""
    options = br.Options(rounds="restarted", target=1e-4, max_rounds=10)
    session, rng = br.Session(options, seed=1), np.random.default_rng(20271128)
    while (plan := session.ask()) is not None:
        made = paced_round(plan, rng, slow_share=0.0, n=200)
        stops = made.references.stops
        share = 1.0 if plan.index % 3 == 0 else 0.1  # of groups that wait as long again, nine times
        waits = np.where(rng.random(stops.size) < share, 45.0 * TRUE_S, 0.0)
        values = made.unit_readings["time"] + np.repeat(waits / 5.0, 5)
        session.tell(
            replace(
                made,
                unit_readings={"time": values},
                elapsed_ns=int(1e9 * values.sum()),
                delays=Delays(stops=stops, seconds={"run queue": waits}),
            )
        )
    record = session.result()
    assert record.estimate().value > 2.0 * TRUE_S
    assert record.headline().value == pytest.approx(TRUE_S, rel=0.05)
    assert record.at_full_pace().value == pytest.approx(TRUE_S, rel=0.05)
