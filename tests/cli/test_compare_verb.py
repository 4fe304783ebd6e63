"""compare: better, worse, equivalent, or undecided; and places for more than two."""

import importlib
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from shared_cases import SyntheticJob

import benchrigor as br
from benchrigor.model import Interference, Metric
from benchrigor.model.interference import Light
from benchrigor.session import Session
from benchrigor.stats.comparison.two_sample import compare
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload


def readings(mean, *, seed, n=1000):
    return np.random.default_rng(seed).normal(mean, 0.0005, n)


@pytest.fixture
def files(tmp_path):
    """CSV files of single series, in seconds."""
    means = {"old": 0.01, "same": 0.01, "slow": 0.0105, "fast": 0.0095, "short": 0.01}
    sizes = {"short": 40}
    for seed, (name, mean) in enumerate(means.items()):
        some = readings(mean, seed=seed, n=sizes.get(name, 1000))
        lines = "".join(f"{each:.8f}\n" for each in some)
        (tmp_path / f"{name}.csv").write_text(f"time\n{lines}")


@pytest.fixture
def keep(store):
    """Keep a run of restarted rounds; return its id."""
    journal = Journal(store)

    def kept(mean, seed, *, host=None, **given):
        record = restarted(mean, seed, **given)
        if host is not None:
            record = replace(record, provenance=replace(record.provenance, host=host))
        return keep_record(journal, record)

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


def keep_record(journal, record):
    run_id = journal.begin(record)
    for each in record.rounds:
        journal.append(run_id, each)
    journal.finish(run_id, record)
    return run_id


def by_round(values, metric, *, kind="command", name="by round"):
    """A run that gave one reading a round."""
    options = br.Options(target=1e-9, max_rounds=len(values))
    session = Session(options, (metric,), name=name, seed=1, subject={"kind": kind})
    for value in values:
        session.tell(
            br.Round(plan=session.ask(), elapsed_ns=1, readings={metric.name: float(value)})
        )
    return session.result()


# The verdict, and the exit code that tells it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "words", "verdict", "code"),
    [
        ("slow", (), "worse", 0),
        ("slow", ("--fail-on", "worse"), "worse", 7),
        ("fast", (), "better", 0),
        ("same", (), "equivalent", 0),
        ("same", ("--margin", "0.1%"), "undecided", 0),
        ("slow", ("--margin", "10%"), "equivalent", 0),
        ("slow", ("--direction", "higher"), "better", 0),
        ("fast", ("--direction", "higher", "--fail-on", "undecided"), "worse", 7),
        ("slow", ("--statistic", "p10", "--fail-on", "worse"), "worse", 7),
        ("slow", ("--paired",), "worse", 7),
        ("same", ("--paired", "--margin", "0"), "undecided", 0),
    ],
)
def test_the_exit_code_tells_the_verdict(  # noqa: PLR0917  # fixtures beside four values
    cli, files, strict, candidate, words, verdict, code
):
    result = cli("compare", "old.csv", f"{candidate}.csv", "--unit", "s", *words)
    assert result.exit_code == code, result.stderr
    assert f"  verdict    {verdict}: " in result.stdout
    words = ("--unit", "s", *words)
    document = strict(cli("compare", "old.csv", f"{candidate}.csv", *words, "--json").stdout)
    assert document["comparison"]["verdict"] == verdict
    assert document["comparison"]["readings_in"] == "s"
    is_in_turn = "--paired" in words
    assert (document["comparison"]["scope"] == "") is is_in_turn


@pytest.mark.slow
def test_files_are_estimated_as_analyze_does(cli, files, strict):
    words = ("--confidence", "90%", "--json")
    document = strict(cli("compare", "old.csv", "slow.csv", *words).stdout)
    for side, name in (("baseline", "old.csv"), ("candidate", "slow.csv")):
        analysis = strict(cli("analyze", name, *words).stdout)["analyses"][0]
        found = document["comparison"][side]
        for key in ("value", "low", "high", "n"):
            assert found[key] == analysis["estimate"][key]
        assert document[side]["source"] == name
    assert document["comparison"]["confidence"] == 0.9


def test_paired_files_cancel_what_they_share(cli, tmp_path, strict):
    drift = 0.01 * (1.0 + 0.3 * np.sin(np.arange(1000) / 50.0))
    for name, factor, seed in (("old", 1.0, 1), ("new", 1.03, 2)):
        values = factor * drift + np.random.default_rng(seed).normal(0.0, 0.0002, 1000)
        np.savetxt(tmp_path / f"{name}.csv", values)
    result = cli("compare", "old.csv", "new.csv", "--paired", "--unit", "s", "--json")
    paired = strict(result.stdout)["comparison"]
    assert result.exit_code == 7, result.stderr
    assert paired["paired"] is True
    assert paired["ratio"]["value"] == pytest.approx(1.03, abs=0.01)


@pytest.fixture
def zero(tmp_path):
    np.savetxt(tmp_path / "zero.csv", np.zeros(100))
    np.savetxt(tmp_path / "some.csv", np.random.default_rng(1).poisson(5.0, 100))


@pytest.mark.parametrize("options", [(), ("--paired",)])
def test_counts_may_all_be_0(cli, zero, options):
    words = ("--unit", "errors", "--direction", "lower", *options)
    result = cli("compare", "some.csv", "zero.csv", *words)
    assert result.exit_code == 0
    assert "100% lower" in result.stdout


def test_outcomes_may_all_be_failures(cli, zero, tmp_path):
    np.savetxt(tmp_path / "outcomes.csv", np.random.default_rng(1).integers(0, 2, 100))
    result = cli("compare", "outcomes.csv", "zero.csv", "--direction", "lower")
    assert result.exit_code == 0
    assert "better" in result.stdout


def test_a_time_that_is_all_0_has_no_estimate(cli, zero, strict):
    result = cli("analyze", "zero.csv", "--unit", "s", "--json")
    assert result.exit_code == 4
    assert strict(result.stdout)["analyses"][0]["estimate"] is None
    assert cli("analyze", "zero.csv", "--unit", "errors").exit_code == 0


def test_an_interval_without_end_is_shown_and_written(cli, tmp_path, strict):
    for name, seed in (("old", 1), ("new", 2)):
        values = np.random.default_rng(seed).lognormal(0.0, 0.05, 20)
        values[7] *= 100.0 if name == "old" else 1.0
        np.savetxt(tmp_path / f"{name}.csv", values)
    result = cli("compare", "old.csv", "new.csv", "--paired", "--json")
    assert result.exit_code == 0
    found = strict(result.stdout)["comparison"]
    assert found["verdict"] == "undecided"
    assert found["ratio"]["high"] == "inf"
    assert found["median_ratio"]["low"] < 1.0 < found["median_ratio"]["high"]
    shown = " ".join(cli("compare", "old.csv", "new.csv", "--paired", "--details").stdout.split())
    assert "[few-pairs-carry]" in shown


def test_a_warm_up_is_left_out(cli, files, tmp_path, strict):
    values = readings(0.01, seed=9)
    values[:100] += 0.02
    np.savetxt(tmp_path / "cold.csv", values)
    document = strict(cli("compare", "old.csv", "cold.csv", "--json").stdout)
    assert document["comparison"]["ratio"]["value"] == pytest.approx(1.0, abs=0.015)


# Stored runs


@pytest.mark.slow
def test_rounds_of_restarted_runs_count_one_by_one(cli, store, keep, strict):
    old, new = keep(0.001, 1), keep(0.00104, 2)
    result = cli("compare", old[:6], new[:6], "--fail-on", "worse")
    assert result.exit_code == 7, result.stdout + result.stderr
    said = " ".join(result.stdout.split())
    assert "20 vs 20 invocations" in said
    assert f"run 1 ({old}): " in said
    assert "this-process-only" not in said
    found = strict(cli("compare", old, new, "--json").stdout)["comparison"]
    sides = [
        [each.unit_readings["time"] for each in Journal(store).load(x).rounds] for x in (old, new)
    ]
    expected = compare(*sides, trim=True).ratio
    width = expected.half_width
    assert found["ratio"]["value"] == pytest.approx(expected.value, abs=0.3 * width)
    assert found["ratio"]["high"] - found["ratio"]["low"] == pytest.approx(2.0 * width, rel=0.3)


def test_commands_that_run_once_a_round_are_compared_as_welch_does(cli, store, strict):
    rng = np.random.default_rng(3)
    sides = rng.normal(0.1, 0.01, 12), rng.normal(0.11, 0.02, 15)
    journal, time = Journal(store), Metric(name="time", unit="s")
    ids = [keep_record(journal, by_round(each, time, name=f"{each.size}")) for each in sides]
    result = cli("compare", *ids, "--json")
    document = strict(result.stdout)
    found = document["comparison"]
    assert found["p_value"] == pytest.approx(stats.ttest_ind(*sides, equal_var=False).pvalue)
    assert found["unit"] == "invocation"
    assert found["baseline"]["method"] == "long-run-variance"
    assert "this-process-only" not in [each["code"] for each in found["notices"]]
    assert document["baseline"]["run_id"] == ids[0]


def test_readings_of_other_rounds_speak_for_their_process(cli, store):
    journal, time = Journal(store), Metric(name="time", unit="s")
    ids = [
        keep_record(journal, by_round(readings(0.01, seed=seed, n=40), time, kind="mine"))
        for seed in (1, 2)
    ]
    assert "[this-process-only]" in cli("compare", *ids, "--details").stdout


@pytest.mark.slow
def test_the_metric_of_the_runs_says_which_way_is_better(cli, store):
    journal, rate = Journal(store), Metric(name="rate", unit="B/s", direction="higher")
    ids = [
        keep_record(journal, by_round(readings(mean, seed=1, n=40), rate)) for mean in (0.01, 0.02)
    ]
    assert cli("compare", *ids).exit_code == 0
    assert "verdict    better: " in cli("compare", *ids).stdout
    lower = ("compare", *ids, "--direction", "lower")
    assert (cli(*lower).exit_code, cli(*lower, "--fail-on", "worse").exit_code) == (0, 7)


@pytest.mark.slow
def test_rates_over_equal_work_are_compared_by_their_harmonic_means(cli, store, strict):
    rate = Metric(name="rate", unit="B/s", direction="higher", averaging="harmonic")
    rng, journal = np.random.default_rng(1), Journal(store)
    sides = [rng.uniform(*ends, 200) for ends in ((5.0, 15.0), (2.0, 18.0))]
    ids = [keep_record(journal, by_round(each, rate)) for each in sides]
    found = strict(cli("compare", *ids, "--json").stdout)["comparison"]
    expected = stats.hmean(sides[1]) / stats.hmean(sides[0])
    assert found["ratio"]["value"] == pytest.approx(expected, rel=0.02)
    assert expected < 0.9


@pytest.mark.slow
def test_runs_are_compared_by_what_they_were_measured_for(cli, keep, strict):
    old, new = (keep(0.001, seed, statistic="median") for seed in (1, 2))
    assert strict(cli("compare", old, new, "--json").stdout)["comparison"]["statistic"] == "median"
    chosen = strict(cli("compare", old, new, "--statistic", "p10", "--json").stdout)
    assert chosen["comparison"]["statistic"] == "p10"


@pytest.mark.slow
def test_a_run_is_compared_with_a_file_in_the_unit_of_the_run(cli, keep, files):
    result = cli("compare", keep(0.001, 1), "old.csv", "--fail-on", "worse")
    assert result.exit_code == 7
    assert " ms [" in next(x for x in result.stdout.splitlines() if "old.csv: " in x)


@pytest.mark.slow
def test_a_saved_record_is_a_run(cli, keep, tmp_path):
    old, new = keep(0.001, 1), keep(0.00104, 2)
    (tmp_path / "old.json").write_text(cli("show", old, "--json").stdout)
    assert cli("compare", "old.json", new).stdout == cli("compare", old, new).stdout


@pytest.mark.slow
def test_other_machines_are_named(cli, keep, strict):
    here, there = keep(0.001, 1, host="alpha"), keep(0.001, 2, host="beta")
    document = strict(cli("compare", here, there, "--json").stdout)
    unpaced, *short, machines = document["warnings"]
    assert "no-common-pace" in unpaced
    assert "alpha, beta" in machines
    assert len(short) == 2
    assert (document["baseline"]["host"], document["candidate"]["host"]) == ("alpha", "beta")
    again = keep(0.001, 3, host="alpha")
    assert len(strict(cli("compare", here, again, "--json").stdout)["warnings"]) == 3


@pytest.mark.slow
def test_a_side_with_much_interference_is_named_with_its_light(cli, keep, tmp_path, strict):
    calm = br.RunRecord.from_dict(strict(cli("show", keep(0.001, 1), "--json").stdout))
    given = {"percent": 0.0, "probability_high": 0.0, "unclustered_percent": 0.0}
    given |= {"continuous_percent": None, "above_median_percent": 0.0, "flagged_percent": 0.0}
    for name, light, lost in (("calm", Light.GREEN, 2.0), ("red", Light.RED, 31.0)):
        found = Interference(**given, light=light, measured_percent=lost, n=99, duration_s=1.0)
        replace(calm, name=name, run_id=name, interference=found).save(tmp_path / f"{name}.json")
    words = "compare", "calm.json", "red.json"
    *_, said = strict(cli(*words, "--json").stdout)["warnings"]
    assert "31.0%" in said
    assert "disturbed-run" in said
    assert cli(*words, "--details").stdout.count("[disturbed-run]") == 1


def test_metrics_of_other_names_are_named(cli, store):
    journal = Journal(store)
    ids = [
        keep_record(journal, by_round(readings(0.01, seed=1, n=40), Metric(name=name, unit="s")))
        for name in ("time", "latency")
    ]
    assert "latency, time" in cli("compare", *ids, "--details").stdout


# What cannot be compared


@pytest.mark.slow
def test_units_that_differ_are_refused(cli, store, files):
    journal = Journal(store)
    ids = [
        keep_record(
            journal, by_round(readings(0.01, seed=1, n=40), Metric(name="x", unit=unit), name=unit)
        )
        for unit in ("s", "B")
    ]
    result = cli("compare", *ids)
    assert result.exit_code == 8
    assert f"units differ: s ({ids[0]}) in s, B ({ids[1]}) in B" in result.stderr
    assert "units differ" in cli("compare", ids[0], "old.csv", "--unit", "ms").stderr


@pytest.mark.slow
def test_runs_measured_for_different_things_ask_which_is_meant(cli, keep):
    mean, median = keep(0.001, 1), keep(0.001, 2, statistic="median")
    result = cli("compare", mean, median)
    assert result.exit_code == 2
    assert cli("compare", mean, median, "--statistic", "mean").exit_code in {0, 3, 7}


OLD, NEW = (
    "".join(f"BenchmarkSort-8 10 {mean}.{tenth} ns/op\n" for tenth in range(5)) for mean in (30, 60)
)
PARTS = {  # of one file: two results of one name, columns, and lists in JSON
    "go.txt": f"cpu: A\n{OLD}cpu: B\n{NEW}",
    "packages.txt": f"pkg: p\n{OLD}pkg: q\n{NEW}",
    "hyperfine.json": '{"results": [{"command": "sort", "times": [3, 3.1, 3.05, 3.02, 3.04]}, '
    '{"command": "sort", "times": [6, 6.1, 6.05, 6.02, 6.04]}]}',
    "table.csv": "before,after\n3,6\n3.1,6.1\n3.05,6.05\n3.02,6.02\n3.04,6.04\n",
    "runs.json": '{"runs": [{"times": [3, 3.1, 3.05, 3.02]}, {"times": [6, 6.1, 6.05, 6.02]}]}',
}


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("go.txt", ["BenchmarkSort-8 (cpu=A)", "BenchmarkSort-8 (cpu=B)"]),
        ("packages.txt", ["p.BenchmarkSort-8", "q.BenchmarkSort-8"]),
        ("hyperfine.json", ["sort", "sort #2"]),
        ("table.csv", ["before", "after"]),
        ("runs.json", ["runs.0.times", "runs.1.times"]),
    ],
)
def test_two_columns_or_benchmarks_of_one_file_are_compared(cli, strict, tmp_path, file, names):
    (tmp_path / file).write_text(PARTS[file])
    columns = ("--column", names[0], "--column", names[1])
    for sources in ((file,), (file, file)):
        told = strict(cli("compare", *sources, *columns, "--json").stdout)
        assert told["comparison"]["ratio"]["value"] == pytest.approx(2.0, abs=0.05)
        sides = (told["baseline"], told["candidate"])
        assert [side["source"] for side in sides] == [file, file]
        assert [side["name"] for side in sides] == names
    alone = cli("compare", file, *columns[:2])
    assert alone.exit_code == 2
    assert cli("plan", file, *columns[2:]).exit_code == 0


def test_a_side_without_a_number_is_named_and_ends_with_4(cli, files, tmp_path):
    (tmp_path / "one.csv").write_text("5\n")
    (tmp_path / "two.csv").write_text("6\n")
    result = cli("compare", "old.csv", "one.csv")
    assert result.exit_code == 4
    assert cli("compare", "one.csv", "two.csv", "--paired").exit_code == 4


@pytest.mark.slow
def test_a_run_without_readings_ends_with_4(cli, keep, store, tmp_path):
    metric = Metric(name="time", unit="s")
    plan = (session := Session(metrics=(metric,), name="silent", seed=1)).ask()
    session.tell(br.Round(plan=plan, elapsed_ns=1, readings={}))
    silent = keep_record(Journal(store), session.result())
    compared = cli("compare", silent, keep(0.001, 1))
    assert compared.exit_code == 4
    shown = cli("show", silent, "--plot", str(tmp_path / "silent.png"))
    assert shown.exit_code == 4


@pytest.mark.slow
def test_an_id_without_a_run_ends_with_6(cli, keep):
    assert cli("compare", keep(0.001, 1), "g" * 3).exit_code == 2
    assert cli("compare", "abcdefabcdef", "abcdef").exit_code == 6


# More than two


@pytest.mark.slow
def test_more_than_two_are_ranked(cli, files, strict):
    words = ("compare", "slow.csv", "same.csv", "old.csv", "fast.csv", "--unit", "s")
    result = cli(*words)
    assert result.exit_code == 0, result.stderr
    rows = [line.split()[:2] for line in result.stdout.splitlines() if "." in line[:6]]
    assert rows[0] == ["1.", "fast.csv"]
    assert {tuple(row) for row in rows[1:3]} == {("2.", "old.csv"), ("2.", "same.csv")}
    assert rows[3] == ["4.", "slow.csv"]
    assert "[this-process-only]" in cli(*words, "--details").stdout
    assert max(map(len, result.stdout.splitlines())) <= 79
    document = strict(cli(*words, "--direction", "higher", "--json").stdout)
    assert [each["place"] for each in document["places"]] == [1, 2, 2, 4]
    assert document["places"][0]["name"] == "slow.csv"
    assert len(document["sides"]) == 4


@pytest.mark.slow
def test_runs_are_ranked_with_what_weakens_each(cli, keep):
    ids = [keep(mean, seed, max_rounds=5) for seed, mean in enumerate((0.001, 0.0011, 0.0012))]
    result = cli("compare", *ids, "--details")
    assert result.exit_code == 0, result.stderr
    assert f"1.  run 0 ({ids[0]})" in result.stdout
    assert result.stdout.count("[few-invocations]") == 3
    assert "[this-process-only]" not in result.stdout


@pytest.fixture
def speeds(store):
    """Keep runs of various work; return their ids."""
    journal = Journal(store)

    def kept(*truths, kind="command", cv=0.03):
        ids = []
        for seed, speed in enumerate(truths):
            clock = FakeClock()
            job = SyntheticJob(speed=speed, overhead_s=0.1, cv=cv, seed=seed, clock=clock)
            options = br.Options(work=(0, 10**9), target=0.001, max_rounds=50, budget_s=60.0)
            session = Session(
                options, name=f"job {seed}", subject={"kind": kind}, seed=seed, clock=clock
            )
            ids.append(keep_record(journal, session.run(job)))
        return ids

    return kept


@pytest.mark.slow
def test_speeds_are_compared_and_more_is_better(cli, speeds, strict):
    ids = speeds(1e6, 1.5e6)
    result = cli("compare", *ids)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "  verdict    better: " in result.stdout
    assert "rounds" in result.stdout
    assert "this-process-only" not in result.stdout
    found = strict(cli("compare", *ids, "--json").stdout)["comparison"]
    assert found["ratio"]["low"] < 1.5 < found["ratio"]["high"]
    assert found["unit"] == "round"


@pytest.mark.slow
def test_speeds_of_functions_speak_for_their_process(cli, speeds):
    assert "one process" in cli("compare", *speeds(1e6, 1e6, kind="target")).stdout


@pytest.mark.slow
def test_a_ratio_of_speeds_keeps_the_asymmetry_of_their_intervals(cli, speeds, strict):
    ids = speeds(1e6, 1e6, cv=0.16)
    document = strict(cli("compare", *ids, "--json").stdout)["comparison"]
    ratio, old, new = (document[name] for name in ("ratio", "baseline", "candidate"))
    assert old["high"] - old["value"] > 1.05 * (old["value"] - old["low"])
    down, up = ratio["value"] - ratio["low"], ratio["high"] - ratio["value"]
    # MOVER: the square of each reach is the sum of the squares of those that lead there.
    expected = ratio["value"] * np.hypot(
        1 - new["low"] / new["value"], old["high"] / old["value"] - 1
    )
    assert down == pytest.approx(expected, rel=0.25)
    assert up > down


@pytest.mark.slow
def test_a_speed_has_no_other_statistic(cli, speeds):
    result = cli("compare", *speeds(1e6, 1e6), "--statistic", "median")
    assert result.exit_code == 2


@pytest.mark.slow
def test_speeds_are_ranked(cli, speeds):
    result = cli("compare", *speeds(1e6, 3e6, 2e6))
    assert result.exit_code == 0
    names = [line.split()[1:3] for line in result.stdout.splitlines() if "." in line[:6]]
    assert [" ".join(each) for each in names[:3]] == ["job 1", "job 2", "job 0"], result.stdout


# What the benchmark is


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--in-process",), ("--fresh",)])
def test_a_run_keeps_what_the_source_of_its_function_says(cli, tmp_path, strict, monkeypatch, how):
    def ran(text):
        monkeypatch.delitem(sys.modules, "job", raising=False)
        (tmp_path / "job.py").write_text(text)
        importlib.invalidate_caches()
        words = ("--budget", "30", "--max-rounds", "1", "--json", *how)
        return strict(cli("run", *words, "job:work").stdout)["provenance"]["function"]

    first = ran("def part():\n    return 1\n\ndef work():\n    return part()\n")
    called = ran("def part():\n    return 22\n\ndef work():  # commented\n    return part()\n")
    changed = ran("def part():\n    return 1\n\ndef work():\n    return part() + 333\n")
    assert first == called
    assert first != changed


# What is failed on


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "words", "fail_on", "code"),
    [
        ("slow", (), "worse", 7),
        ("slow", (), "undecided", 7),
        ("slow", (), "never", 0),
        ("same", ("--margin", "0.1%"), "worse", 0),
        ("same", ("--margin", "0.1%"), "undecided", 3),
        ("same", ("--margin", "0.1%"), "never", 0),
        ("fast", (), "undecided", 0),
        ("slow", ("--paired",), "never", 0),
        ("same", ("--paired", "--margin", "0"), "undecided", 3),
        ("same", ("--paired", "--margin", "0"), "worse", 0),
    ],
)
def test_which_verdicts_fail_can_be_chosen(  # noqa: PLR0917  # fixtures beside four values
    cli, files, candidate, words, fail_on, code
):
    sides = ("old.csv", f"{candidate}.csv", "--unit", "s")
    result = cli("compare", *sides, *words, "--fail-on", fail_on)
    assert result.exit_code == code, result.stderr
    assert "margin of" in result.stdout


@pytest.mark.slow
def test_runs_of_two_machines_can_be_refused(cli, keep, strict):
    here, there, again = (
        keep(0.001, seed, host=host) for seed, host in enumerate(("alpha", "beta", "alpha"))
    )
    refused = cli("compare", "--same-machine", "--fail-on", "never", "--json", here, there)
    assert refused.exit_code == 8
    error = strict(refused.stdout)["error"]
    assert error["type"] == "NotComparable"
    assert "alpha and" in error["message"]
    assert cli("compare", "--same-machine", here, again).exit_code == 0
    assert cli("compare", "--same-machine", here, again, there).exit_code == 8
