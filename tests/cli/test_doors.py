"""Rounds, shares and words on metrics at the command line's doors."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

PROGRAM = """
import math, sys
for index in range(int(sys.argv[1])):
    print("u", 1.0 + 2.0 * math.exp(-index / 20.0) + 0.01 * math.sin(37.0 * index ** 1.5))
print("ok 998/1000")
print("rate", 250.0)
print("more/less")
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return [sys.executable, "-S", "program.py"]


@pytest.fixture
def starts(tmp_path):
    """A file of restarted rounds with warm-up, and one of the same rounds 5 % slower."""
    rng = np.random.default_rng(1)
    for name, level in (("old", 1.0), ("new", 1.05)):
        lines = ["start,u"]
        for start in range(12):
            warm = level * (1.0 + 2.0 * np.exp(-np.arange(200) / 15.0))
            lines += [f"{start},{u:.6f}" for u in warm * rng.normal(1.0, 0.02, 200)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    return ("--column", "u", "--round", "start")


@pytest.mark.slow
def test_units_of_a_command_are_cut_round_by_round(cli, strict, program):
    pick = "u:ms=regex:u ([0-9.]+)"
    words = ["--max-rounds", "10", "--no-store", "--json", "--work", "300", "--read-units", pick]
    document = strict(cli("run", *words, "--", *program, "{work}").stdout)
    analysis = document["analyses"][0]
    assert document["options"]["rounds"] == "restarted"
    assert analysis["kind"] == "invocations"
    assert analysis["estimate"]["value"] == pytest.approx(1.0, rel=0.005)
    words[words.index("--json") : words.index("--json") + 1] = ["--json", "--rounds", "continuous"]
    document = strict(cli("run", *words, "--", *program, "{work}").stdout)
    assert document["analyses"][0]["kind"] == "unit readings"


@pytest.mark.slow
def test_a_run_knows_what_its_metrics_are(cli, strict, program):
    picks = ["ok:share,higher=regex:ok ([0-9/]+)", "rate:req/s,harmonic,optional=regex:rate (.+)"]
    words = [each for pick in picks for each in ("--read", pick)]
    result = cli("run", "--max-rounds", "10", "--json", *words, "--", *program, "1")
    document = strict(result.stdout)
    ok, rate, time = document["metrics"]
    assert (ok["kind"], ok["direction"], ok["must_satisfy"]) == ("share", "higher", True)
    assert (rate["averaging"], rate["must_satisfy"]) == ("harmonic", False)
    assert (time["kind"], time["must_satisfy"]) == ("time", False)
    estimate = document["analyses"][0]["estimate"]
    assert estimate["value"] == pytest.approx(0.998)
    assert 0.996 < estimate["low"] < estimate["high"] < 1.0
    shown = cli("show", document["run_id"], "--details").stdout
    assert "share of" in shown


@pytest.mark.slow
def test_rounds_of_a_file_are_told_by_a_column(cli, strict, starts):
    document = strict(cli("analyze", "old.csv", *starts, "--unit", "ms", "--json").stdout)
    analysis = document["analyses"][0]
    assert analysis["kind"] == "invocations"
    assert analysis["estimate"]["low"] < 1.0 < analysis["estimate"]["high"]
    by_number = cli("analyze", "old.csv", "--column", "1", "--round", "0", "--unit", "ms", "--json")
    assert strict(by_number.stdout)["analyses"][0]["estimate"] == analysis["estimate"]


@pytest.mark.slow
def test_all_verbs_of_files_know_rounds(cli, strict, starts):
    files = ("old.csv", "new.csv", "--fail-on", "worse")
    compared = cli("compare", *files, *starts, "--unit", "ms")
    assert compared.exit_code == 7, compared.output
    assert "12 vs 12 invocations" in " ".join(compared.stdout.split())
    assert "invocations a side" in cli("plan", "old.csv", *starts).stdout
    changes = strict(cli("changes", "old.csv", *starts, "--json").stdout)["rounds"]
    assert [each["round"] for each in changes] == [str(start) for start in range(12)]


@pytest.mark.slow
def test_a_change_without_direction_is_different_and_no_failure(cli, strict, starts):
    result = cli("compare", "old.csv", "new.csv", *starts, "--json")
    assert result.exit_code == 0
    assert strict(result.stdout)["comparison"]["verdict"] == "different"
    worded = cli("compare", "old.csv", "new.csv", *starts, "--unit", "points,higher")
    assert worded.exit_code == 0
    assert "  verdict    better: " in worded.stdout
    ranked = cli("compare", "old.csv", "new.csv", "old2.csv", *starts)
    assert ranked.exit_code == 2  # no such file


def test_counts_in_a_file_are_shares_of_trials(cli, strict, tmp_path):
    rng = np.random.default_rng(2)
    rows = "".join(f"{rng.binomial(1000, 0.99)}/1000\n" for _ in range(12))
    (tmp_path / "ok.csv").write_text(f"ok\n{rows}")
    document = strict(cli("analyze", "ok.csv", "--unit", "higher", "--json").stdout)
    estimate = document["analyses"][0]["estimate"]
    assert estimate["method"] == "Wilson"
    assert estimate["low"] < 0.99 < estimate["high"]


def test_what_a_project_says_of_its_metrics_holds(cli, strict, program, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.benchrigor.metrics]\nrate = "req/s,±1%"\ntime = "±50%"\n'
    )
    words = ["--max-rounds", "3", "--no-store", "--json", "--read", "rate=regex:rate (.+)"]
    rate, time = json.loads(cli("run", *words, "--", *program, "0").stdout)["metrics"]
    assert (rate["unit"], rate["relative_half_width"]) == ("req/s", 0.01)
    assert (time["unit"], time["relative_half_width"]) == ("s", 0.5)


def test_rates_of_0_are_averaged_over_time_on_both_sides(cli, tmp_path):
    (tmp_path / "old.csv").write_text("100\n300\n" * 40)
    (tmp_path / "new.csv").write_text("100\n300\n" * 39 + "100\n0\n")
    words = ("--unit", "req/s", "--details")
    result = cli("compare", "old.csv", "new.csv", *words, "--fail-on", "undecided")
    assert result.exit_code == 3
    assert "[rate-of-0]" in result.stdout
    assert "[rate-of-0]" in cli("analyze", "new.csv", *words).stdout
    assert "harmonic mean" in cli("analyze", "old.csv", *words).stdout


def test_a_side_that_always_fails_is_compared(cli, tmp_path):
    (tmp_path / "ones.csv").write_text("1\n" * 300)
    (tmp_path / "zeros.csv").write_text("0\n" * 300)
    words = ("compare", "ones.csv", "zeros.csv", "--unit", "share,higher")
    result = cli(*words, "--fail-on", "worse")
    assert result.exit_code == 7, result.output
    assert cli("plan", "ones.csv", "--unit", "share").exit_code in {0, 2, 4}
