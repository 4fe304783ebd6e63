"""The fixture ``bench``: what it measures, with which options, and what becomes of errors."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.pytest_plugin.simulated_suites import BARE

from benchrigor.errors import InvalidInput
from benchrigor.model import Options
from benchrigor.pytest_plugin import fixture
from benchrigor.session import measuring
from benchrigor.storage import Journal
from benchrigor.workloads.processes import time_limits

QUICK = (*BARE, "--bench-budget=50ms", "--bench-target=50%")


def table_in(result):
    """Return the lines below the plugin's own heading."""
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if line.strip("= ") == "benchrigor")
    stop = next(i for i, line in enumerate(lines) if i > start and line.startswith("=="))
    return lines[start + 1 : stop]


def test_the_fixture_returns_the_result_measures_and_keeps_what_it_measured(pytester, tmp_path):
    pytester.makepyfile("""
        def test_summing(bench):
            assert bench(sum, range(10), start=5) == 50
            assert bench.record.name == "test_summing"
            assert bench.record.readings().size > 0
            assert (bench.record.options.target, bench.record.options.budget_s) == (0.5, 0.05)
    """)
    store = tmp_path / "runs.sqlite"
    result = pytester.runpytest(*QUICK, f"--bench-store={store}")
    result.assert_outcomes(passed=1)
    header, row, *_ = table_in(result)
    assert header.split()[:2] == ["name", "mean"]
    assert row.startswith("test_summing  ")
    assert re.search(r"s ±|s \[| ~", row)  # observed only, on a busy machine
    assert [run["name"] for run in Journal(store).runs()] == ["test_summing"]


def test_each_function_is_measured_for_two_seconds_at_most(pytester):
    pytester.makepyfile("""
        def test_defaults(bench):
            bench(pow, 2, 3)
            assert bench.record.options.budget_s == 2.0
            assert bench.record.options.target == 0.02
    """)
    pytester.runpytest(*BARE).assert_outcomes(passed=1)


def test_nothing_stands_between_the_loop_that_times_and_the_function(pytester):
    pytester.makepyfile("""
        import sys
        from pathlib import Path

        import pytest

        callers = []

        def note_caller():
            code = sys._getframe(2).f_code
            callers.append(f"{Path(code.co_filename).stem}.{code.co_name}")
            return len(callers)

        def f(*args, **kwargs):
            return note_caller(), args, kwargs

        async def h():
            return note_caller(), (), {}

        CASES = {
            "bare": lambda bench: bench(f),
            "args": lambda bench: bench(f, 3, x=4),
            "rounds": lambda bench: bench.pedantic(f, rounds=5, iterations=2),
            "setup": lambda bench: bench.pedantic(f, setup=lambda: ((5,), {})),
            "coroutine": lambda bench: bench(h),
        }
        LOOPS = {
            "worker.time_calls", "worker.time_loops", "worker.await_calls", "callable._time_given"
        }

        @pytest.mark.parametrize("case", CASES)
        def test_bare(bench, case):
            callers.clear()
            number, args, kwargs = CASES[case](bench)
            assert number == 1
            given = {"args": ((3,), {"x": 4}), "setup": ((5,), {})}
            assert (args, kwargs) == given.get(case, ((), {}))
            assert {*callers[2:]} <= LOOPS
    """)
    pytester.runpytest(*QUICK).assert_outcomes(passed=5)


def test_what_only_makes_a_generator_is_refused(pytester):
    pytester.makepyfile("""
        import pytest

        from benchrigor import InvalidInput

        def count(first=1):
            yield first

        async def acount(first=1):
            yield first

        def test_made(bench):
            for func in (count, acount):
                for measure in (
                    lambda: bench(func),
                    lambda: bench(func, 3),
                    lambda: bench.pedantic(func, setup=lambda: ((4,), {})),
                ):
                    with pytest.raises(InvalidInput):
                        measure()
            with pytest.raises(InvalidInput):
                bench(lambda: acount())
            assert bench(lambda: [*count(3)]) == [3]
    """)
    pytester.runpytest(*QUICK).assert_outcomes(passed=1)


def test_a_call_that_spends_the_budget_alone_is_the_reading(pytester):
    pytester.makepyfile("""
        import time

        def test_slow(bench):
            calls = []

            def slow(value):
                calls.append(value)
                time.sleep(0.1)
                return value * len(calls)

            assert bench(slow, 3) == 3
            assert calls == [3]
            (reading,) = bench.record.readings()
            assert reading >= 0.1
    """)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*observed*"])


def test_a_suite_that_does_not_use_it_sees_and_loads_nothing(pytester):
    pytester.makepyfile("""
        import sys

        def test_nothing_heavy_is_loaded(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("benchrigor")
            heavy = {"numpy", "scipy", "rich", "click", "asyncio", "benchrigor.model"}
            assert not heavy & set(sys.modules)
    """)
    # anyio, where it is installed, has a plugin that loads asyncio.
    result = pytester.runpytest_subprocess(*BARE, "-p", "no:xdist", "-p", "no:anyio")
    result.assert_outcomes(passed=1)
    assert "benchrigor\n" not in result.stdout.str().replace("=", "").replace(" ", "")


CALLED_ONCE = """
    import pytest

    @pytest.mark.parametrize("number", range(6))
    def test_calling(bench, number):
        calls = []
        assert bench(calls.append, number) is None
        assert calls == [number]
        assert bench.record is None
"""


def test_parallel_workers_call_each_function_once_and_say_so_once(pytester):
    pytester.makepyfile(CALLED_ONCE)
    result = pytester.runpytest_subprocess(*BARE, "-n", "2")
    result.assert_outcomes(passed=6)
    (said, how) = table_in(result)
    assert said.startswith("6 benchmarks")
    assert "-n 0" in how


def test_skipping_calls_each_function_once_and_prints_nothing(pytester):
    pytester.makepyfile(CALLED_ONCE)
    result = pytester.runpytest(*QUICK, "--bench-skip")
    result.assert_outcomes(passed=6)
    assert not [line for line in result.outlines if line.strip("= ") == "benchrigor"]


RAISING = """
    import pytest

    def after_20(error):
        calls = []

        def later():
            calls.append(1)
            if len(calls) > 20:
                raise error

        return later

    def test_at_once(bench):
        bench(int, "x")

    def test_later(bench):
        bench(after_20(KeyError("later")))

    def test_skipping(bench):
        bench(after_20(pytest.skip.Exception("enough")))
"""


def test_a_function_that_raises_shows_its_own_exception_and_none_of_our_frames(pytester):
    pytester.makepyfile(RAISING)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(failed=2, skipped=1)
    result.stdout.fnmatch_lines(["E*ValueError: invalid literal*", "*: ValueError"])
    result.stdout.fnmatch_lines([">*raise error*", "E*KeyError: 'later'"])
    result.stdout.no_fnmatch_line("*WorkloadFailed*")
    result.stdout.no_fnmatch_line("*timing.py*")


def test_the_table_shows_the_statistic_of_batches_as_asked_for(pytester):
    pytester.makepyfile("""
        def test_summing(bench):
            bench(sum, range(10))
            assert bench.record.options.statistic == "median"
            assert bench.record.facts["inner_loop"] == 7
    """)
    result = pytester.runpytest(*QUICK, "--bench-statistic=median", "--bench-batch=7")
    result.assert_outcomes(passed=1)
    assert table_in(result)[0].split()[:2] == ["name", "median"]


def test_the_table_fits_the_screen_and_keeps_long_names_whole(pytester):
    long = "test_" + "a_long_name_" * 5
    pytester.makepyfile(f"""
        import pytest

        def {long}(bench):
            bench(sum, range(10))
            bench(sum, range(10))

        @pytest.mark.parametrize("text", ["x" * 100])
        def test_b(bench, text):
            bench(len, text)
    """)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=2)
    table = table_in(result)
    assert max(map(len, table)) <= 80
    assert {long, f"{long} #2"} <= {*table}
    assert "x" * 100 in "".join(table)


def test_an_interrupt_within_a_measurement_ends_pytest_as_ever(pytester):
    pytester.makepyfile("""
        import time
        from pathlib import Path

        calls = []

        def nap():
            calls.append(1)
            if len(calls) == 10:
                Path("measuring").touch()
            time.sleep(0.002)

        def test_napping(bench):
            bench(nap)

        def test_after():
            pass
    """)
    options = (*BARE, "--bench-target=0.0001%", "--bench-budget=1m")
    command = [sys.executable, "-m", "pytest", *options]
    run = pytester.popen(command, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 300.0
    while not (pytester.path / "measuring").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGINT)
    output = run.communicate(timeout=300.0)[0].decode()
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
    assert "INTERNALERROR" not in output


def test_the_test_is_the_benchmark_whose_source_is_kept(pytester):
    pytester.makepyfile("""
        kept = []

        def test_it(bench):
            for _ in range(2):
                bench(lambda: 3)
                kept.append(bench.record.provenance.function)
            assert kept[0] == kept[1] is not None

        def test_other(bench):
            bench(pow, 2, 3)
            assert bench.record.provenance.function not in {None, *kept}
    """)
    pytester.runpytest(*QUICK).assert_outcomes(passed=2)


@pytest.mark.parametrize("fresh", [(), ("--bench-fresh",)])
def test_the_detector_is_an_option_and_of_the_marker(pytester, fresh):
    pytester.makepyfile("""
        import math
        import pytest

        def test_option(bench):
            bench(math.sqrt, 2.0)
            assert bench.record.options.detector == "edm"

        @pytest.mark.bench(detector="ranks")
        def test_marker(bench):
            bench(math.sqrt, 2.0)
            assert bench.record.options.detector == "ranks"
    """)
    result = pytester.runpytest(*QUICK, *fresh, "--bench-detector=edm", "--bench-budget=500ms")
    result.assert_outcomes(passed=2)


def test_each_detector_of_the_options_can_be_asked_for(pytester):
    with pytest.raises(InvalidInput) as refused:
        Options(detector="none of them")  # which are named
    names = re.findall(r"'(\w+)'", str(refused.value))
    assert len(names) >= 3
    for name in names:
        config = pytester.parseconfig(f"--bench-detector={name}")
        assert config.getoption("bench_detector") == name


HANGING = """
import asyncio
import time
import hanging_job

calls = []

def third():
    calls.append(1)
    if len(calls) >= 3:
        time.sleep(60)

async def never():
    await asyncio.sleep(60)

def test_first(bench):
    try:
        bench(lambda: time.sleep(60))
    finally:
        assert bench.record is None and bench.stats is None

def test_third(bench):
    bench(third)

def test_setup(bench):
    bench.pedantic(time.sleep, setup=lambda: ((60,), {}))

def test_rounds(bench):
    bench.pedantic(lambda: time.sleep(60), rounds=5)

def test_warm_up(bench):
    bench.pedantic(lambda: time.sleep(60), rounds=5, warmup_rounds=1)

def test_coroutine(bench):
    bench(never)

def test_awaited(bench):
    async def main():
        await bench(never)

    asyncio.run(main())

def test_compared(bench):
    bench.compare(lambda: time.sleep(60), lambda: None)

def test_module(bench):
    bench(hanging_job.work)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")
@pytest.mark.parametrize("options", [(), ("--bench-fresh", "-k=module")])
def test_a_call_that_hangs_fails_the_test_and_says_so(pytester, monkeypatch, options):
    monkeypatch.setattr(time_limits, "_GRACE_S", 0.2)
    monkeypatch.setattr(time_limits, "_FIRST_GRACE_S", 0.3)
    monkeypatch.setattr(fixture, "_LEAST_BUDGET_S", 0.1)
    monkeypatch.setattr(measuring, "_LEAST_GRACE_S", 0.3)
    pytester.makepyfile(HANGING, hanging_job="import time\n\ndef work():\n    time.sleep(60)\n")
    result = pytester.runpytest(*BARE, "--bench-budget=0.1", "--tb=short", *options)
    failed = 1 if options else 9
    result.assert_outcomes(failed=failed)
    said = [each for each in result.outlines if each.startswith("E  ")]
    hung = [each for each in said if re.search(r"had not ended|took longer", each)]
    assert len(hung) == failed, said
    assert not any("_first_kept" in each for each in said)
    time_limits.left_calls.clear()
