"""Several commands in turn."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchrigor.clocks import processors
from benchrigor.session.pairs.kept_sides import compare_in_turn
from benchrigor.storage import Journal
from benchrigor.testing import cpu_hog
from benchrigor.workloads.processes import launcher

QUICK = ("--budget", "300", "--max-rounds", "12", "--no-store")
PYTHON = shlex.join([sys.executable, "-I", "-S", "-c"])
TOUCHING = f"{PYTHON} 'b\"x\" * 200_000_000'"


@pytest.mark.slow
def test_commands_take_turns_and_are_ranked(cli, strict, store):
    note = "open('order.txt', 'a').write('{n}')"
    words = (
        "commands",
        f'{PYTHON} "{note}"',
        "-L",
        "n",
        "1,2,3",
        "--budget",
        "300",
        "--max-rounds",
        "8",
    )
    told = strict(cli(*words, "--json", "--seed", "1").stdout)
    assert [each["values"] for each in told["commands"].values()] == [{"n": n} for n in "123"]
    order = Path("order.txt").read_text()
    turns = [order[at : at + 3] for at in range(0, 24, 3)]
    assert all(sorted(turn) == ["1", "2", "3"] for turn in turns)
    assert len(set(turns)) > 1
    places = [each["place"] for each in told["places"]]
    assert places == sorted(places)
    names = {run["name"] for run in Journal(store).runs()}
    assert names == set(told["commands"])


@pytest.mark.slow
def test_every_combination_of_parameters_is_run_once(cli, strict):
    words = ("true {a} {b}", "true {b}", "-L", "a", "x,y", "-P", "b", "1", "2", *QUICK)
    told = strict(cli("commands", *words, "--json").stdout)
    two = ["true x 1", "true x 2", "true y 1", "true y 2"]
    assert list(told["commands"]) == [*two, "true 1", "true 2"]


@pytest.mark.parametrize(
    "words", [["true --password={p} {n}"], ["true {n}", "--prepare", "true --password={p}"]]
)
def test_parameters_that_fill_a_secret_are_hidden(cli, words):
    ran = cli(
        "commands", *words, "-L", "p", "hunter2", "-L", "n", "7", "--max-rounds", "2", "--json"
    )
    assert "hunter2" not in ran.stdout
    assert '"p": "__hidden__"' in ran.stdout
    assert '"n": "7"' in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["true {password}"],
        ["true {password}", "--shell"],
        ["true", "--prepare", "true {password}"],
    ],
)
def test_values_of_a_parameter_with_the_name_of_a_secret_are_hidden(cli, store, words):
    values = ("-L", "password", "hunter2,b,two words")
    ran = cli("commands", *words, *values, "--max-rounds", "2", "--json")
    assert '"password": "__hidden__"' in ran.stdout
    newest = Journal(store).runs()[0]["run_id"]
    shown = [cli("list"), cli("show", newest, "--json"), resumed := cli("resume", newest)]
    for each in (ran, *shown):
        assert "hunter2" not in each.output
        assert "two" not in each.output.replace("two-sided", "")
    assert resumed.exit_code == 2
    assert b"hunter2" not in b"".join(path.read_bytes() for path in store.parent.glob("runs.*"))


def test_ends_of_a_secret_range_are_hidden_and_small_numbers_are_no_secret(cli):
    ran = cli("commands", "true {pass}", "-P", "pass", "1", "2", "--max-rounds", "2", "--no-store")
    assert "true 1" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("true", "true", "true"), ["true", "true #2", "true #3"]),
        (("true '{print}' f", "true ${HOME} {}"), ["true '{print}' f", "true ${HOME} {}"]),
        (("true {n} {m}", "-L", "n", "1,2"), ["true 1 {m}", "true 2 {m}"]),
        (("true {n}", "-L", "n", r"a\,b,c"), ["true a,b", "true c"]),
        (("true {n}", "-P", "n", "0.5", "1.5"), ["true 0.5", "true 1.5"]),
        (("true {n}", "-P", "n", "0.01", "0.02"), ["true 0.01", "true 0.02"]),
        (("true {n}", "-P", "n", "0.8", "1"), ["true 0.8", "true 0.9", "true 1.0"]),
        (("true {n}", "-P", "n", "0.1", "0.3", "-D", "0.1"), [f"true 0.{i}" for i in (1, 2, 3)]),
        (("true {n}", "-P", "n", "1", "8", "-D", "3"), ["true 1", "true 4", "true 7"]),
        (("true {n}", "-P", "n", "1e3", "1e3"), ["true 1000"]),
    ],
)
def test_what_is_measured_follows_from_commands_and_parameters(cli, strict, words, labels):
    words = ("commands", *words, "--max-rounds", "2", "--no-store", "--json")
    assert [*strict(cli(*words).stdout)["commands"]] == labels


THREADS = """
import hashlib, threading
def work(data=bytes(1 << 20)):
    for _ in range(12): hashlib.sha256(data)
made = [threading.Thread(target=work) for _ in range({n})]
for each in made: each.start()
for each in made: each.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("beside", [0, 1])
def test_no_figure_of_several_threads_is_below_their_processor_time(cli, strict, beside):
    burn = f"{PYTHON} {shlex.quote(THREADS)}"
    pipeline = "sh -c 'head -c 5000000 /dev/zero | cksum | cksum'"
    words = ("commands", burn, pipeline, "-L", "n", "2,4", "--max-rounds", "5", "--no-store")
    words += ("--budget", "120")
    with cpu_hog(beside) if beside else nullcontext():
        told = strict(cli(*words, "--json").stdout)
    figures = {each["name"]: [each["estimate"]["value"]] for each in told["places"]}
    assert len(figures) == 3
    for label, command in told["commands"].items():
        found = {each["metric"]["name"]: each for each in command["run"]["analyses"]}
        # Of a few ticks of system time the interval may be too wide for a number.
        parts = (found[name] for name in ("user_time", "system_time"))
        used_s = sum(
            part["estimate"]["value"] if part["estimate"] else part["observed"]["mean"]
            for part in parts
        )
        time = found["time"]
        shown = (time["estimate"], time.get("at_full_pace"))
        figures[label] += [each["value"] for each in shown if each]
        # Processor time is that of all rounds, figures are of those that all commands have.
        assert min(figures[label]) > 0.9 * used_s / processors()
        wall_s = time["estimate"]["value"] if time["estimate"] else math.inf
        if "hashlib" in label and used_s > wall_s:  # they did run at once
            assert time.get("at_full_pace") is None


@pytest.mark.slow
def test_a_ranking_and_its_ratios_are_those_of_the_stored_rounds(cli, strict, store):
    burn = f"{PYTHON} 'sum(range({{n}}))'"
    words = (
        "commands",
        burn,
        "-L",
        "n",
        "1,5000000",
        "--budget",
        "300",
        "--max-rounds",
        "10",
        "--json",
    )
    told = strict(cli(*words).stdout)
    first, last = (each["name"] for each in told["places"])
    assert "range(1)" in first
    with Journal(store) as journal:
        runs = {each["name"]: journal.load(each["run_id"]) for each in journal.runs()}
    ratio = compare_in_turn(runs[first], runs[last]).ratio
    assert told["ratios"][last]["value"] == ratio.value > 1.0
    assert told["ratios"][last]["low"] == ratio.low


@pytest.mark.slow
def test_a_time_at_full_pace_has_its_label(cli):
    burn = f"{PYTHON} 'sum(range({{n}}))'"
    shown = " ".join(cli("commands", burn, "-L", "n", "1,9", *QUICK).stdout.split())
    assert " 1. " in shown


@pytest.mark.slow
def test_user_and_system_time_stand_beside_the_time(cli, strict):
    burn = f"{PYTHON} 'sum(range(1_000_000))'"
    told = strict(cli("commands", burn, *QUICK, "--json").stdout)
    (run,) = (each["run"] for each in told["commands"].values())
    found = {each["metric"]["name"]: each for each in run["analyses"]}
    assert set(found) == {"time", "user_time", "system_time"}
    header = cli("commands", burn, *QUICK).stdout.splitlines()[0].split()
    assert {"user", "system"} & {*header}  # without an estimate one has no column


@pytest.mark.slow
def test_hooks_are_run_around_with_the_values_of_the_command(cli):
    note = "echo {} {{n}} >> hooks.txt"
    hooks = [
        word
        for place in ("setup", "prepare", "conclude", "cleanup")
        for word in (f"--{place}", note.format(place))
    ]
    result = cli("commands", "true", "-L", "n", "1,2", "--shell", *hooks, *QUICK, "--json")
    assert result.exit_code in {0, 4}
    times = Counter(Path("hooks.txt").read_text().split("\n"))
    for n in "12":
        assert times[f"setup {n}"] == times[f"cleanup {n}"] == 1
        assert times[f"prepare {n}"] == times[f"conclude {n}"] == 12


@pytest.mark.slow
def test_failed_runs_are_counted_apart(cli, strict):
    script = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; exit $((n % 2))"
    words = ("commands", script, "--shell", "--ignore-failure", *QUICK)
    told = strict(cli(*words, "--json").stdout)
    (run,) = (each["run"] for each in told["commands"].values())
    assert len(run["rounds"]) == 12
    assert run["facts"]["failed_runs"] == 11
    Path("n").unlink()
    assert "11 runs, after " in " ".join(cli(*words).stdout.split())


@pytest.mark.slow
def test_peak_memory_is_that_of_the_command(cli, strict):
    limits = ("--max-rounds", "2", "--budget", "300")
    words = ("commands", "true", "sh -c :", TOUCHING, "--memory", *limits, "--no-store")
    told = strict(cli(*words, "--json").stdout)
    small, shell, large = (each["run"]["facts"] for each in told["commands"].values())
    assert small["peak_memory"] < 3e6
    assert shell["peak_memory"] < 6e6  # where sh is bash
    assert 0 < small["peak_memory_floor"] <= small["peak_memory"]
    assert large["peak_memory"] == pytest.approx(2e8, rel=0.05)
    assert re.search(r"2\d\d MB", " ".join(cli(*words).stdout.split()))


def test_peak_memory_that_is_not_above_its_floor_is_at_most_that(cli, monkeypatch):
    report = f"import os, sys; os.write(int(sys.argv[1]), b'{9_000_000} {8_900_000} 0')"
    Path("launcher.py").write_text(report)
    monkeypatch.setattr(launcher, "__file__", str(Path("launcher.py").absolute()))
    result = cli("commands", "true", "--memory", "--max-rounds", "2", "--no-store")
    assert "9 MB" in result.stdout


@pytest.mark.slow
def test_a_run_for_the_peak_memory_that_fails_has_none(cli):
    """The second run of the command fails, which is that by the launcher."""
    script = "test ! -e ran && touch ran"
    words = ("commands", script, "--shell", "--memory", "--max-rounds", "1", "--no-store")
    result = cli(*words)
    assert result.exit_code == 5
    assert "peak memory" in result.output
    Path("ran").unlink()
    assert "peak memory" not in cli("commands", "sleep 9", "--memory", "--budget", "0.2").stdout


def test_input_and_output_are_files(cli):
    Path("in.txt").write_text("some words\n")
    words = ("commands", "cat", "--input", "in.txt", "--output", "out.txt", *QUICK)
    assert cli(*words).exit_code in {0, 4}
    assert Path("out.txt").read_text() == "some words\n"


@pytest.mark.slow
def test_a_baseline_is_what_the_others_are_compared_with(cli, strict):
    burn = f"{PYTHON} 'sum(range({{n}}))'"
    words = ("commands", burn, "-L", "n", "1,5000000", "--baseline", "1", *QUICK)
    result = cli(*words, "--json")
    (verdict,) = strict(result.stdout)["family"]["verdicts"].values()
    assert (verdict, result.exit_code) in {("worse", 7), ("undecided", 0), ("undecided", 4)}
    assert cli(*words, "--max-rounds", "3", "--fail-on", "never").exit_code in {0, 4}


@pytest.mark.slow
def test_a_run_of_it_is_taken_up_again_with_what_is_run_around(cli, store):
    cli("commands", "true", "--prepare", "touch prepared", "--max-rounds", "2")
    (run,) = Journal(store).runs()
    Path("prepared").unlink()
    assert cli("resume", run["run_id"], "--max-rounds", "4").exit_code in {0, 3, 4}
    assert Path("prepared").exists()
    assert len(Journal(store).load(run["run_id"]).rounds) == 4


def test_one_that_fails_does_not_stop_the_others(cli):
    result = cli("commands", "true", "false", *QUICK)
    assert result.exit_code == 5
    assert " true  " in result.stdout


@pytest.mark.slow
def test_a_round_that_its_hook_used_up_says_so(cli):
    words = ("true", "--prepare", "sleep 60", "--budget", "0.3", "--no-store")
    result = cli("commands", *words)
    assert result.exit_code == 4
    shown = " ".join(result.output.split())
    assert "budget was" in shown


@pytest.mark.slow
def test_the_first_interrupt_ends_a_setup(store):
    """No round is under way that could be finished."""
    setup = "sh -c 'kill -INT $PPID; sleep 600'"
    argv = [sys.executable, "-m", "benchrigor", "commands", "true", "--setup", setup]
    argv += ["--cleanup", "touch cleaned"]
    done = subprocess.run(argv, capture_output=True, cwd=store.parent, check=False, timeout=120)
    assert done.returncode == 130
    assert (store.parent / "cleaned").exists()


@pytest.mark.slow
def test_each_command_runs_exactly_as_often_as_asked_after_its_warm_up(cli, strict):
    count = f"{PYTHON} \"open('{{n}}.txt', 'a').write('.')\""
    words = (count, "-L", "n", "1,2", "--runs", "12", "--warmup", "3", "--target", "90%")
    told = strict(cli("commands", *words, "--json").stdout)
    assert [len(Path(f"{n}.txt").read_text()) for n in "12"] == [15, 15]
    assert [len(each["run"]["rounds"]) for each in told["commands"].values()] == [12, 12]


def test_a_budget_that_is_asked_for_ends_runs_and_other_numbers_of_runs_are_refused(cli):
    ended = cli("commands", "sleep 0.1", "--runs", "10000", "--budget", "0.5", "--no-store")
    assert ended.exit_code in (0, 4)
    refused = cli("commands", "true", "--runs", "2", "--max-rounds", "3")
    assert refused.exit_code == 2
    assert cli("commands", "true", "--runs", "0").exit_code == 2


def test_a_warm_up_that_fails_says_so_before_anything_is_timed(cli):
    ran = cli("commands", "false", "--warmup", "2", "--runs", "3", "--no-store")
    assert ran.exit_code == 5
