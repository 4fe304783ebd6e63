"""What becomes of all that a run of pytest measures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest

from benchrigor.model import Options
from benchrigor.pytest_plugin.suite import Suite
from benchrigor.session import Session
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, MemoryStore, SyntheticWorkload

BARE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark")
QUICK = (*BARE, "--bench-budget=0.1", "--bench-target=50%")
ADDING = """
    import pytest

    @pytest.mark.bench(group="sums", baseline=True)
    def test_few(bench):
        bench(sum, range(100))

    @pytest.mark.bench(group="sums", margin="5%")
    @pytest.mark.parametrize("n", [100, 3000])
    def test_more(bench, n):
        bench.extra_info["n"] = n
        bench(sum, range(n))
"""


def verdicts(lines, heading):
    """Return the verdicts of the family below a heading, by name."""
    rows = [line.split() for line in lines[lines.index(heading) + 1 :]]
    words = ("better", "worse", "equivalent", "undecided")
    return {row[0]: row[-1] for row in rows if row and row[-1] in words}


@cache
def simulated(name, mean, seed):
    """Simulate a run of a test; many tests want the same one."""
    clock = FakeClock()
    session = Session(
        Options(target=0.01),
        name=name,
        subject={"test": f"a.py::{name}"},
        seed=seed,
        store=MemoryStore(),  # what is stored says where it is from
        clock=clock,
    )
    return session.run(SyntheticWorkload(mean=mean, cv=0.05, seed=seed, clock=clock))


def measured(suite, name, mean, *, seed, group=None, baseline=False):
    """Add a simulated run of a test to a suite."""
    record = simulated(name, mean, seed)
    if suite.store is not None:
        run_id = suite.store.begin(replace(record, rounds=(), run_id=None))
        for each in record.rounds:
            suite.store.append(run_id, each)
        record = replace(record, run_id=run_id)
        suite.store.finish(run_id, record)
    bench = SimpleNamespace(
        name=name, fullname=f"a.py::{name}", group=group, baseline=baseline, margin=0.01
    )
    bench.param, bench.extra_info = None, {}
    suite.records.append((bench, record))


def suite_of(pytester, *options):
    return Suite(pytester.parseconfigure(*BARE, *options))


@pytest.mark.slow
def test_a_group_shows_changes_from_its_baseline(pytester):
    suite = suite_of(pytester)
    measured(suite, "test_few", 1e-3, seed=1, group="sums", baseline=True)
    measured(suite, "test_same", 1e-3, seed=2, group="sums")
    measured(suite, "test_many", 1.1e-3, seed=3, group="sums")
    measured(suite, "test_else", 2e-3, seed=4)
    assert not suite.finish()
    found = verdicts(suite.lines(), "group sums: change from test_few")
    assert found.keys() == {"test_same", "test_many"}
    assert found["test_many"] == "worse"
    assert found["test_same"] != "worse"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fail_on", "mean", "fails"),
    [("worse", 1.1e-3, True), ("worse", 1e-3, False), ("never", 1.1e-3, False)],
)
def test_what_became_worse_since_it_was_saved_fails_the_run(pytester, fail_on, mean, fails):
    before = suite_of(pytester, "--bench-save=before")
    measured(before, "test_work", 1e-3, seed=1)
    after = suite_of(pytester, "--bench-compare=before", f"--bench-fail-on={fail_on}")
    measured(after, "test_work", mean, seed=2)
    measured(after, "test_new", 1e-3, seed=3)
    assert after.finish() is fails
    lines = after.lines()
    assert ("The run fails: some are slower (--bench-fail-on worse)." in lines) is fails
    found = verdicts(lines, "against before")
    assert found.keys() == {"test_work"}
    assert (found["test_work"] == "worse") is (mean > 1e-3)
    assert "Not among those saved: test_new." in lines


@pytest.mark.slow
def test_tests_of_one_session_share_its_pace_so_that_their_mean_has_no_interval(pytester):
    tests = ("test_one", "test_two")
    before = suite_of(pytester, "--bench-save=before")
    for seed, name in enumerate(tests):
        measured(before, name, 1e-3, seed=seed)
    file = pytester.path / "out.json"
    after = suite_of(pytester, "--bench-compare=before", f"--bench-json={file}")
    for seed, name in enumerate(tests, start=10):
        measured(after, name, 0.9e-3, seed=seed)
    after.finish()
    (mean,) = (line for line in after.lines() if line.startswith("geometric mean"))
    assert "% less time (no interval: " in mean
    summary = json.loads(file.read_text())["against"]["summary"]
    assert (summary["low"], summary["high"]) == (0.0, "inf")


def test_columns_marks_and_options_are_explained_as_pytest_has_them(pytester):
    pytester.makepyfile("""
        import time

        def test_slow(bench):
            bench(time.sleep, 0.05)
            bench(time.sleep, 0.05)
    """)
    result = pytester.runpytest(*BARE, "--bench-budget=0.05")
    said = result.stdout.str()
    assert re.search(r"^! .*Allow more time \(--bench-budget\)", said, re.MULTILINE)
    assert re.search(r"^#2: the second ", said, re.MULTILINE)
    assert "(--budget)" not in said
    assert not re.search(r"^just now: ", said, re.MULTILINE)


@pytest.mark.slow
def test_satisfied_is_explained_where_a_run_was(pytester):
    suite = suite_of(pytester)
    measured(suite, "test_work", 1e-3, seed=1)
    (explained,) = (line for line in suite.lines() if line.startswith("ended: "))
    assert explained.startswith("ended: satisfied where ")
    assert "--bench-target" in explained
    bench, record = suite.records.pop()
    suite.records.append((bench, replace(record, decision=None)))
    assert not [line for line in suite.lines() if line.startswith("ended: ")]


@pytest.mark.slow
def test_the_newest_saved_run_counts_and_none_of_this_suite(pytester):
    before = suite_of(pytester, "--bench-save=it")
    measured(before, "test_work", 1e-3, seed=1)
    measured(before, "test_work", 2e-3, seed=2)
    now = suite_of(pytester, "--bench-save=it", "--bench-compare=it")
    measured(now, "test_work", 2e-3, seed=3)
    assert not now.finish()
    assert verdicts(now.lines(), "against it")["test_work"] != "better"


@pytest.mark.slow
@pytest.mark.parametrize(("margin", "hides"), [(0.01, False), (0.1, True)])
def test_a_comparison_that_hides_large_changes_names_the_way_out(pytester, margin, hides):
    before = suite_of(pytester, "--bench-save=it")
    measured(before, "test_work", 1e-3, seed=1)
    now = suite_of(pytester, "--bench-compare=it")
    measured(now, "test_work", 1e-3, seed=2)
    now.records[0][0].margin = margin  # no smaller change is visible
    now.finish()
    shown = " ".join(now.lines())
    advice = "unseen in test_work: measure both versions in turn with --bench-against REVISION"
    assert (advice in " ".join(shown.split())) is hides


@pytest.mark.slow
def test_runs_without_a_number_are_named_and_not_compared(pytester):
    before = suite_of(pytester, "--bench-save=it")
    measured(before, "test_work", 1e-3, seed=1)
    now = suite_of(pytester, "--bench-compare=it", "--bench-fail-on=undecided")
    measured(now, "test_work", 1e-3, seed=2)
    bench, record = now.records.pop()
    now.records.append((bench, replace(record, rounds=record.rounds[:1], analyses=())))
    assert now.finish()
    assert any(line.startswith("Not compared: test_work: ") for line in now.lines())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("collected", "options", "missing"),
    [
        (["a.py::test_work"], (), ["a.py::test_gone"]),
        (["b.py::test_else"], (), ["a.py::test_gone"]),  # a.py is no file
        (["a.py::test_work"], ("-k", "work"), []),
        (["a.py::test_work"], ("-m", "bench"), []),
        (["a.py::test_work"], ("a.py::test_work",), []),
    ],
)
def test_what_was_saved_and_is_not_measured_is_named_and_undecided(
    pytester, collected, options, missing
):
    before = suite_of(pytester, "--bench-save=it")
    for seed, name in enumerate(("test_old", "test_work", "test_gone", "test_work")):
        measured(before, name, 1e-3, seed=seed)
    (pytester.path / "b.py").touch()
    (pytester.path / "a.py").touch() if options else None
    now = suite_of(pytester, "--bench-compare=it", "--bench-fail-on=undecided", *options)
    measured(now, "test_work", 1e-3, seed=9)
    now.finish(collected)
    named = [line for line in now.lines() if line.startswith("Not among those measured: ")]
    assert named == [f"Not among those measured: {test}." for test in missing]
    worse = suite_of(pytester, "--bench-compare=it", "--bench-fail-on=worse", *options)
    measured(worse, "test_work", 1e-3, seed=9)
    assert not worse.finish(collected)
    if missing:
        assert now.finish(collected)


@pytest.mark.slow
def test_tests_of_one_name_carry_their_files_and_saving_says_where(pytester):
    test = """
        def test_it(bench):
            bench(pow, 2, 3)
            bench.compare(lambda: pow(2, 3), lambda: pow(2, 4))
    """
    pytester.makepyfile(one=test, two=test)
    words = (*QUICK, "--bench-save=here", "--bench-json=out.json", "one.py", "two.py")
    result = pytester.runpytest(*words)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "one.py::test_it *",
            "two.py::test_it *",
            "one.py::test_it #2: *",
            "two.py::test_it #2: *",
            "Saved 2 benchmarks in .benchrigor/here.sqlite. Compare with them by*",
        ]
    )
    written = json.loads((pytester.path / "out.json").read_text())
    assert [*written["comparisons"]] == ["one.py::test_it #2", "two.py::test_it #2"]


@pytest.mark.slow
def test_a_suite_is_saved_and_compared_with_from_run_to_run(pytester):
    pytester.makepyfile(ADDING)
    pytester.runpytest(*QUICK, "--bench-save", "before").assert_outcomes(passed=3)
    saved = Journal(pytester.path / ".benchrigor" / "before.sqlite")
    names = {"test_few", "test_more[100]", "test_more[3000]"}
    assert {run["name"] for run in saved.runs()} == names
    result = pytester.runpytest(*QUICK, "--bench-compare=before")
    result.assert_outcomes(passed=3)
    told = result.stdout.str()
    assert "against before" in told or "Not compared: " in told  # on a busy machine


@pytest.mark.slow
def test_all_of_it_is_in_the_file(pytester):
    pytester.makepyfile(ADDING)
    pytester.runpytest(*QUICK, "--bench-json=out.json").assert_outcomes(passed=3)
    written = json.loads((pytester.path / "out.json").read_text())
    first, second, _ = written["benchmarks"]
    assert (first["name"], first["group"], first["baseline"]) == ("test_few", "sums", True)
    assert second["fullname"].endswith("::test_more[100]")
    assert second["param"] == "100"
    assert second["extra_info"] == {"n": 100}
    assert second["record"]["rounds"]


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (("--bench-compare=nix",), "there is no */nix.sqlite*--bench-save nix"),
        (("--bench-save=a", "--bench-store=b"), "both say where"),
        (("--bench-json=no/where.json",), "there is no folder */no"),
    ],
)
def test_files_that_cannot_be_are_refused_before_any_test(pytester, options, phrase):
    pytester.makepyfile(ADDING)
    result = pytester.runpytest(*QUICK, *options)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{phrase}*"])


def test_only_benchmarks_are_run_where_asked(pytester):
    pytester.makepyfile(ADDING + "\n    def test_other(): raise AssertionError\n")
    result = pytester.runpytest(*QUICK, "--bench-only", "--bench-skip")
    result.assert_outcomes(passed=3, deselected=1)


@pytest.mark.slow
def test_functions_of_modules_are_measured_in_fresh_interpreters(pytester):
    pytester.makepyfile(suite_job="def work():\n    return sum(range(100))\n")
    pytester.makepyfile("""
        from suite_job import work

        def test_work(bench):
            assert bench(work) == 4950
            assert bench.record.options.rounds == "restarted"
            assert bench.record.facts["startup_s"] > 0.0

        def test_given(bench):
            assert bench(sum, [1, 2], start=3) == 6
            assert bench.record.options.rounds == "restarted"

        def test_closure(bench):
            bench(lambda: work())
            assert bench.record.options.rounds != "restarted"
    """)
    pytester.syspathinsert()
    result = pytester.runpytest(*BARE, "--bench-fresh", "--bench-budget=0.5")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["Measured in this process: test_closure, since a fresh*"])


@pytest.mark.slow
def test_the_project_gives_defaults_that_options_and_markers_replace(pytester):
    pytester.makepyprojecttoml(
        '[tool.benchrigor]\nbudget = 0.1\ntarget = "40%"\nstatistic="median"\n'
    )
    pytester.makepyfile("""
        import pytest

        def test_project(bench):
            bench(pow, 2, 3)
            options = bench.record.options
            assert (options.budget_s, options.target, options.statistic) == (0.1, 0.3, "median")

        @pytest.mark.bench(statistic="p90", target=0.25)
        def test_marker(bench):
            bench(pow, 2, 3)
            assert bench.record.options.statistic == "p90"
            assert bench.record.options.target == 0.25
    """)
    pytester.runpytest(*BARE, "--bench-target=30%").assert_outcomes(passed=2)


def test_a_word_in_a_marker_that_nobody_knows_is_named(pytester):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.bench(marign=0.1)
        def test_it(bench):
            bench(pow, 2, 3)
    """)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*marker bench has marign, expected some of *margin*"])


@pytest.mark.slow
def test_names_cannot_write_to_the_terminal(pytester):
    pytester.makepyfile(r"""
        import pytest

        NAME = "a\x1b[31m\nFORGED\u202e"

        @pytest.mark.bench(group=NAME, baseline=True)
        def test_one(bench):
            bench(sum, range(100))

        @pytest.mark.bench(group=NAME)
        def test_two(bench):
            bench(sum, range(100))
    """)
    printed = str(pytester.runpytest(*QUICK).stdout)
    assert "group a\\x1b[31m\\nFORGED\\u202e" in printed
    assert "\x1b[31m" not in printed
    assert "\u202e" not in printed
