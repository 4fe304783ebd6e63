"""One rule of exit codes for all comparisons, and what a verdict is about."""

import json
from dataclasses import replace

import numpy as np
import pytest

import benchrigor as br
from benchrigor.cli import ab_verb
from benchrigor.model import StopReason, Verdict
from benchrigor.testing import FakeClock, SyntheticWorkload

BY_RUN = "these two runs"


def pyperf(times):
    """Return a file of as many processes."""
    head = {"metadata": {"name": "t", "unit": "second"}, "version": "1.0"}
    return {"benchmarks": [{"runs": [{"values": [each]} for each in times[:20]]}], **head}


def hyperfine(times):
    return {"results": [{"command": "t", "times": times[:20]}]}


@pytest.fixture(params=[pyperf, hyperfine], ids=lambda write: write.__name__)
def files(request, store):
    """Write two files of a tool, of which the second one met a slower machine."""
    for name, factor, seed in (("a.json", 1.0, 1), ("b.json", 1.8, 2)):
        times = factor * np.random.default_rng(seed).normal(0.1, 0.002, 60)
        store.with_name(name).write_text(json.dumps(request.param(times.tolist())))


@pytest.mark.parametrize("filtered", [(), ("--filter", "t")], ids=["one", "suite"])
def test_files_of_identical_code_differ_in_these_two_runs(cli, told, files, filtered):
    words = ("compare", "a.json", "b.json", *filtered)
    found = told(*words)
    if filtered:
        (found,) = (family["comparisons"] for family in found["suites"]["families"].values())
        assert found["t"]["scope"] == BY_RUN
    else:
        assert found["comparison"]["scope"] == BY_RUN
        assert any("no-common-pace" in warning for warning in found["warnings"])
    failing = [(), *(("--fail-on", each) for each in ("worse", "undecided", "never"))]
    assert [cli(*words, *each).exit_code for each in failing] == [0, 7, 7, 0]


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


@pytest.mark.parametrize(
    ("verdict", "reason", "words", "code"),
    [
        ("undecided", "time-budget-spent", (), 0),
        ("undecided", "time-budget-spent", ("--fail-on", "undecided"), 3),
        ("undecided", "time-budget-spent", ("--target", "1%"), 3),  # a target that was given
        ("undecided", "satisfied", ("--target", "1%"), 0),
        ("equivalent", "time-budget-spent", ("--target", "1%"), 0),
        ("worse", "time-budget-spent", ("--target", "1%"), 7),
        ("worse", "satisfied", ("--fail-on", "never"), 0),
    ],
)
def test_ab_ends_by_that_rule(cli, monkeypatch, verdict, reason, words, code):  # noqa: PLR0917
    found = br.stats.compare([1.0, 1.1] * 20, [1.0, 1.1] * 20)
    found = replace(found, verdict=Verdict(verdict), reason=StopReason(reason), p_beyond=0.0)
    monkeypatch.setattr(ab_verb, "measure_pair", lambda *_, **__: found)
    result = cli("ab", "--no-store", *words, "json:dumps", "json:loads")
    assert result.exit_code == code, result.output
