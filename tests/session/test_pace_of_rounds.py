"""Figures at full pace of sessions whose rounds carry references."""

import json
import math
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated import paced
from simulated.paced import FULL_S, SLOW, TRUE_S, paced_round
from simulated.paced_commands import run_of
from tests.session.telling import codes, engine_of, number, steady, tell, told, units

import benchrigor as br
from benchrigor.model import Code, Delays, Options, References, RunRecord, StopReason
from benchrigor.report import explain


def test_plain_numbers_for_each_reading_are_references_and_delays_too():
    session = br.Session(br.Options(max_rounds=1), seed=1)
    n, rng = 400, np.random.default_rng(1)
    slow = np.repeat(rng.random(n // 20) < 0.5, 20)
    values = TRUE_S * np.exp(SLOW * slow)
    delays = np.where(np.arange(n) % 7 == 0, 2e-4, 0.0)
    given = {
        "unit_readings": {"time": values + delays},
        "starts_ns": np.cumsum(np.full(n, 200_000)),
        "delays": delays,
        "references": FULL_S * np.exp(SLOW * slow),
    }
    record = told(session, lambda _: {"elapsed_ns": 10**9, **given})
    assert record.estimate().value == pytest.approx(values.mean(), rel=0.05)
    assert record.at_full_pace().value == pytest.approx(TRUE_S, rel=0.02)


def test_what_a_cool_down_takes_is_no_part_of_the_headline():
    n, rng = 2_000, np.random.default_rng(54)
    level = np.where(np.arange(n) < 1_600, TRUE_S, 3.0 * TRUE_S)  # a fifth, as slow as no pace is
    given = {
        "unit_readings": {"time": level * np.exp(0.01 * rng.normal(size=n))},
        "references": FULL_S * np.exp(SLOW * np.repeat(rng.random(n // 20) < 0.5, 20)),
    }
    session = br.Session(br.Options(max_rounds=2), seed=1)
    plan = session.ask()
    session.tell(br.Round(plan=plan, elapsed_ns=10**9, **given))
    session.engine.end(StopReason.EXHAUSTED)
    record = session.result()
    assert Code.END_CUT in codes(record)
    assert record.headline().high < 1.2 * TRUE_S


def test_where_other_threads_did_part_of_the_work_there_is_none():
    record = paced.told(1, facts={"other_cpu_s": 0.2})
    assert record.at_full_pace() is None
    assert record.estimate() == paced.told(1).estimate()


def test_without_references_and_of_other_metrics_there_is_none():
    plain = told(br.Session(br.Options(max_rounds=1), seed=1), units(steady(), size=500))
    assert plain.at_full_pace() is None
    metrics, rng = (br.Metric(name="memory", unit="B"),), np.random.default_rng(1)
    give = partial(paced_round, rng=rng, slow_share=0.5, metric="memory")
    other = told(br.Session(br.Options(max_rounds=1), metrics, seed=1), give)
    assert other.estimate() is not None
    assert other.at_full_pace() is None
    with pytest.raises(br.InvalidInput):
        other.at_full_pace("unknown")


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


def test_the_full_speed_of_this_machine_is_kept_and_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "benchrigor/full_speed.json"
    record = measured(path)
    assert Code.FULL_PACE_NEW in codes(record)
    (kept,) = json.loads(path.read_text()).values()
    _, level, _ = kept["interpreter"][0]
    assert record.analysis().pace.full_s == {"interpreter": pytest.approx(level)}
    again = measured(path, path.read_text().replace(str(level), str(level / 2)))
    assert again.analysis().pace.full_s == {"interpreter": pytest.approx(level / 2)}
    assert Code.FULL_PACE_NEW not in codes(again)


def test_references_that_a_harness_measured_are_not_those_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert paced.told(1).at_full_pace() is not None
    assert not [*tmp_path.iterdir()]


@cache  # a record is frozen, and two tests ask for the same
def restarted(without_references=0, slow_end=0):
    """Run ten invocations, each with a warm-up, a level and a share of slow time of its own.

    The last ``slow_end`` readings of each take three times as long.
    """
    options = br.Options(rounds="restarted", target=1e-4, max_rounds=10)
    rng = np.random.default_rng(20310902)

    def give(plan):
        level_s = TRUE_S * math.exp(rng.normal(0.0, 0.01))
        made = paced_round(plan, rng, slow_share=rng.random(), level_s=level_s)
        values = made.unit_readings["time"] * np.where(np.arange(2_000) < 60, 2.0, 1.0)
        values[2_000 - slow_end :] *= 3.0
        references = made.references if plan.index >= without_references else None
        return replace(made, unit_readings={"time": values}, references=references)

    return told(br.Session(options, seed=1), give)


def test_each_invocation_tells_its_level_at_full_pace_without_its_warm_up():
    record = restarted()
    analysis, full = record.analysis(), record.at_full_pace()
    assert record.estimate().value > 1.1 * TRUE_S
    assert full.value == pytest.approx(TRUE_S, rel=0.02)
    assert full.low < TRUE_S < full.high
    assert full.n == len(analysis.pace.by_piece) == 10
    assert max(analysis.pace.by_piece) < 1.06 * TRUE_S


def test_what_a_cool_down_of_invocations_takes_is_no_part_of_the_headline():
    record = restarted(slow_end=400)
    assert {phase.stop for phase in record.analysis().phases} == {1_600}
    assert record.headline().value == pytest.approx(TRUE_S, rel=0.02)
    assert max(record.analysis().pace.by_piece) < 1.06 * TRUE_S


def test_what_is_cut_of_pieces_as_asked_is_no_part_of_the_headline():
    rng = np.random.default_rng(54)

    def give(plan):
        made = paced_round(plan, rng, slow_share=0.3)
        slow_end = np.where(np.arange(2_000) < 1_600, 1.0, 3.0)
        values = {"time": slow_end * made.unit_readings["time"]}
        return replace(made, unit_readings=values, elapsed_ns=10**9)

    options = br.Options(pieces=6, max_rounds=6, budget_s=6.0, target=None, trim=(0.0, 0.2))
    record = told(br.Session(options, seed=1), give)
    assert record.estimate().n == len(record.rounds) >= 4
    assert record.headline().value == pytest.approx(TRUE_S, rel=0.02)


def test_a_single_reading_of_a_fresh_process_has_no_pace():
    options = br.Options(rounds="restarted", detector="edm", max_rounds=1)
    record = told(br.Session(options, seed=1), units(lambda n: np.full(n, TRUE_S), size=1))
    assert record.analysis().n == 1
    assert record.estimate() is None
    assert record.analysis().pace is None


def napping(*, rest_s, is_busy_known=True):
    """Return a run of readings that also sleep, the same at any pace."""
    rng = np.random.default_rng(3)

    def give(plan):
        finished = paced_round(plan, rng, slow_share=0.5)
        work = finished.unit_readings["time"]
        starts = np.append(0, finished.references.stops[:-1])
        busy = np.add.reduceat(work, starts) if is_busy_known else None
        return replace(
            finished,
            elapsed_ns=int(1e9 * (work + rest_s).sum()),
            unit_readings={"time": work + rest_s},
            references=replace(finished.references, busy=busy),
        )

    return told(br.Session(br.Options(target=1e-4, max_rounds=4), seed=1), give)


@pytest.mark.parametrize("rest_s", [1e-5, 1e-4, 1e-2])
def test_what_a_reading_slept_is_as_long_at_full_pace(rest_s):
    record = napping(rest_s=rest_s)
    full, true_s = record.at_full_pace(), TRUE_S + rest_s
    assert full.low < true_s < full.high
    assert full.value == pytest.approx(true_s, rel=0.04 * TRUE_S / true_s)
    assert record.estimate().value > full.value
    told_so = "slept" in explain(record)
    assert told_so == (record.analysis().pace.busy < 0.98)


def test_a_round_that_does_not_tell_its_processor_time_counts_as_work():
    assert napping(rest_s=0.0, is_busy_known=False).analysis().pace.busy == 1.0


# Runs of commands


def test_commands_of_several_threads_are_compared_as_measured() -> None:
    one, two = run_of(slower=1.4, seed=3), run_of(slower=1.4, seed=4, threads=2)
    assert two.at_full_pace() is None
    comparison = br.compare_runs(one, two)
    assert comparison.candidate == two.estimate()
    assert comparison.baseline == one.estimate() != one.at_full_pace()


def test_the_figure_of_a_command_is_not_below_its_processor_time() -> None:
    """Both stand on one page; the interval holds what it would be at full speed."""
    for seed in range(3):
        record = run_of(slower=1.4, seed=seed)
        headline = record.headline()
        assert headline is not None
        cpu_s = [float(finished.facts["cpu_s"]) for finished in record.rounds]
        assert headline.value >= sum(cpu_s) / len(cpu_s)


def test_a_command_that_was_stopped_tells_nothing_of_the_pace() -> None:
    """The sleep went on meanwhile: without it the round would seem to have waited for nothing."""
    whole, stopped = (run_of(slower=1.2, seed=5, sleep_s=0.2, stopped=k) for k in (None, 7))
    values = [each.analysis().at_full_pace.value for each in (whole, stopped)]
    assert values[1] == pytest.approx(values[0], rel=0.002)


def test_what_a_warm_up_of_commands_takes_is_no_part_of_the_headline() -> None:
    record, without = run_of(slower=1.4, seed=2, warm_up=12), run_of(slower=1.4, seed=2)
    assert record.analysis().phases[0].start == 12
    assert record.headline().value == pytest.approx(without.headline().value, rel=0.02)


# Headlines, beside a known level at full speed


KEPT = {"interpreter": [(FULL_S, 0.9)] * 9}
"""Nine runs before found this level."""


def run(seed, *, slow_share=0.0, delay=0.0, kept=KEPT, busy=None, slept_s=0.0, **given):
    """Return a run whose readings wait for that share of the time, each group by itself."""
    session = br.Session(br.Options(target=1e-4, max_rounds=3), name="work", seed=1)
    session.subject.kept_levels = kept
    rng = np.random.default_rng(seed)

    def give(plan):
        made = paced_round(plan, rng, slow_share=slow_share, **given)
        values = made.unit_readings["time"] + slept_s
        work_s = np.add.reduceat(values, np.append(0, made.references.stops[:-1]))
        own = made.references if busy is None else replace(made.references, busy=work_s * busy)
        waits = np.where(rng.random(work_s.size) < delay, work_s, 0.0)
        return waiting(replace(made, unit_readings={"time": values}, references=own), waits)

    return told(session, give)


def waiting(made, waits):
    """Return a round whose groups of five readings waited so long."""
    values = made.unit_readings["time"] + np.repeat(waits / 5.0, 5)
    return replace(
        made,
        unit_readings={"time": values},
        elapsed_ns=int(1e9 * values.sum()),
        delays=Delays(stops=made.references.stops, seconds={"run queue": waits}),
    )


def test_a_run_that_was_slow_throughout_is_moved_to_the_full_speed_of_those_before():
    record = run(1, slow_share=1.0)
    assert record.estimate().value > 1.4 * TRUE_S
    assert record.headline().low < TRUE_S < record.headline().high
    assert record.headline().relative_half_width > 0.15
    alone = run(1, slow_share=1.0, kept={})
    assert alone.headline().value == pytest.approx(alone.estimate().value, rel=0.01)


@pytest.mark.parametrize("faster", [1.02, 1.3])
def test_the_headline_is_never_above_as_measured_by_more_than_its_half_width(faster):
    """Where runs before were slower than this one."""
    record = run(1, kept={"interpreter": [(faster * FULL_S, 0.9)] * 9})
    headline, measured = record.headline(), record.estimate()
    assert headline.value - measured.value <= headline.half_width
    assert headline.low <= measured.value


def told_until_it_ends(slow_share, **options):
    """Return a run of rounds of a hundred readings each."""
    options, rng = br.Options(budget_s=1e9, max_rounds=2000, **options), np.random.default_rng(3)
    give = partial(paced_round, rng=rng, n=100, slow_share=slow_share)
    return told(br.Session(options, seed=1), give)


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


def of_steps(followed):
    """Return a run of rounds of 90 readings, of which a reference follows so many."""
    session = br.Session(br.Options(target=1e-4, max_rounds=12), name="steps", seed=1)
    session.subject.kept_levels = KEPT
    references = References(stops=[followed], seconds={"interpreter": [FULL_S]})
    give = units(steady(4, level=TRUE_S, cv=0.01), size=90)
    return told(session, lambda plan: {**give(plan), "references": references})


@pytest.mark.parametrize("followed", [60, 90])
def test_readings_after_the_last_reference_of_a_round_move_no_headline(followed):
    record = of_steps(followed)
    assert record.analysis().pace.level == pytest.approx(TRUE_S, rel=0.01)
    assert record.headline().value == pytest.approx(TRUE_S, rel=0.01)


def test_references_after_few_of_the_readings_show_no_pace():
    record = of_steps(1)
    assert record.analysis().pace is None
    assert record.headline() == record.estimate()


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
    rng = np.random.default_rng(20271128)

    def give(plan):
        made = paced_round(plan, rng, slow_share=0.0, n=200)
        share = 1.0 if plan.index % 3 == 0 else 0.1  # of groups that wait, for nine times as long
        is_hit = rng.random(made.references.stops.size) < share
        return waiting(made, np.where(is_hit, 45.0 * TRUE_S, 0.0))

    record = told(br.Session(options, seed=1), give)
    assert record.estimate().value > 2.0 * TRUE_S
    assert record.headline().value == pytest.approx(TRUE_S, rel=0.05)
    assert record.at_full_pace().value == pytest.approx(TRUE_S, rel=0.05)


# References tell steps that the machine made from those of the code


PER_REFERENCE = 10


def levels(*parts: tuple[float, int]) -> np.ndarray:
    return np.repeat([level for level, _ in parts], [n for _, n in parts])


STEADY = levels((1.0, 2_000))


def stepping(
    code: np.ndarray,
    machine: np.ndarray,
    *,
    ended: bool = True,
    sensitivity: float = 1.0,
    seed: int = 5,
) -> RunRecord:
    """Tell a session readings of code of these levels, on a machine of these paces."""
    rng = np.random.default_rng(seed)
    n = code.size
    values = 1e-3 * code * machine**sensitivity * rng.normal(1.0, 0.02, n)
    stops = np.arange(PER_REFERENCE, n + 1, PER_REFERENCE)
    seconds = 4e-6 * machine[stops - 1] * rng.normal(1.0, 0.02, stops.size)
    references = References(stops=stops, seconds={"interpreter": seconds})
    engine = engine_of(Options(target=1e-6), seed=1)
    given = {"unit_readings": {"time": values}, "references": references}
    tell(engine, {"elapsed_ns": int(values.sum() * 1e9), **given})
    engine.end(StopReason.EXHAUSTED if ended else StopReason.TIME_BUDGET)
    return engine.result()


MACHINE = {
    "slow at the start": (levels((1.5, 600), (1.0, 1_400)), True),
    "slow at the end": (levels((1.0, 1_400), (1.5, 600)), True),
    "slow at the end of what could go on": (levels((1.0, 1_400), (1.5, 600)), False),
    "slow for most of the time": (levels((1.0, 500), (1.5, 1_500)), True),
}


@pytest.mark.parametrize("name", MACHINE)
def test_a_step_of_the_machine_is_averaged_over_time(name: str) -> None:
    machine, ended = MACHINE[name]
    record = stepping(STEADY, machine, ended=ended)
    (analysis,) = record.analyses
    (phase,) = analysis.phases
    assert (phase.reason.name, phase.start, phase.stop) == ("CHANGING_PACE", 0, 2_000)
    assert {part.label for part in phase.phases} == {"stable"}
    assert number(record).low < 1e-3 * machine.mean() < number(record).high


def test_both_kinds_of_steps_are_told_apart() -> None:
    code, machine = levels((2.0, 300), (1.0, 1_300), (1.6, 400)), levels((1.4, 800), (1.0, 1_200))
    (analysis,) = stepping(code, machine).analyses
    (phase,) = analysis.phases
    assert (phase.start, phase.stop) == (300, 1_600)
    assert phase.reason.name == "CHANGING_PACE"
    labels = [part.label for part in phase.phases]
    stable = ["stable", "stable"]
    assert labels == ["warm-up", *stable, "cool-down"]
    medians = [part.median for part in phase.phases]
    assert medians == pytest.approx([2.8e-3, 1.4e-3, 1.0e-3, 1.6e-3], rel=0.01)  # as measured
