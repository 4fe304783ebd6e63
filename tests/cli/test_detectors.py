"""--detector of the verbs: the same choice wherever a series is cut."""

import json

import numpy as np
import pytest

import benchrigor as br
from benchrigor.storage import Journal

LEVEL, SHORT = 20.0, ("--budget", "0.2", "--detector", "edm")


@pytest.fixture
def phased(tmp_path):
    """A file with a warm-up of 60 readings, 400 stable ones and a cool-down of 40."""
    levels = np.repeat([1.5 * LEVEL, LEVEL, 1.2 * LEVEL], [60, 400, 40])
    series = levels + np.random.default_rng(3).normal(0.0, 1.0, levels.size)
    path = tmp_path / "phased.csv"
    path.write_text("time\n" + "\n".join(map(str, series)) + "\n", encoding="utf-8")
    return path


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


def test_what_is_too_few_to_call_is_said_once(cli, tmp_path):
    series = np.random.default_rng(2).normal(1.0, 0.02, 206)
    series[200:] *= 1.5
    path = tmp_path / "late.csv"
    np.savetxt(path, series, header="time", comments="")
    result = cli("changes", path, "--column", "time", "--unit", "s", "--detector", "pelt")
    assert result.stdout.count("too few") == 1


def test_the_published_method_gives_its_known_answer(cli, tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("time\n" + "10\n" * 30 + "30\n" * 130 + "10\n" * 30, encoding="utf-8")
    words = ("changes", path, "--column", "time", "--detector", "edm")
    assert json.loads(cli(*words, "--json").stdout)["change_points"]["indices"] == [30, 131]


@pytest.mark.slow
def test_a_plan_is_made_of_what_the_detector_leaves(cli, phased, store):
    words = ("plan", phased, "--column", "time", "--unit", "s", "--json")
    usual, published = (
        json.loads(cli(*words, *detector).stdout)["plan"]["pilot"]
        for detector in ((), ("--detector", "edm"))
    )
    assert published != usual
    assert published["value"] == pytest.approx(LEVEL, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("shortest", [10, 20])
def test_the_least_segment_of_the_published_method_can_be_chosen(cli, tmp_path, shortest):
    path = tmp_path / "known.csv"
    levels = np.repeat([10.0, 30.0, 10.0], [shortest, 130, 30])
    path.write_text("time\n" + "\n".join(map(str, levels)) + "\n", encoding="utf-8")
    words = ("changes", path, "--detector", "edm", "--json")
    default, chosen = (
        json.loads(cli(*words, *more).stdout)["change_points"]["indices"]
        for more in ((), ("--min-segment", shortest))
    )
    assert chosen[0] == shortest
    assert default[0] >= 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("timeit", "pass"),
        ("commands", "true", "true "),
        ("ab", "true", "true "),
        ("ab", "own:work", "own:work"),
        ("ab", "--fresh", "own:work", "own:work"),
        ("run", "own:work"),
    ],
    ids=" ".join,
)
def test_each_verb_that_measures_takes_a_detector(cli, store, tmp_path, words):
    (tmp_path / "own.py").write_text("def work():\n    sum(range(99))\n", encoding="utf-8")
    result = cli(words[0], *SHORT, *words[1:])
    assert result.exit_code in {0, 3, 4, 7}, result.output
    runs = Journal(store).runs()
    assert runs
    assert {Journal(store).load(run["run_id"]).options.detector for run in runs} == {"edm"}


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--paired",)])
def test_files_are_compared_by_the_detector_that_is_asked_for(cli, tmp_path, more):
    rng = np.random.default_rng(5)
    levels = np.repeat([1.5, 1.0, 1.2], [60, 900, 40])
    paths = [tmp_path / name for name in ("old.csv", "new.csv")]
    for path in paths:
        np.savetxt(path, rng.normal(levels, 0.05), header="time", comments="")
    words = ("compare", *paths, "--column", "time", "--unit", "s", "--json", *more)
    usual, published = (
        json.loads(cli(*words, *detector).stdout)["comparison"]["ratio"]
        for detector in ((), ("--detector", "edm"))
    )
    assert published != usual
    assert published["value"] == pytest.approx(1.0, rel=0.02)
