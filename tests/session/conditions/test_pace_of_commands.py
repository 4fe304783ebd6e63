"""A run of commands knows what it takes at full pace, and runs of one command agree there."""

import pytest
from simulated.paced_commands import run_of

import benchrigor as br


def test_the_time_at_full_pace_stands_beside_that_measured() -> None:
    record = run_of(slower=1.4, seed=2)
    measured, at_full = record.estimate(), record.at_full_pace()
    assert measured is not None
    assert at_full is not None
    assert measured.value == pytest.approx(0.0302, rel=0.05)
    assert at_full.low < 0.0202 < at_full.high
    assert record.analyses[0].pace.mean == pytest.approx(1 / 1.4, rel=0.03)
    again = br.RunRecord.from_dict(record.to_dict())
    assert again.at_full_pace() == at_full


def test_runs_of_a_fast_and_a_slow_machine_are_not_called_different() -> None:
    comparison = br.compare_runs(run_of(slower=1.1, seed=3), run_of(slower=1.5, seed=4))
    assert comparison.verdict in (br.Verdict.UNDECIDED, br.Verdict.EQUIVALENT)
    assert comparison.ratio.value == pytest.approx(1.0, abs=0.1)


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
