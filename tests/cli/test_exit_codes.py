"""One rule of exit codes for all comparisons; runs that failed are never called faster."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.texts.causes.cli_pages import jmeter

import benchrigor as br
from benchrigor.cli import comparison_verbs
from benchrigor.model import Code, StopReason, Verdict
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
    monkeypatch.setattr(comparison_verbs, "measure_pair", lambda *_, **__: found)
    result = cli("ab", "--no-store", *words, "json:dumps", "json:loads")
    assert result.exit_code == code, result.output


SIDES = {"good": (400.0, 0), "some": (380.0, 24), "fail": (20.0, 80)}  # level, and failed of 80


def times_around(level):
    return np.random.default_rng(1).normal(level, level / 20, 80).tolist()


def hyperfine_of(level, failed):
    times = [each / 1e3 for each in times_around(level)]
    codes = [int(index < failed) for index in range(len(times))]
    return json.dumps({"results": [{"command": "curl", "times": times, "exit_codes": codes}]})


TOOLS = {"jmeter": jmeter, "hyperfine": hyperfine_of}


@pytest.fixture
def load(store):
    """Write the results of a tool into this folder."""

    def load(tool="jmeter"):
        for name, side in SIDES.items():
            store.with_name(f"{name}.result").write_text(TOOLS[tool](*side))

    return load


def codes_in(notices):
    return [each["code"] for each in notices]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_side_of_errors_has_no_verdict_and_one_with_some_has_one_that_names_it(
    cli, told, load, tool
):
    load(tool)
    for sides in (["good", "fail"], ["fail", "good"], ["good", "some", "fail"]):
        files = [f"{name}.result" for name in sides]
        assert cli("compare", *files).exit_code == 8
        error = told("compare", *files)["error"]
        assert error["type"] == "NotComparable"
        assert "fail.result" in error["message"]
    (good,), (fail,) = (br.read_results(f"{name}.result") for name in ("good", "fail"))
    with pytest.raises(br.errors.NotComparable):
        br.compare_runs(good, fail)
    found = told("compare", "good.result", "some.result")["comparison"]
    assert codes_in(found["notices"]).count("failed-runs") == 1


def k6(answers):
    """Return the table of requests: status, and milliseconds."""
    rows = (
        f"{metric},1795200000,{value},GET,http://a/,{status}\n"
        for status, each in answers
        for metric, value in (("http_req_duration", each), ("http_req_failed", +(status == "503")))
    )
    return "metric_name,timestamp,metric_value,method,name,status\n" + "".join(rows)


@pytest.mark.parametrize(("share", "code"), [(9, 8), (10, 8), (5, 0), (0, 0)])
def test_answers_among_errors_have_no_verdict(share, code, cli, store):
    """Of ten requests of k6 the share failed; the answers have a name of their own."""
    times = np.random.default_rng(1).normal(12.0, 0.5, 200).tolist()
    for name, failed in (("good", 0), ("bad", share)):
        statuses = ("503" if k % 10 < failed else "200" for k in range(200))
        store.with_name(name).write_text(k6(list(zip(statuses, times, strict=True))))
    for sides in (("good", "bad"), ("bad", "good")):
        result = cli("compare", *sides)
        assert result.exit_code == code
        assert (f"{share}0% failed" in result.stdout + result.stderr) == (share > 0)


def test_suites_name_the_file(cli, load):
    load()
    result = cli("compare", "good.result", "some.result", "--filter", "home")
    assert "30% failed" in " ".join(result.stdout.split())
    assert cli("compare", "good.result", "fail.result", "--filter", "home").exit_code == 8


@pytest.mark.parametrize("to", ["pyperf", "csv", "bencher", "github"])
def test_what_is_converted_says_it_and_errors_are_not_converted_to_what_cannot(cli, load, to):
    load()
    result = cli("convert", "some.result", "out", "--to", to)
    assert result.exit_code == 0
    assert "30% failed" in result.stderr
    assert cli("convert", "fail.result", "none", "--to", to).exit_code == (
        0 if to == "pyperf" else 8
    )
    assert Path("none").exists() == (to == "pyperf")


@pytest.mark.parametrize(("name", "code"), [("some", 0), ("fail", 8)])
def test_what_is_converted_to_pyperf_is_no_healthy_side(cli, load, name, code):
    load()
    for source, out in (
        (f"{name}.result", "once"),
        ("once.json", "twice"),
        ("good.result", "good"),
    ):
        assert cli("convert", source, f"{out}.json").exit_code == 0
    (bad,), (good,) = (br.read_results(f"{each}.json") for each in ("twice", "good"))
    assert [each.code for each in bad.session_notices] == [Code.FAILED_RUNS]
    assert good.session_notices == ()
    result = cli("compare", "good.json", "twice.json")
    assert result.exit_code == code
    assert "% failed" in result.stdout + result.stderr


@pytest.mark.parametrize("told", ['{"code": 1}', "[1", '[{"code": "too-wide"}]', "[3]", ""])
def test_warnings_in_metadata_that_are_damaged_are_named(cli, load, told):
    load()
    assert cli("convert", "some.result", "some.json").exit_code == 0
    suite = json.loads(Path("some.json").read_text())
    suite["benchmarks"][0].setdefault("metadata", suite["metadata"])
    for part in (suite["metadata"], suite["benchmarks"][0]["metadata"]):
        part.update({"benchrigor_warnings": told} if "benchrigor_warnings" in part else {})
    Path("some.json").write_text(json.dumps(suite))
    with pytest.raises(br.InvalidInput, match=r"some\.json"):
        br.read_results("some.json")


def test_other_warnings_of_a_side_are_told_too():
    """A run that went on after its hook failed, for one."""

    def run(seed, *notices):
        session = br.Session(br.Options(rounds="restarted", max_rounds=20), seed=seed)
        for notice in notices:
            session.note(notice)
        return session.run(SyntheticWorkload(mean=1.0, restarted=True, seed=seed))

    bad = run(2, br.Notice.of(Code.HOOK_FAILED, hook="after", error="ValueError", why_="x"))
    for sides in ((run(1), bad), (bad, run(1))):
        (told,) = (n for n in br.compare_runs(*sides).notices if n.code is Code.HOOK_FAILED)
        assert told.sentence.endswith("ValueError: x")
