"""One rule of exit codes for all comparisons, and what a verdict is about."""

import json
from dataclasses import replace

import numpy as np
import pytest

import benchrigor as br
from benchrigor.cli import ab_verb, commands_verb
from benchrigor.cli.exits import ExitCode
from benchrigor.model import StopReason, Verdict
from benchrigor.testing import FakeClock, SyntheticWorkload

BENCH = {"machine_info": {}, "commit_info": {}, "version": "5.0.0"}

BY_RUN = "these two runs"


def pytest_benchmark(path, factor, seed):
    """Write a file of pytest-benchmark."""
    data = (factor * np.random.default_rng(seed).normal(0.1, 0.002, 60)).tolist()
    one = {"name": "t", "fullname": "t", "params": None, "param": None, "group": None}
    one |= {"extra_info": {}, "options": {}, "stats": {"iterations": 1, "rounds": 60, "data": data}}
    path.write_text(json.dumps({"benchmarks": [one], **BENCH}))


def pyperf(path, factor, seed):
    """Write a file of pyperf, of 20 processes."""
    values = factor * np.random.default_rng(seed).normal(0.1, 0.002, 20)
    runs = [{"values": [value]} for value in values.tolist()]
    head = {"metadata": {"name": "t", "unit": "second"}, "version": "1.0"}
    path.write_text(json.dumps({"benchmarks": [{"runs": runs}], **head}))


def hyperfine(path, factor, seed):
    """Write a file of hyperfine."""
    times = (factor * np.random.default_rng(seed).normal(0.1, 0.002, 20)).tolist()
    path.write_text(json.dumps({"results": [{"command": "t", "times": times}]}))


@pytest.fixture(params=[pytest_benchmark, pyperf, hyperfine], ids=lambda write: write.__name__)
def files(request, tmp_path, monkeypatch):
    """Write two files of a tool, of which the second one met a slower machine."""
    monkeypatch.chdir(tmp_path)
    for name, factor, seed in (("a.json", 1.0, 1), ("b.json", 1.8, 2)):
        request.param(tmp_path / name, factor, seed)


@pytest.mark.parametrize("filtered", [(), ("--filter", "t")], ids=["one", "suite"])
def test_files_of_identical_code_differ_in_these_two_runs(cli, strict, files, filtered):
    words = ("compare", "a.json", "b.json", *filtered)
    result = cli(*words)
    assert result.exit_code == 0
    found = strict(cli(*words, "--json").stdout)
    if filtered:
        (found,) = (family["comparisons"] for family in found["suites"]["families"].values())
        assert found["t"]["scope"] == BY_RUN
    else:
        assert found["comparison"]["scope"] == BY_RUN
        assert any("no-common-pace" in warning for warning in found["warnings"])
    codes = [cli(*words, "--fail-on", what).exit_code for what in ("worse", "undecided", "never")]
    assert codes == [7, 7, 0]


def test_runs_that_share_a_reference_are_about_the_code():
    def run(mean, seed):
        session = br.Session(
            br.Options(rounds="restarted", max_rounds=20), seed=seed, clock=FakeClock()
        )
        return session.run(SyntheticWorkload(mean=mean, restarted=True, seed=seed))

    found = br.compare_runs(run(1.0, 1), run(2.0, 2))
    assert (found.scope, found.fails(None), found.fails("worse")) == (BY_RUN, False, True)
    paired = br.compare_runs(*np.random.default_rng(1).normal(1.0, 0.01, (2, 500)), paired=True)
    assert paired.scope == ""


@pytest.mark.parametrize(
    ("verdict", "fail_on", "fails"),
    [
        ("worse", None, True),
        ("worse", "worse", True),
        ("worse", "undecided", True),
        ("worse", "never", False),
        ("undecided", None, False),
        ("undecided", "worse", False),
        ("undecided", "undecided", True),
        ("better", "undecided", False),
        ("equivalent", "undecided", False),
        ("different", "undecided", False),
    ],
)
def test_a_comparison_in_turn_fails_by_one_rule(verdict, fail_on, fails):
    found = br.stats.compare([1.0, 1.1] * 20, [1.0, 1.1] * 20)
    assert replace(found, verdict=Verdict(verdict)).fails(fail_on) is fails


@pytest.fixture
def judged(monkeypatch):
    """Let `ab` and `commands` find a comparison with a verdict and a reason."""

    def judge(verdict, reason):
        found = br.stats.compare([1.0, 1.1] * 20, [1.0, 1.1] * 20)
        found = replace(found, verdict=Verdict(verdict), reason=StopReason(reason), p_beyond=0.0)
        monkeypatch.setattr(ab_verb, "measure_pair", lambda *_, **__: found)
        monkeypatch.setattr(commands_verb, "compare_with", lambda *_, **__: {"b": found})
        monkeypatch.setattr(commands_verb, "code_for", lambda _: ExitCode.RESULT)  # a busy machine

    return judge


@pytest.mark.parametrize(
    ("verdict", "reason", "words", "code"),
    [
        ("undecided", "time-budget-spent", (), 0),
        ("undecided", "time-budget-spent", ("--fail-on", "undecided"), 3),
        ("undecided", "time-budget-spent", ("--target", "1%"), 3),  # a target that was given
        ("undecided", "satisfied", ("--target", "1%"), 0),
        ("equivalent", "time-budget-spent", ("--target", "1%"), 0),
        ("equivalent", "satisfied", ("--target", "1%"), 0),
        ("worse", "time-budget-spent", ("--target", "1%"), 7),
        ("worse", "satisfied", (), 7),
        ("worse", "satisfied", ("--fail-on", "never"), 0),
        ("different", "satisfied", ("--fail-on", "undecided"), 0),
    ],
)
def test_ab_ends_by_that_rule(cli, judged, verdict, reason, words, code):  # noqa: PLR0917
    judged(verdict, reason)
    result = cli("ab", "--no-store", *words, "json:dumps", "json:loads")
    assert result.exit_code == code, result.output


@pytest.mark.parametrize(
    ("verdict", "words", "code"),
    [
        ("undecided", (), 0),
        ("undecided", ("--fail-on", "undecided"), 3),
        ("worse", (), 7),
        ("worse", ("--fail-on", "never"), 0),
    ],
)
def test_commands_end_by_that_rule(cli, judged, verdict, words, code):
    judged(verdict, "satisfied")
    options = ("--no-store", "--runs", "4", "--baseline", "1")
    result = cli("commands", *options, *words, "true", "sh -c :")
    assert result.exit_code == code, result.output
