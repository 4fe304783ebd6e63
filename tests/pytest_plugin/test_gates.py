"""A gate that compared nothing fails, and says last why."""

from __future__ import annotations

import subprocess

import pytest

BARE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark")
QUICK = (*BARE, "--bench-budget=0.05", "--bench-target=50%")
BENCH = "def test_it(bench):\n    bench(sum, range(100))\n"
PLAIN = "def test_it():\n    pass\n"
GATE = ("--bench-compare=base", "--bench-fail-on=undecided")
ASLEEP = "import pytest\n\n@pytest.mark.skip\n" + BENCH


@pytest.fixture
def saved(pytester):
    """Save a suite to compare with."""
    pytester.makepyfile(test_bench=BENCH)
    assert pytester.runpytest(*QUICK, "--bench-save=base", "-q").ret == 0
    return pytester


def last_line(result):
    return [line for line in (*result.outlines, *result.errlines) if line][-1]


@pytest.mark.parametrize(
    ("code", "options", "why"),
    [
        (
            4,
            ("-n", "2"),
            "--bench-compare measures, and tests in parallel disturb each other: add -n",
        ),
        (4, ("--bench-skip",), "--bench-compare and --bench-skip do not go together"),
        (
            4,
            ("--bench-take-benchmark", "--benchmark-disable"),
            "--bench-compare and --benchmark-disable do not go together",
        ),
        (
            1,
            ("--dist=load", "--tx=2*popen"),
            "tests that run in parallel are not measured: add -n 0",
        ),
        (1, ("test_plain.py",), "no test that ran uses the fixture bench"),
        (1, ("test_other.py",), "what was measured has no counterpart, or none that it can be"),
        (5, ("test_plain.py", "--bench-only"), "no test that ran uses the fixture bench"),
        (1, ("test_asleep.py",), "no test that ran uses the fixture bench"),
        (1, ("test_unused.py",), "nothing was measured"),
    ],
)
@pytest.mark.parametrize("fail_on", ["worse", "undecided"])
def test_a_suite_that_is_not_compared_fails(saved, code, options, why, fail_on):
    saved.makepyfile(
        test_plain=PLAIN,
        test_other=BENCH.replace("test_it", "test_new"),
        test_asleep=ASLEEP,
        test_unused="def test_it(bench):\n    pass\n",
    )
    result = saved.runpytest(*QUICK, GATE[0], f"--bench-fail-on={fail_on}", *options)
    assert result.ret == code
    assert why in last_line(result)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (PLAIN, "--bench-against one compared nothing: no test that ran uses the fixture bench"),
        ("def test_it(bench):\n    bench(lambda: 1)\n", "what was measured has no counterpart"),
    ],
)
def test_a_revision_that_is_not_compared_with_fails(pytester, source, why):
    pytester.makepyfile(source)
    for words in ("init -q", "add .", "commit -qm one", "tag one"):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        subprocess.run(["git", *identity, *words.split()], check=True, cwd=pytester.path)
    result = pytester.runpytest(*QUICK, "--bench-against=one")
    assert result.ret == 1
    assert why in last_line(result)
    assert pytester.runpytest(*QUICK, "--bench-against=one", "--bench-fail-on=never").ret == 0
    assert pytester.runpytest(*QUICK, "--bench-against=one", "--collect-only").ret == 0


def test_what_is_no_gate_or_compares_passes(saved):
    saved.makepyfile(test_plain=PLAIN)
    for options in (
        (GATE[0], "-n", "2"),
        (GATE[0], "test_plain.py"),
        (GATE[0], "--bench-skip", "--bench-fail-on=never"),
        (*GATE, "--collect-only"),
        (*GATE, "--fixtures"),
        (GATE[0], "--bench-fail-on=worse", "--bench-margin=500%"),
        ("--bench-save=new", "--bench-compare=new", "--bench-fail-on=worse"),  # there is none yet
    ):
        result = saved.runpytest(*QUICK, *options)
        assert result.ret == 0, result.outlines


def test_a_test_that_fails_is_the_reason_by_itself(saved):
    saved.makepyfile(test_plain="def test_it():\n    assert False\n")
    result = saved.runpytest(*QUICK, *GATE, "test_plain.py")
    assert result.ret == 1
    assert "1 failed" in last_line(result)


def test_what_fails_the_run_goes_with_a_comparison(pytester):
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest(*QUICK, "--bench-fail-on=worse")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--bench-fail-on goes with --bench-against or --bench-compare" in last_line(result)
    pytester.makeini("[pytest]\naddopts = --bench-fail-on=worse")
    assert pytester.runpytest(*QUICK).ret == 0
