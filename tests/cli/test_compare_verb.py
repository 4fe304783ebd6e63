"""compare: better, worse, equivalent, or undecided; and places for more than two."""

import importlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from shared_cases import SyntheticJob

import benchrigor as br
from benchrigor.model import Interference, Metric
from benchrigor.session import Session
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload

TIME = Metric(name="time", unit="s")


def readings(mean, *, seed, n=1000):
    return np.random.default_rng(seed).normal(mean, 0.0005, n)


@pytest.fixture
def files(series):
    """Files of single series, in seconds."""
    means = {"old": 0.01, "same": 0.01, "slow": 0.0105, "fast": 0.0095}
    for seed, (name, mean) in enumerate(means.items()):
        series(f"{name}.csv", readings(mean, seed=seed))


@pytest.fixture
def found(told):
    """Return what a comparison found, for programs."""
    return lambda *words: told("compare", *words)["comparison"]


@pytest.fixture
def runs(keep):
    """Keep a run of restarted rounds; return its id."""

    def kept(mean, seed, *, host=None, **given):
        record = restarted(mean, seed, **given)
        if host is not None:
            record = replace(record, provenance=replace(record.provenance, host=host))
        return keep(record)

    return kept


@cache
def restarted(mean, seed, **given):
    """Return a run of restarted rounds; as many tests want the same one."""
    clock = FakeClock()
    options = br.Options(
        **{"target": 1e-9, "max_rounds": 20, "rounds": "restarted", "budget_s": 60.0, **given}
    )
    workload = SyntheticWorkload(
        mean=mean,
        cv=0.1,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=True,
        between_cv=0.005,
        seed=seed,
        clock=clock,
    )
    return Session(options, name=f"run {seed}", seed=seed, clock=clock).run(workload)


@pytest.fixture
def by_round(keep):
    """Keep runs that gave one reading a round; return their ids."""

    def kept(*sides, metric=TIME, kind="command"):
        ids = []
        for values in sides:
            options = br.Options(target=1e-9, max_rounds=len(values))
            session = Session(options, (metric,), name="r", seed=1, subject={"kind": kind})
            for value in values:
                told = {metric.name: float(value)}
                session.tell(br.Round(plan=session.ask(), elapsed_ns=1, readings=told))
            ids.append(keep(session.result()))
        return ids

    return kept


# The verdict, and the exit code that tells it


@pytest.mark.parametrize(
    ("candidate", "words", "verdict", "codes"),
    [
        ("slow", (), "worse", (0, 7, 7, 0)),
        ("fast", (), "better", (0, 0, 0, 0)),
        ("same", (), "equivalent", (0, 0, 0, 0)),
        ("same", ("--margin", "0.1%"), "undecided", (0, 0, 3, 0)),
        ("slow", ("--margin", "10%"), "equivalent", (0, 0, 0, 0)),
        ("slow", ("--direction", "higher"), "better", (0, 0, 0, 0)),
        ("slow", ("--statistic", "p10"), "worse", (0, 7, 7, 0)),
        ("slow", ("--paired",), "worse", (7, 7, 7, 0)),
        ("same", ("--paired", "--margin", "0"), "undecided", (0, 0, 3, 0)),
    ],
)
def test_the_exit_code_tells_the_verdict(cli, files, found, candidate, words, verdict, codes):  # noqa: PLR0917
    words = ("old.csv", f"{candidate}.csv", "--unit", "s", *words)
    told = found(*words)
    assert (told["verdict"], told["readings_in"]) == (verdict, "s")
    assert (told["scope"] == "") is ("--paired" in words)
    failing = [(), *(("--fail-on", each) for each in ("worse", "undecided", "never"))]
    assert tuple(cli("compare", *words, *each).exit_code for each in failing) == codes


def test_files_are_estimated_as_analyze_does(files, told):
    document = told("compare", "old.csv", "slow.csv", "--confidence", "90%")
    for side, name in (("baseline", "old.csv"), ("candidate", "slow.csv")):
        (analysis,) = told("analyze", name, "--confidence", "90%")["analyses"]
        found = document["comparison"][side]
        assert {key: analysis["estimate"][key] for key in found} == found
        assert document[side]["source"] == name
    assert document["comparison"]["confidence"] == 0.9


def test_counts_and_outcomes_may_all_be_0_but_no_time_is(cli, series, found):
    rng = np.random.default_rng(1)
    series("zero.csv", np.zeros(100))
    series("some.csv", rng.poisson(5.0, 100))
    series("outcomes.csv", rng.integers(0, 2, 100))
    lower = ("zero.csv", "--direction", "lower", "--unit", "errors")
    for words in (("some.csv", *lower), ("some.csv", *lower, "--paired"), ("outcomes.csv", *lower)):
        told = found(*words)
        assert (told["verdict"], told["ratio"]["value"]) == ("better", 0.0)
    assert cli("analyze", "zero.csv", "--unit", "s").exit_code == 4
    assert cli("analyze", "zero.csv", "--unit", "errors").exit_code == 0


def test_an_interval_without_end_is_written(series, found):
    for name, seed in (("old", 1), ("new", 2)):
        values = np.random.default_rng(seed).lognormal(0.0, 0.05, 20)
        values[7] *= 100.0 if name == "old" else 1.0
        series(f"{name}.csv", values)
    told = found("old.csv", "new.csv", "--paired")
    assert (told["verdict"], told["ratio"]["high"]) == ("undecided", "inf")
    assert told["median_ratio"]["low"] < 1.0 < told["median_ratio"]["high"]
    assert "few-pairs-carry" in {each["code"] for each in told["notices"]}


# Stored runs


def test_rounds_of_restarted_runs_count_one_by_one(kept, runs, found):
    old, new = runs(0.001, 1), runs(0.00104, 2)
    told = found(old[:6], new[:6])
    assert "this-process-only" not in {each["code"] for each in told["notices"]}
    sides = [[each.unit_readings["time"] for each in record.rounds] for record in kept()[::-1]]
    expected = br.stats.compare(*sides, trim=True).ratio
    width = expected.half_width
    assert told["ratio"]["value"] == pytest.approx(expected.value, abs=0.3 * width)
    assert told["ratio"]["high"] - told["ratio"]["low"] == pytest.approx(2.0 * width, rel=0.3)


def test_commands_that_run_once_a_round_are_compared_as_welch_does(by_round, found):
    rng = np.random.default_rng(3)
    sides = rng.normal(0.1, 0.01, 12), rng.normal(0.11, 0.02, 15)
    told = found(*by_round(*sides))
    assert told["p_value"] == pytest.approx(stats.ttest_ind(*sides, equal_var=False).pvalue)
    assert (told["unit"], told["baseline"]["method"]) == ("invocation", "long-run-variance")
    for kind, is_said in (("command", False), ("mine", True)):
        notices = found(*by_round(*sides, kind=kind))["notices"]
        assert ("this-process-only" in {each["code"] for each in notices}) is is_said


def test_the_metric_of_the_runs_says_which_way_is_better_and_how_it_is_averaged(by_round, found):
    rate = Metric(name="rate", unit="B/s", direction="higher", averaging="harmonic")
    rng = np.random.default_rng(1)
    sides = [rng.uniform(*ends, 200) for ends in ((2.0, 18.0), (5.0, 15.0))]
    ids = by_round(*sides, metric=rate)
    expected = stats.hmean(sides[1]) / stats.hmean(sides[0])
    assert found(*ids)["ratio"]["value"] == pytest.approx(expected, rel=0.02)
    assert expected > 1.1
    assert found(*ids)["verdict"] == "better"
    assert found(*ids, "--direction", "lower")["verdict"] == "worse"


def test_runs_are_compared_by_what_they_were_measured_for_or_is_asked_for(cli, runs, found):
    (old, new), mean = (runs(0.001, seed, statistic="median") for seed in (1, 2)), runs(0.001, 1)
    assert found(old, new)["statistic"] == "median"
    assert found(old, new, "--statistic", "p10")["statistic"] == "p10"
    assert cli("compare", mean, new).exit_code == 2
    assert found(mean, new, "--statistic", "mean")["statistic"] == "mean"


def test_a_run_is_compared_with_a_file_and_a_saved_record_is_a_run(runs, files, found):
    old, new = runs(0.001, 1), runs(0.00104, 2)
    told = found(old, "old.csv")
    assert (told["verdict"], told["readings_in"]) == ("worse", "s")
    restarted(0.001, 1).save("old.json")
    assert found("old.json", new)["ratio"] == found(old, new)["ratio"]


def test_other_machines_are_named_and_can_be_refused(cli, runs, told):
    here, there, again = (
        runs(0.001, seed, host=host) for seed, host in enumerate(("alpha", "beta", "alpha"), 1)
    )
    document = told("compare", here, there)
    assert [each for each in document["warnings"] if "alpha, beta" in each]
    assert (document["baseline"]["host"], document["candidate"]["host"]) == ("alpha", "beta")
    alike = told("compare", here, again)["warnings"]
    assert len(alike) == len(document["warnings"]) - 1
    for sides, code in (((here, there), 8), ((here, again), 0), ((here, again, there), 8)):
        assert cli("compare", "--same-machine", "--fail-on", "never", *sides).exit_code == code


def test_a_side_with_much_interference_is_named_with_its_light(told):
    given = dict.fromkeys(("percent", "probability_high", "unclustered_percent"), 0.0)
    given |= {"continuous_percent": None, "above_median_percent": 0.0, "flagged_percent": 0.0}
    for name, lost in (("green", 2.0), ("red", 31.0)):
        found = Interference(**given, light=name, measured_percent=lost, n=99, duration_s=1.0)
        replace(restarted(0.001, 1), name=name, run_id=name, interference=found).save(
            f"{name}.json"
        )
    *_, said = told("compare", "green.json", "red.json")["warnings"]
    assert "31.0%" in said
    assert "disturbed-run" in said


def test_metrics_of_other_units_are_refused(cli, by_round):
    def of(name, unit):
        return by_round(readings(0.01, seed=1, n=40), metric=Metric(name=name, unit=unit))[0]

    assert cli("compare", of("x", "s"), of("x", "B")).exit_code == 8


# What cannot be compared


OLD, NEW = (
    "".join(f"BenchmarkSort-8 10 {mean}.{tenth} ns/op\n" for tenth in range(5)) for mean in (30, 60)
)
PARTS = {  # of one file: two results of one name, columns, and lists in JSON
    "go.txt": (f"cpu: A\n{OLD}cpu: B\n{NEW}", "BenchmarkSort-8 (cpu=A)", "BenchmarkSort-8 (cpu=B)"),
    "hyperfine.json": (
        '{"results": [{"command": "sort", "times": [3, 3.1, 3.05, 3.02, 3.04]}, '
        '{"command": "sort", "times": [6, 6.1, 6.05, 6.02, 6.04]}]}',
        *("sort", "sort #2"),
    ),
    "table.csv": ("a,b\n3,6\n3.1,6.1\n3.05,6.05\n3.02,6.02\n3.04,6.04\n", "a", "b"),
    "runs.json": (
        '{"runs": [{"times": [3, 3.1, 3.05, 3.02]}, {"times": [6, 6.1, 6.05, 6.02]}]}',
        *("runs.0.times", "runs.1.times"),
    ),
}


@pytest.mark.parametrize("file", PARTS)
def test_two_columns_or_benchmarks_of_one_file_are_compared(cli, strict, tmp_path, file):
    text, *names = PARTS[file]
    (tmp_path / file).write_text(text)
    columns = ("--column", names[0], "--column", names[1])
    for sources in ((file,), (file, file)):
        told = strict(cli("compare", *sources, *columns, "--json").stdout)
        assert told["comparison"]["ratio"]["value"] == pytest.approx(2.0, abs=0.05)
        sides = (told["baseline"], told["candidate"])
        assert [side["source"] for side in sides] == [file, file]
        assert [side["name"] for side in sides] == names
    assert cli("compare", file, *columns[:2]).exit_code == 2
    assert cli("plan", file, *columns[2:]).exit_code == 0


def test_a_run_without_readings_ends_with_4_and_an_id_without_a_run_with_6(cli, keep, runs):
    plan = (session := Session(metrics=(TIME,), name="silent", seed=1)).ask()
    session.tell(br.Round(plan=plan, elapsed_ns=1, readings={}))
    silent, other = keep(session.result()), runs(0.001, 1)
    assert cli("compare", silent, other).exit_code == 4
    assert cli("show", silent, "--plot", "silent.png").exit_code == 4
    assert cli("compare", other, "g" * 3).exit_code == 2
    assert cli("compare", "abcdefabcdef", "abcdef").exit_code == 6


# More than two


def test_more_than_two_are_ranked(cli, files, told):
    words = ("slow.csv", "same.csv", "old.csv", "fast.csv", "--unit", "s")
    assert max(map(len, cli("compare", *words).stdout.splitlines())) <= 79
    for direction, first in (("lower", "fast.csv"), ("higher", "slow.csv")):
        document = told("compare", *words, "--direction", direction)
        assert [each["place"] for each in document["places"]] == [1, 2, 2, 4]
        assert document["places"][0]["name"] == first
        assert len(document["sides"]) == 4


@pytest.fixture
def speeds(keep):
    """Keep runs of various work; return their ids."""

    def kept(*truths, kind="command", cv=0.03):
        ids = []
        for seed, speed in enumerate(truths):
            clock = FakeClock()
            job = SyntheticJob(speed=speed, overhead_s=0.1, cv=cv, seed=seed, clock=clock)
            options = br.Options(work=(0, 10**9), target=0.001, max_rounds=50, budget_s=60.0)
            about = {"name": f"job {seed}", "subject": {"kind": kind}}
            ids.append(keep(Session(options, **about, seed=seed, clock=clock).run(job)))
        return ids

    return kept


def test_speeds_are_compared_and_ranked_and_more_is_better(cli, speeds, found, told):
    ids = speeds(1e6, 1.5e6)
    pair = found(*ids)
    assert (pair["verdict"], pair["unit"]) == ("better", "round")
    assert pair["ratio"]["low"] < 1.5 < pair["ratio"]["high"]
    assert "this-process-only" not in {each["code"] for each in pair["notices"]}
    assert cli("compare", *ids, "--statistic", "median").exit_code == 2
    ranked = told("compare", *speeds(1e6, 3e6, 2e6))["places"]
    assert [each["name"].partition(" (")[0] for each in ranked] == ["job 1", "job 2", "job 0"]
    notices = found(*speeds(1e6, 1e6, kind="target"))["notices"]
    assert "this-process-only" in {each["code"] for each in notices}


# What the benchmark is


@pytest.mark.parametrize("how", ["--in-process", "--fresh"])
def test_a_run_keeps_what_the_source_of_its_function_says(told, module, how):
    def ran(text):
        module("job", text)
        importlib.invalidate_caches()
        words = ("--budget", "30", "--max-rounds", "1", how)
        return told("run", *words, "job:work")["provenance"]["function"]

    first = ran("def part():\n    return 1\n\ndef work():\n    return part()\n")
    called = ran("def part():\n    return 22\n\ndef work():  # commented\n    return part()\n")
    changed = ran("def part():\n    return 1\n\ndef work():\n    return part() + 333\n")
    assert first == called
    assert first != changed
