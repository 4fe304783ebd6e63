"""Options that cannot be worked with, and gates that compared nothing: these fail."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.simulated_suites import BARE

QUICK = (*BARE, "--bench-budget=0.05", "--bench-target=50%")
BENCH = "def test_it(bench):\n    bench(sum, range(100))\n"
PLAIN = "def test_it():\n    pass\n"
GATE = ("--bench-compare=base", "--bench-fail-on=undecided")
ASLEEP = "import pytest\n\n@pytest.mark.skip\n" + BENCH


def last_line(result):
    return [line for line in (*result.outlines, *result.errlines) if line][-1]


@pytest.mark.parametrize(
    "options",
    [
        *(("--bench-target=2",), ("--bench-budget=nan",), ("--bench-batch=1.5",)),
        *(("--bench-statistic=foo",), ("--bench-compare=nix",), ("--bench-fail-on=worse",)),
        *(("--bench-save=a", "--bench-store=b"), ("--bench-json=no/where.json",)),
    ],
)
def test_an_option_that_cannot_be_worked_with_is_refused_before_any_test(pytester, options):
    result = pytester.runpytest(*BARE, *options)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{options[0].partition('=')[0]}*"])


@pytest.fixture
def saved(pytester):
    """Save a suite to compare with."""
    pytester.makepyfile(test_bench=BENCH)
    for _ in range(5):  # a busy machine may give no number
        result = pytester.runpytest(*QUICK, "--bench-save=base", "-q")
        assert result.ret == 0
        if "±" in result.stdout.str():
            break
    return pytester


def test_a_suite_that_is_not_compared_fails(saved):
    saved.makepyfile(
        test_plain=PLAIN,
        test_other=BENCH.replace("test_it", "test_new"),
        test_asleep=ASLEEP,
        test_unused="def test_it(bench):\n    pass\n",
        asserting="def test_it():\n    assert False\n",
    )
    for code, options, why in (
        (4, ("-n", "2"), "disturb each other"),
        (4, ("--bench-skip",), "--bench-skip"),
        (4, ("--bench-take-benchmark", "--benchmark-disable"), "--benchmark-disable"),
        (1, ("--dist=load", "--tx=2*popen"), "-n 0"),
        (1, ("test_plain.py",), "fixture bench"),
        (1, ("test_other.py",), "counterpart"),
        (5, ("test_plain.py", "--bench-only"), "fixture bench"),
        (1, ("test_asleep.py",), "fixture bench"),
        (1, ("test_unused.py",), "nothing was"),
        (1, ("asserting.py",), "1 failed"),  # is the reason by itself
    ):
        for fail_on in ("worse", "undecided") if code == 4 else ("undecided",):
            result = saved.runpytest(*QUICK, GATE[0], f"--bench-fail-on={fail_on}", *options)
            assert (result.ret, why in last_line(result)) == (code, True), result.outlines


@pytest.mark.parametrize(
    ("source", "why"),
    [(PLAIN, "fixture bench"), ("def test_it(bench):\n    bench(lambda: 1)\n", "counterpart")],
)
def test_a_revision_that_is_not_compared_with_fails(pytester, source, why):
    pytester.makepyfile(source)
    for words in ("init -q", "add .", "commit -qm one", "tag one"):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        pytester.run("git", *identity, *words.split())
    result = pytester.runpytest(*QUICK, "--bench-against=one")
    assert (result.ret, why in last_line(result)) == (1, True)
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
        for _ in range(5):  # it may leave nothing to compare, too
            result = saved.runpytest(*QUICK, *options)
            if result.ret == 0:
                break
        assert result.ret == 0, result.outlines
    saved.makeini("[pytest]\naddopts = --bench-fail-on=worse")  # which goes with a comparison
    assert saved.runpytest(*QUICK, "test_plain.py").ret == 0
