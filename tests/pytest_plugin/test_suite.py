"""What becomes of all that a run of pytest measures."""

from __future__ import annotations

import json
import re

import pytest
from tests.pytest_plugin.simulated_suites import BARE, compared, measured, suite_of

from benchrigor.storage import Journal

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
pytestmark = pytest.mark.usefixtures("pytester")  # suites are kept in its folder


def verdicts(lines, heading):
    """Return the verdicts of the family below a heading, by name."""
    rows = [line.split() for line in lines[lines.index(heading) + 1 :]]
    words = ("better", "worse", "equivalent", "undecided")
    return {row[0]: row[-1] for row in rows if row and row[-1] in words}


def test_a_group_shows_changes_from_its_baseline():
    suite = suite_of()
    measured(suite, "test_few", seed=1, group="sums", baseline=True)
    measured(suite, "test_same", seed=2, group="sums")
    measured(suite, "test_many", 1.1e-3, seed=3, group="sums")
    measured(suite, "test_else", 2e-3, seed=4)
    assert not suite.finish()
    found = verdicts(suite.lines(), "group sums: change from test_few")
    assert found.keys() == {"test_same", "test_many"}
    assert found["test_many"] == "worse"
    assert found["test_same"] != "worse"


@pytest.mark.parametrize(
    ("fail_on", "mean", "fails"),
    [("worse", 1.1e-3, True), ("worse", 1e-3, False), ("never", 1.1e-3, False)],
)
def test_what_became_worse_since_it_was_saved_fails_the_run(fail_on, mean, fails):
    after = compared(f"--bench-fail-on={fail_on}", mean=mean)
    measured(after, "test_new", seed=3)
    assert after.finish() is fails
    found = verdicts(after.lines(), "against before")
    assert found.keys() == {"test_work"}
    assert (found["test_work"] == "worse") is (mean > 1e-3)


def test_tests_of_one_session_share_its_pace_so_that_their_mean_has_no_interval(pytester):
    tests = ("test_one", "test_two")
    before = suite_of("--bench-save=before")
    for seed, name in enumerate(tests):
        measured(before, name, seed=seed)
    file = pytester.path / "out.json"
    after = suite_of("--bench-compare=before", f"--bench-json={file}")
    for seed, name in enumerate(tests, start=10):
        measured(after, name, 0.9e-3, seed=seed)
    after.finish()
    summary = json.loads(file.read_text())["against"]["summary"]
    assert (summary["low"], summary["high"]) == (0.0, "inf")


def test_columns_marks_and_options_are_explained_as_pytest_has_them(pytester):
    pytester.makepyfile("""
        import time

        def test_slow(bench):
            bench(time.sleep, 0.05)
            bench(time.sleep, 0.05)
    """)
    said = pytester.runpytest(*BARE, "--bench-budget=0.05").stdout.str()
    assert re.search(r"^  ! .*\(--bench-budget\)", said, re.MULTILINE)
    assert re.search(r"^#2: ", said, re.MULTILINE)
    assert "(--budget)" not in said
    assert not re.search(r"^as measured: ", said, re.MULTILINE)


def test_the_newest_saved_run_counts_and_none_of_this_suite():
    before = suite_of("--bench-save=it")
    measured(before, "test_work", 1e-3, seed=1)
    measured(before, "test_work", 2e-3, seed=2)
    now = suite_of("--bench-save=it", "--bench-compare=it")
    measured(now, "test_work", 2e-3, seed=3)
    assert not now.finish()
    assert verdicts(now.lines(), "against it")["test_work"] != "better"


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
    before = suite_of("--bench-save=it")
    for seed, name in enumerate(("test_old", "test_work", "test_gone", "test_work")):
        measured(before, name, seed=seed)
    (pytester.path / "b.py").touch()
    (pytester.path / "a.py").touch() if options else None
    for fail_on in ("worse", "undecided"):
        file = pytester.path / "out.json"
        words = ("--bench-compare=it", f"--bench-fail-on={fail_on}", f"--bench-json={file}")
        now = suite_of(*words, *options)
        measured(now, "test_work", seed=9)
        fails = now.finish(collected)
        assert json.loads(file.read_text())["missing"] == {"saved": [], "measured": missing}
        assert not fails if fail_on == "worse" else fails or not missing


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
    labels = [f"{name}.py::test_it{more}" for more in (" ", " #2: ") for name in ("one", "two")]
    result.stdout.fnmatch_lines([*(f"{label}*" for label in labels), "*.benchrigor/here.sqlite*"])
    written = json.loads((pytester.path / "out.json").read_text())
    assert [*written["comparisons"]] == ["one.py::test_it #2", "two.py::test_it #2"]


def test_a_suite_is_saved_compared_with_and_written_from_run_to_run(pytester):
    pytester.makepyfile(ADDING)
    words = (*QUICK, "--bench-save", "before", "--bench-json=out.json")
    pytester.runpytest(*words).assert_outcomes(passed=3)
    saved = Journal(pytester.path / ".benchrigor" / "before.sqlite")
    names = {"test_few", "test_more[100]", "test_more[3000]"}
    assert {run["name"] for run in saved.runs()} == names
    first, second, _ = json.loads((pytester.path / "out.json").read_text())["benchmarks"]
    assert (first["name"], first["group"], first["baseline"]) == ("test_few", "sums", True)
    assert second["fullname"].endswith("::test_more[100]")
    assert (second["param"], second["extra_info"]) == ("100", {"n": 100})
    assert second["record"]["rounds"]
    result = pytester.runpytest(*QUICK, "--bench-compare=before")
    result.assert_outcomes(passed=3)
    told = result.stdout.str()
    assert "against before" in told or "Not compared: " in told  # on a busy machine


def test_only_benchmarks_are_run_where_asked(pytester):
    pytester.makepyfile(ADDING + "\n    def test_other(): raise AssertionError\n")
    result = pytester.runpytest(*QUICK, "--bench-only", "--bench-skip")
    result.assert_outcomes(passed=3, deselected=1)


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
    result.stdout.fnmatch_lines(["Measured in this process: test_closure, *"])


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


def test_the_project_says_how_well_the_time_must_be_known(pytester):
    pytester.makepyprojecttoml('[tool.benchrigor.metrics]\ntime = "±70%"\n')
    pytester.makepyfile("""
        def test_width(bench, request):
            bench(sum, range(10))
            wanted = request.config.getoption("bench_target")
            width = bench.record.metrics[0].relative_half_width
            assert width == (0.7 if wanted is None else None)
    """)
    pytester.runpytest(*BARE, "--bench-budget=0.05").assert_outcomes(passed=1)
    pytester.runpytest(*QUICK).assert_outcomes(passed=1)


def test_a_word_in_a_marker_that_nobody_knows_is_named(pytester):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.bench(marign=0.1)
        def test_it(bench):
            bench(pow, 2, 3)
    """)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*marign*margin*"])


def test_all_that_is_wrong_with_a_marker_is_named_before_anything_is_measured(pytester):
    pytester.makepyfile("""
        import pytest

        @pytest.mark.bench(group=4, margin=-1, batch=0, statistic="x", target="2")
        def test_it(bench):
            bench(pow, 2, 3)
    """)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(errors=1)
    for word in ("group", "margin", "batch", "statistic", "target"):
        result.stdout.fnmatch_lines([f"*{word} of a benchmark*"])


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
    assert "\\x1b[31m\\nFORGED\\u202e" in printed
    assert "\x1b[31m" not in printed
    assert "\u202e" not in printed
