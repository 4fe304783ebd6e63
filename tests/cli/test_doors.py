"""What holds at each verb's door: rounds, shares, words on metrics, and the detector."""

from __future__ import annotations

import json

import numpy as np
import pytest

import benchrigor as br

PROGRAM = """
import math, sys
for index in range(int(sys.argv[1])):
    print("u", 1.0 + 2.0 * math.exp(-index / 20.0) + 0.01 * math.sin(37.0 * index ** 1.5))
print("ok 998/1000")
print("rate", 250.0)
"""


@pytest.fixture
def starts(series):
    """A file of restarted rounds with warm-up, and one of the same rounds 5 % slower."""
    rng = np.random.default_rng(1)
    for name, level in (("old", 1.0), ("new", 1.05)):
        lines = []
        for start in range(12):
            warm = level * (1.0 + 2.0 * np.exp(-np.arange(200) / 15.0))
            lines += [f"{start},{u:.6f}" for u in warm * rng.normal(1.0, 0.02, 200)]
        series(f"{name}.csv", lines, "start,u")
    return ("--column", "u", "--round", "start")


def test_units_of_a_command_are_cut_round_by_round(told, script):
    pick = "u:ms=regex:u ([0-9.]+)"
    words = ("run", "--max-rounds", "10", "--no-store", "--work", "300", "--read-units", pick)
    document = told(*words, "--", *script(PROGRAM), "{work}")
    analysis = document["analyses"][0]
    assert document["options"]["rounds"] == "restarted"
    assert analysis["kind"] == "invocations"
    assert analysis["estimate"]["value"] == pytest.approx(1.0, rel=0.005)
    continuous = told(*words, "--rounds", "continuous", "--", *script(PROGRAM), "{work}")
    assert continuous["analyses"][0]["kind"] == "unit readings"


def test_a_run_knows_what_its_metrics_are(told, script):
    picks = ["ok:share,higher=regex:ok ([0-9/]+)", "rate:req/s,harmonic,optional=regex:rate (.+)"]
    words = [each for pick in picks for each in ("--read", pick)]
    document = told("run", "--max-rounds", "10", *words, "--", *script(PROGRAM), "1")
    ok, rate, time = document["metrics"]
    assert (ok["kind"], ok["direction"], ok["must_satisfy"]) == ("share", "higher", True)
    assert (rate["averaging"], rate["must_satisfy"]) == ("harmonic", False)
    assert (time["kind"], time["must_satisfy"]) == ("time", False)
    estimate = document["analyses"][0]["estimate"]
    assert estimate["value"] == pytest.approx(0.998)
    assert 0.996 < estimate["low"] < estimate["high"] < 1.0


def test_all_verbs_of_files_know_rounds(cli, told, starts):
    (analysis,) = told("analyze", "old.csv", *starts, "--unit", "ms")["analyses"]
    assert analysis["kind"] == "invocations"
    assert analysis["estimate"]["low"] < 1.0 < analysis["estimate"]["high"]
    by_number = ("--column", "1", "--round", "0", "--unit", "ms")
    assert told("analyze", "old.csv", *by_number)["analyses"][0]["estimate"] == analysis["estimate"]
    compared = told("compare", "old.csv", "new.csv", *starts, "--unit", "ms")["comparison"]
    assert (compared["verdict"], compared["unit"]) == ("worse", "invocation")
    assert "invocations a side" in cli("plan", "old.csv", *starts).stdout
    changes = told("changes", "old.csv", *starts)["rounds"]
    assert [each["round"] for each in changes] == [str(start) for start in range(12)]


def test_a_change_without_direction_is_different_and_no_failure(cli, told, starts):
    words = ("compare", "old.csv", "new.csv", *starts)
    assert cli(*words).exit_code == 0
    assert told(*words)["comparison"]["verdict"] == "different"
    assert told(*words, "--unit", "points,higher")["comparison"]["verdict"] == "better"


def test_counts_in_a_file_are_shares_of_trials(told, series):
    rng = np.random.default_rng(2)
    series("ok.csv", [f"{rng.binomial(1000, 0.99)}/1000" for _ in range(12)], "ok")
    estimate = told("analyze", "ok.csv", "--unit", "higher")["analyses"][0]["estimate"]
    assert estimate["method"] == "Wilson"
    assert estimate["low"] < 0.99 < estimate["high"]


def test_what_a_project_says_of_its_metrics_holds(told, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.benchrigor.metrics]\nrate = "req/s,±1%"\ntime = "±50%"\n'
    )
    pick = ("--read", "rate=regex:rate (.+)", "--", "sh", "-c", "echo rate 250")
    words = ("run", "--max-rounds", "3", "--no-store", *pick)
    rate, time = told(*words)["metrics"]
    assert (rate["unit"], rate["relative_half_width"]) == ("req/s", 0.01)
    assert (time["unit"], time["relative_half_width"]) == ("s", 0.5)


def test_rates_of_0_are_averaged_over_time_on_both_sides(told, series):
    series("old.csv", [100, 300] * 40)
    series("new.csv", [100, 300] * 39 + [100, 0])
    unit = ("--unit", "req/s")
    found = told("compare", "old.csv", "new.csv", *unit)["comparison"]
    assert found["verdict"] == "undecided"


def test_a_side_that_always_fails_is_compared(cli, told, series):
    series("ones.csv", [1] * 300)
    series("zeros.csv", [0] * 300)
    found = told("compare", "ones.csv", "zeros.csv", "--unit", "share,higher")
    assert found["comparison"]["verdict"] == "worse"
    assert cli("plan", "ones.csv", "--unit", "share").exit_code in {0, 2, 4}


LEVEL, SHORT = 20.0, ("--budget", "0.2", "--detector", "edm")


@pytest.fixture
def phased(series):
    """A file with a warm-up of 60 readings, 400 stable ones and a cool-down of 40."""
    levels = np.repeat([1.5 * LEVEL, LEVEL, 1.2 * LEVEL], [60, 400, 40])
    return series("a.csv", levels + np.random.default_rng(3).normal(0.0, 1.0, levels.size))


@pytest.mark.parametrize("verb", ["analyze", "changes"])
def test_the_published_method_finds_the_phases_of_a_file(cli, phased, verb):
    result = cli(verb, phased, "--column", "time", "--unit", "s", "--detector", "edm", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    phases = printed if verb == "changes" else printed["analyses"][0]["phases"][0]
    published = br.stats.find_stable_phase(np.loadtxt(phased, skiprows=1), detector="edm")
    assert (phases["start"], phases["stop"]) == (published.start, published.stop)
    assert phases["start"] == pytest.approx(60, abs=3)
    assert phases["change_points"]["level"] is None


@pytest.mark.parametrize(
    "words",
    ["timeit pass", "commands true", "ab own:f own:f", "ab --fresh own:f own:f", "run own:f"],
)
def test_each_verb_that_measures_takes_a_detector(cli, module, kept, words):
    module("own", "def f():\n    sum(range(99))\n")
    verb, *more = words.split()
    result = cli(verb, *SHORT, *more)
    assert result.exit_code in {0, 3, 4, 7}, result.output
    assert {record.options.detector for record in kept()} == {"edm"}


@pytest.mark.parametrize(
    ("words", "level"), [("plan", LEVEL), ("compare", 1.0), ("compare --paired", 1.0)]
)
def test_files_are_planned_from_and_compared_by_the_detector_that_is_asked_for(
    cli, phased, series, words, level
):
    verb, *more = words.split()
    noise = np.random.default_rng(4).normal(1.0, 0.05, 500)
    other = series("b.csv", noise * np.repeat([1.5 * LEVEL, LEVEL, 1.2 * LEVEL], [60, 400, 40]))
    files = [phased, other] if verb == "compare" else [phased]
    usual, published = (
        json.loads(cli(verb, *files, "--unit", "s", "--json", *more, *detector).stdout)
        for detector in ((), ("--detector", "edm"))
    )
    at = ("plan", "pilot") if verb == "plan" else ("comparison", "ratio")
    usual, published = (each[at[0]][at[1]] for each in (usual, published))
    assert published != usual
    assert published["value"] == pytest.approx(level, rel=0.03)
