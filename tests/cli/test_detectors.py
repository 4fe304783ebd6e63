"""--detector of the verbs: the same choice wherever a series is cut."""

import json

import numpy as np
import pytest

import benchrigor as br

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
    ("shortest", "more", "indices"),
    [(30, (), [30, 131]), (10, ("--min-segment", "10"), None), (20, ("--min-segment", "20"), None)],
)
def test_the_published_method_gives_its_known_answer(cli, series, shortest, more, indices):
    path = series("known.csv", np.repeat([10, 30, 10], [shortest, 130, 30]))
    words = ("changes", path, "--column", "time", "--detector", "edm", "--json")
    found = json.loads(cli(*words, *more).stdout)["change_points"]["indices"]
    assert found[0] == shortest
    assert indices in (None, found)
    if more:
        assert json.loads(cli(*words).stdout)["change_points"]["indices"][0] >= 30


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
