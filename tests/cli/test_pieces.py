"""``run`` with several functions, and with one in pieces."""

import json
import re
import sys

import pytest

from benchrigor.storage import Journal

MODULE = """
def small():
    sum(range(100))

def large():
    sum(range(1000))

def failing():
    raise ValueError("no such thing")
"""


@pytest.fixture
def functions(store, monkeypatch):
    """Write a module of two functions and one that fails."""
    (store.parent / "several.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "several", raising=False)
    return store


@pytest.mark.slow
def test_several_functions_take_turns(cli, functions):
    result = cli("run", "--budget", "2", "several:small", "several:large")
    lines = result.stdout.splitlines()
    unclear = "several:large does not clearly differ from several:small: "
    if result.exit_code != 4 and not lines[0].startswith(unclear):  # on a busy machine
        assert result.exit_code == 0, result.output
        assert lines[0].startswith("several:large")
    names = [line.split()[0] for line in lines[1:] if line.startswith("several:")]
    assert names == ["several:small", "several:large"]
    assert all(run["run_id"] in result.stdout for run in Journal(functions).runs())
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.slow
def test_json_of_several_has_them_by_name(cli, functions, strict):
    result = cli("run", "--budget", "0.3", "--json", "several:small", "several:large")
    document = strict(result.stdout)
    assert list(document) == ["several:small", "several:large"]
    for name, record in document.items():
        assert record["name"] == name
        assert record["analyses"][0]["kind"] == "pieces"
        assert Journal(functions).load(record["run_id"]).subject["target"] == name


@pytest.mark.slow
def test_the_exit_code_is_the_worst(cli, functions):
    missed = cli("run", "--budget", "0.3", "--target", "0.0001%", "several:small", "several:large")
    assert missed.exit_code in {3, 4}  # no number, on a busy machine
    failed = cli("run", "--budget", "0.3", "several:failing", "several:small")
    assert failed.exit_code == 5
    assert "\nseveral:small  " in failed.stdout  # it went on
    assert "such thing" in failed.stderr


@pytest.mark.slow
def test_one_function_is_spread_over_minutes(cli, functions, strict):
    result = cli(
        "run", "--budget", "2", "--pieces", "4", "--over", "0.05", "--json", "several:small"
    )
    assert result.exit_code in {0, 4}, result.output
    document = strict(result.stdout)
    assert document["options"]["pieces"] == 4
    assert document["analyses"][0]["kind"] == "pieces"
    assert len(document["analyses"][0]["levels"]) == 4
    shown = cli("show", document["run_id"], "--details")
    assert "from 4 pieces" in " ".join(shown.stdout.split())
    assert "4 pieces" in cli("explain", document["run_id"]).stdout


@pytest.mark.slow
def test_a_stored_run_in_pieces_is_compared_and_exported(cli, functions, strict, tmp_path):
    missed = ("--target", "0.0001%")  # so that it can be taken up again
    words = ("--budget", "1", "--pieces", "4", "--json", *missed, "several:small")
    document = strict(cli("run", *words).stdout)
    run = document["run_id"]
    words = ("--budget", "1", "--pieces", "4", "--json", "several:large")
    other = strict(cli("run", *words).stdout)["run_id"]
    shown = cli("compare", run, other, "--details").stdout.replace("\n ", "")
    assert re.search("[234] vs [234] pieces", shown)  # one may have too few references
    assert cli("export", run, "-o", tmp_path / "out").exit_code == 0
    resumed = cli("resume", run, "--budget", "2", "--json")
    assert strict(resumed.stdout)["options"]["pieces"] == 8


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pieces", "4", "true"], "--pieces is for functions, and true is a command"),
        (["--over", "2", "true"], "--over is for functions"),
        (
            ["--over", "0.001", "several:small"],
            "--over is 60 ms, expected as long as --budget at least, 10 s",
        ),
        (["--over", "1", "--pieces", "1", "several:small"], "--pieces is 1, expected 2"),
        (
            ["--pieces", "4", "--budget", "0.1", "several:small"],
            "--pieces is 4, but --budget is 0.1, expected 0.05 s at least",
        ),
        (["--pieces", "4", "--rounds", "restarted", "several:small"], "rounds are restarted"),
        (["--name", "x", "several:small", "several:large"], "--name is for one function"),
        (["several:small", "several:small"], "several:small is given 2 times"),
        (["several:small", "word"], "'word' follows the function several:small"),
        (
            ["several:small", "several:large", "--budget", "3"],
            "'--budget' follows the function several:small",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(cli, functions, words, sentence):
    result = cli("run", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_json_is_one_document(cli, functions):
    failed = cli("run", "--json", "--budget", "0.3", "several:failing")
    assert json.loads(failed.stdout)["error"]["type"] == "WorkloadFailed"
