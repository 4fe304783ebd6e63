"""``run`` with several functions, and with one in pieces."""

import re

import pytest

MODULE = """
def small():
    sum(range(100))

def large():
    sum(range(1000))

def failing():
    raise ValueError("no such thing")
"""
BOTH = ("several:small", "several:large")


@pytest.fixture(autouse=True)
def functions(module):
    """Write a module of two functions and one that fails."""
    module("several", MODULE)


def test_several_functions_take_turns(cli, kept):
    result = cli("run", "--budget", "2", *BOTH)
    lines = result.stdout.splitlines()
    if result.exit_code != 4 and "not clearly differ" not in lines[0]:  # on a busy machine
        assert result.exit_code == 0, result.output
        assert lines[0].startswith("several:small is ")
    names = re.findall(r"^(?:\d\. )?(several:\w+)  ", result.stdout, re.MULTILINE)
    assert {*names} == {*BOTH}
    assert all(record.run_id in result.stdout for record in kept())
    assert max(map(len, lines)) <= 80


def test_json_of_several_has_them_by_name(told, kept):
    document = told("run", "--budget", "0.3", *BOTH)
    assert [*document] == [*BOTH]
    runs = {record.run_id: record for record in kept()}
    for name, record in document.items():
        assert record["name"] == name
        assert record["analyses"][0]["kind"] == "pieces"
        assert runs[record["run_id"]].subject["target"] == name


def test_the_exit_code_is_the_worst(cli):
    missed = cli("run", "--budget", "0.3", "--target", "0.0001%", *BOTH)
    assert missed.exit_code in {3, 4}  # no number, on a busy machine
    failed = cli("run", "--budget", "0.3", "several:failing", "several:small")
    assert failed.exit_code == 5
    assert "several:small  " in failed.stdout  # it went on
    assert "such thing" in failed.stderr


def test_one_function_is_spread_over_minutes_compared_exported_and_taken_up_again(
    cli, told, strict
):
    words = ("--target", "0.0001%", "--budget", "1", "--pieces", "4", "--over", "0.05")
    document = told("run", *words, "several:small")
    run = document["run_id"]
    assert document["options"]["pieces"] == 4
    assert document["analyses"][0]["kind"] == "pieces"
    assert len(document["analyses"][0]["levels"]) == 4
    for verb in ("show", "explain"):
        assert "4 pieces" in " ".join(
            cli(verb, run, *["--details"][: verb == "show"]).stdout.split()
        )
    other = told("run", "--budget", "1", "--pieces", "4", "several:large")["run_id"]
    assert told("compare", run, other)["comparison"]["unit"] == "piece"
    assert cli("export", run, "-o", "out").exit_code == 0
    assert told("resume", run, "--budget", "2")["options"]["pieces"] == 8
