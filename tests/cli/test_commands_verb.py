"""Several commands in turn."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchrigor.workloads.processes import launcher

QUICK = ("--budget", "300", "--max-rounds", "12", "--no-store")
TWICE = ("--max-rounds", "2", "--json")
PYTHON = shlex.join([sys.executable, "-I", "-S", "-c"])
AGAINST = ("--runs", "12", "--baseline", "1", "sleep 0.01")
BURN = f"{PYTHON} 'sum(range({{n}}))'"


def test_commands_take_turns_and_are_ranked(told, kept):
    note = f"{PYTHON} \"open('order.txt', 'a').write('{{n}}')\""
    words = ("-L", "n", "1,2,3", "--budget", "300", "--max-rounds", "8", "--seed", "1")
    found = told("commands", note, *words)
    assert [each["values"] for each in found["commands"].values()] == [{"n": n} for n in "123"]
    order = Path("order.txt").read_text()
    turns = [order[at : at + 3] for at in range(0, 24, 3)]
    assert all(sorted(turn) == ["1", "2", "3"] for turn in turns)
    assert len(set(turns)) > 1
    places = [each["place"] for each in found["places"]]
    assert places == sorted(places)
    assert {record.name for record in kept()} == set(found["commands"])


@pytest.mark.parametrize(
    "words",
    [
        ["true {password}"],
        ["true {password}", "--shell"],
        ["true", "--prepare", "true {password}"],
        ["true --password={p} {n}"],
        ["true {n}", "--prepare", "true --password={p}"],
    ],
)
def test_parameters_that_fill_or_have_the_name_of_a_secret_are_hidden(cli, store, kept, words):
    name = "p" if "{n}" in "".join(words) else "password"
    more = ("-L", "n", "7") if name == "p" else ()
    ran = cli("commands", *words, "-L", name, "hunter2,b,two words", *more, *TWICE)
    assert f'"{name}": "__hidden__"' in ran.stdout
    assert ('"n": "7"' in ran.stdout) == bool(more)
    newest = kept()[0].run_id
    shown = [cli("list"), cli("show", newest, "--json"), resumed := cli("resume", newest)]
    for each in (ran, *shown):
        assert "hunter2" not in each.output
        assert "two" not in each.output.replace("two-sided", "")
    assert resumed.exit_code == 2
    assert b"hunter2" not in b"".join(path.read_bytes() for path in store.parent.glob("runs.*"))


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("true", "true", "true"), ["true", "true #2", "true #3"]),
        (("true '{print}' f", "true ${HOME} {}"), ["true '{print}' f", "true ${HOME} {}"]),
        (
            ("true {a} {b}", "true {b}", "-L", "a", "x,y", "-P", "b", "1", "2"),
            [*(f"true {a} {b}" for a in "xy" for b in "12"), "true 1", "true 2"],
        ),
        (("true {n}", "-L", "n", r"a\,b,c"), ["true a,b", "true c"]),
        (("true {pass}", "-P", "pass", "1", "2"), ["true 1", "true 2"]),  # too small for a secret
        (("true {n}", "-P", "n", "0.8", "1"), ["true 0.8", "true 0.9", "true 1.0"]),
        (("true {n}", "-P", "n", "1", "8", "-D", "3"), ["true 1", "true 4", "true 7"]),
        (("true {n}", "-P", "n", "1e3", "1e3"), ["true 1000"]),
    ],
)
def test_what_is_measured_follows_from_commands_and_parameters(told, words, labels):
    assert [*told("commands", *words, "--max-rounds", "2", "--no-store")["commands"]] == labels


def test_user_and_system_time_stand_beside_the_time(cli, told):
    words = ("commands", BURN, "-L", "n", "1000000", *QUICK)
    (run,) = (each["run"] for each in told(*words)["commands"].values())
    names = {each["metric"]["name"] for each in run["analyses"]}
    assert names == {"time", "user_time", "system_time"}
    header = cli(*words).stdout.splitlines()[0].split()
    assert {"user", "system"} & {*header}  # without an estimate one has no column


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


def test_failed_runs_are_counted_apart(told):
    script = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; exit $((n % 2))"
    document = told("commands", script, "--shell", "--ignore-failure", *QUICK)
    (run,) = (each["run"] for each in document["commands"].values())
    assert len(run["rounds"]) == 12
    assert run["facts"]["failed_runs"] == 11


def test_peak_memory_is_that_of_the_command(cli, told):
    touching = f"{PYTHON} 'b\"x\" * 200_000_000'"
    words = ("true", "sh -c :", touching, "--memory", "--max-rounds", "2", "--no-store")
    commands = told("commands", *words, "--budget", "300")["commands"]
    small, shell, large = (each["run"]["facts"] for each in commands.values())
    assert small["peak_memory"] < 3e6
    assert shell["peak_memory"] < 6e6  # where sh is bash
    assert 0 < small["peak_memory_floor"] <= small["peak_memory"]
    assert large["peak_memory"] == pytest.approx(2e8, rel=0.05)
    assert re.search(r"2\d\d MB", " ".join(cli("commands", *words).stdout.split()))


def test_peak_memory_that_is_not_above_its_floor_is_at_most_that(cli, monkeypatch):
    report = f"import os, sys; os.write(int(sys.argv[1]), b'{9_000_000} {8_900_000} 0')"
    Path("launcher.py").write_text(report)
    monkeypatch.setattr(launcher, "__file__", str(Path("launcher.py").absolute()))
    result = cli("commands", "true", "--memory", "--max-rounds", "2", "--no-store")
    assert "9 MB" in result.stdout


def test_a_run_for_the_peak_memory_that_fails_has_none(cli):
    """The second run of the command fails, which is that by the launcher."""
    script = "test ! -e ran && touch ran"
    result = cli("commands", script, "--shell", "--memory", "--max-rounds", "1", "--no-store")
    assert result.exit_code == 5
    assert "peak memory" in result.output
    assert "peak memory" not in cli("commands", "sleep 9", "--memory", "--budget", "0.2").stdout


def test_input_and_output_are_files(cli):
    Path("in.txt").write_text("some words\n")
    words = ("commands", "cat", "--input", "in.txt", "--output", "out.txt", *QUICK)
    assert cli(*words).exit_code in {0, 4}
    assert Path("out.txt").read_text() == "some words\n"


def test_a_baseline_is_what_the_others_are_compared_with_and_the_answer_comes_first(cli, strict):
    words = ("commands", BURN, "-L", "n", "1,5000000", "--baseline", "1", *QUICK)
    result = cli(*words, "--json")
    (verdict,) = strict(result.stdout)["family"]["verdicts"].values()
    assert (verdict, result.exit_code) in {("worse", 7), ("undecided", 0), ("undecided", 4)}
    shown = cli(*words, "--fail-on", "never")
    assert shown.exit_code in {0, 4}
    if shown.exit_code == 0:
        assert "range(5000000)" in shown.stdout.splitlines()[0]


def test_a_run_of_it_is_taken_up_again_with_what_is_run_around(cli, kept):
    cli("commands", "true", "--prepare", "touch prepared", "--max-rounds", "2")
    Path("prepared").unlink()
    assert cli("resume", kept()[0].run_id, "--max-rounds", "4").exit_code in {0, 3, 4}
    assert Path("prepared").exists()
    assert len(kept()[0].rounds) == 4


def test_the_first_interrupt_ends_a_setup(store, alone):
    """No round is under way that could be finished."""
    setup = "sh -c 'kill -INT $PPID; sleep 600'"
    done = alone("commands", "true", "--setup", setup, "--cleanup", "touch cleaned")
    assert done.returncode == 130
    assert store.with_name("cleaned").exists()


def test_each_command_runs_exactly_as_often_as_asked_after_its_warm_up(told):
    count = f"{PYTHON} \"open('{{n}}.txt', 'a').write('.')\""
    words = (count, "-L", "n", "1,2", "--runs", "12", "--warmup", "3", "--target", "90%")
    commands = told("commands", *words)["commands"]
    assert [len(Path(f"{n}.txt").read_text()) for n in "12"] == [15, 15]
    assert [len(each["run"]["rounds"]) for each in commands.values()] == [12, 12]


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (("sleep 0.1", "--runs", "10000", "--budget", "0.5"), {0, 4}),
        (("true", "--prepare", "sleep 60", "--budget", "0.3"), {4}),  # which its hook used up
        (("true", "--runs", "0"), {2}),
        (("true", "false", "--runs", "3"), {5}),
        (("false", "--warmup", "2", "--runs", "3"), {5}),
        *(
            ((*AGAINST, *words), {*codes, 4})  # 4: it is busy
            for words, codes in (
                (("sleep 0.1",), {7}),
                (("sleep 0.1", "--fail-on", "never"), {0}),
                (("sleep 0.01",), {0, 7}),  # slower by chance
                (("sleep 0.01", "--fail-on", "undecided"), {3, 7}),
            )
        ),
    ],
)
def test_each_end_has_its_exit_code(cli, words, codes):
    result = cli("commands", *words, "--no-store")
    assert result.exit_code in codes
    assert "false" not in words[1:] or " true  " in result.stdout  # it went on
