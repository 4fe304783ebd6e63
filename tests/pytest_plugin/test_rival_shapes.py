"""Suites that were written for pytest-benchmark, with and without it."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.simulated_suites import BARE

PLAIN = """
    import time

    def test_call(benchmark):
        assert benchmark(sum, range(100), start=1) == 4951
        assert benchmark.stats["mean"] == benchmark.stats.stats.mean > 0.0
        stats = benchmark.stats.stats
        assert stats.min <= stats.median <= stats.max
        assert benchmark.stats.get("rounds") == len(stats.data)
        benchmark.extra_info["what"] = "a sum"

    def test_decorator(benchmark):
        @benchmark
        def result():
            return 7

        assert result == 7
"""
PARAMETRISED = """
    import pytest

    pytestmark = pytest.mark.benchmark(group="sorts", min_rounds=2, warmup=True, max_time=0.1)

    @pytest.mark.parametrize("n", [10, 1000])
    @pytest.mark.parametrize("sort", [sorted, lambda rows: list(rows)], ids=["sorted", "copied"])
    def test_sort(benchmark, sort, n):
        benchmark.group = f"{n} rows"
        assert len(benchmark(sort, range(n))) == n
        assert benchmark.params["n"] == n
        assert str(n) in benchmark.param
"""
PEDANTIC = """
    def test_fresh_rows(benchmark):
        calls = []

        def setup():
            calls.append("setup")
            return (list(range(100, 0, -1)),), {"reverse": True}

        def sort(rows, reverse):
            calls.append("sort")
            rows.sort(reverse=reverse)
            return rows[0]

        assert benchmark.pedantic(sort, setup=setup, rounds=5, warmup_rounds=2) == 100
        assert calls == ["setup", "sort"] * 7

    def test_exactly_so_many_calls(benchmark):
        calls = []
        benchmark.pedantic(calls.append, args=(1,), rounds=40, iterations=3)
        assert len(calls) == 120
        assert benchmark.stats["rounds"] == 40

    def test_torn_down(benchmark):
        open_ones = []
        benchmark.pedantic(
            open_ones.append, setup=lambda: ((1,), {}), teardown=lambda one: open_ones.pop()
        )
        assert open_ones == []
        assert benchmark.stats["rounds"] > 1
"""
WITHOUT = BARE
WITH = WITHOUT[:4]
TAKEN = ("--bench-take-benchmark", "--bench-budget=0.1", "--strict-markers")


@pytest.mark.parametrize("options", [WITH, WITHOUT], ids=["beside it", "without it"])
def test_suites_of_pytest_benchmark_run_unchanged(pytester, options):
    pytest.importorskip("pytest_benchmark")
    pytester.makepyfile(test_plain=PLAIN, test_params=PARAMETRISED, test_pedantic=PEDANTIC)
    result = pytester.runpytest_subprocess(*options, *TAKEN)
    result.assert_outcomes(passed=2 + 4 + 3)
    result.stdout.fnmatch_lines(["=* benchrigor =*", "name *"])
    result.stdout.fnmatch_lines(["Of the markers min_rounds, warmup are ignored*"])


GROUPED = """
    import pytest

    @pytest.mark.benchmark(group="sums")
    def test_few(benchmark):
        benchmark(sum, range(10))

    def test_sort(benchmark):
        benchmark.group = "sorts"
        benchmark(sorted, range(10))

    @pytest.mark.benchmark(group="sums")
    def test_many(benchmark):
        benchmark(sum, range(100))

    def test_plain():
        pass
"""
IGNORED = "--benchmark-autosave --benchmark-compare --benchmark-columns=mean,min"


@pytest.mark.parametrize(
    ("options", "outcomes", "measured"),
    [
        (("--benchmark-only",), {"passed": 3, "deselected": 1}, 3),
        (("--benchmark-skip",), {"passed": 1, "skipped": 3}, 0),
        (("--benchmark-disable",), {"passed": 4}, 0),
        (("--benchmark-disable", "--benchmark-enable"), {"passed": 4}, 3),
        (("--benchmark-json", "all.json"), {"passed": 4}, 3),
        (("--benchmark-json=all.json", "--benchmark-disable-gc"), {"passed": 4}, 3),
        (("--benchmark-min-rounds", "9", "--benchmark-sort=name"), {"passed": 4}, 3),
    ],
)
@pytest.mark.parametrize("plugins", [WITH, WITHOUT], ids=["beside it", "without it"])
def test_options_of_pytest_benchmark_are_taken_over_or_named(
    pytester, plugins, options, outcomes, measured
):
    pytester.makepyfile(grouped=GROUPED)
    pytester.makeini(f"[pytest]\naddopts = {IGNORED}")
    result = pytester.runpytest(*plugins, *TAKEN[:1], "--bench-budget=0.05", *options, "grouped.py")
    result.assert_outcomes(**outcomes)
    rows = [line.split()[:2] for line in result.outlines if line.startswith("test_")]
    grouped = [["test_few", "sums"], ["test_many", "sums"], ["test_sort", "sorts"]]
    assert rows == grouped[:measured]
    named = [*IGNORED.split()[:2], "--benchmark-columns"]
    (ignored,) = (line for line in result.outlines if line.startswith("Ignored, as pytest-bench"))
    assert all(option in ignored for option in named)
    assert "--benchmark-only" not in ignored
    assert (pytester.path / "all.json").exists() is ("all.json" in "".join(options))
    assert not (pytester.path / ".benchmarks").exists()


def test_a_gate_of_pytest_benchmark_is_refused_and_workers_know_its_options(pytester):
    pytester.makepyfile(GROUPED)
    refused = pytester.runpytest(*WITHOUT, *TAKEN[:1], "--benchmark-compare-fail", "min:5%")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--benchmark-compare-fail is not taken over: give --bench-*"])
    parallel = pytester.runpytest(*WITHOUT, *TAKEN[:1], "--benchmark-skip", "-n", "1")
    parallel.assert_outcomes(passed=1, skipped=3)


def test_without_the_option_a_missing_fixture_hints_at_it(pytester):
    pytester.makepyfile(GROUPED)
    result = pytester.runpytest(*WITHOUT)
    result.assert_outcomes(passed=1, errors=3)
    result.stdout.fnmatch_lines(
        ["E*fixture 'benchmark' not found", "*--bench-take-benchmark has *"]
    )
    other = pytester.runpytest(*WITHOUT, pytester.makepyfile(test_b="def test_b(other): pass"))
    other.stdout.no_fnmatch_line("*--bench-take-benchmark*")


def test_its_own_options_and_its_own_fixture_stay_where_nobody_takes_it(pytester):
    pytest.importorskip("pytest_benchmark")
    pytester.makepyfile("""
        def test_both(bench, benchmark):
            assert bench(sum, [1, 2]) == benchmark(sum, [1, 2])
            assert type(benchmark).__module__.startswith("pytest_benchmark")
    """)
    result = pytester.runpytest_subprocess(
        *WITH, "--bench-budget=0.05", "--benchmark-max-time=0.01"
    )
    result.assert_outcomes(passed=1)


def test_without_measuring_each_is_called_once(pytester):
    pytester.makepyfile("""
        def test_once(benchmark):
            calls = []
            benchmark.pedantic(calls.append, setup=lambda: ((1,), {}), rounds=5, warmup_rounds=2)
            assert calls == [1]
            assert benchmark.stats is None
            assert benchmark.disabled and not benchmark.enabled
    """)
    pytester.runpytest(*WITHOUT, *TAKEN, "--bench-skip").assert_outcomes(passed=1)


def test_two_functions_are_compared_in_turn(pytester):
    pytester.makepyfile("""
        def few():
            return sum(range(100))

        def many():
            return sum(range(2000))

        def test_ratio(bench):
            assert bench.ratio(few, many).low > 2.0

        def test_verdict(bench):
            comparison = bench.compare(many, few, margin=0.05)
            assert str(comparison.verdict) == "better"
            assert comparison.margin == 0.05

        def test_what_is_asserted_fails(bench):
            assert bench.ratio(few, many).high < 1.05

        def test_raising(bench):
            bench.compare(few, lambda: int("x"))
    """)
    result = pytester.runpytest(*WITHOUT, "--bench-budget=1")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["E*ValueError: invalid literal*"])
    result.stdout.fnmatch_lines(["test_ratio: *slower than*", "test_verdict: *faster than*"])
    # What is not measured is not asserted.
    skipped = pytester.runpytest(*WITHOUT, "--bench-skip", "-k", "not raising")
    skipped.assert_outcomes(skipped=3)


def test_a_coroutine_function_is_awaited_in_the_loop_that_runs_or_in_its_own(pytester):
    pytester.makepyfile("""
        import asyncio

        async def twice(number):
            await asyncio.sleep(0)
            return 2 * number

        def test_own_loop(bench):
            assert bench(twice, 4) == 8
            assert bench.record is None or bench.record.readings().size > 0

        def test_running_loop(bench):
            async def main():
                loop, seen = asyncio.get_running_loop(), set()

                async def noted(number):
                    seen.add(asyncio.get_running_loop())
                    return await twice(number)

                assert await bench(noted, 5) == 10
                assert seen == {loop}

            asyncio.run(main())
            assert bench.record is None or bench.record.readings().size > 0

        def test_raising(bench):
            async def broken():
                raise KeyError("x")

            async def main():
                await bench(broken)

            asyncio.run(main())
    """)
    result = pytester.runpytest(*WITHOUT, "--bench-budget=0.2")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*KeyError: 'x'"])
    result.stdout.no_fnmatch_line("*WorkloadFailed*")
    pytester.runpytest(*WITHOUT, "--bench-skip").assert_outcomes(passed=2, failed=1)
