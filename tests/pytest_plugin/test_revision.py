"""What tests call, in turn with what it is in another revision."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.pytest_plugin import simulated_suites

import benchrigor as br
from benchrigor.pytest_plugin import revision
from benchrigor.testing import FakeClock, SyntheticWorkload

BARE = (*simulated_suites.BARE, "-n0")
SHOP = """
class Till:
    def __init__(self, n):
        self.n = n

    def total(self):
        return total(self.n)

def total(n):
    return sum(i * i for i in range(n))

def other(n):
    return sum(i + i for i in range(n))
"""
TESTS = """
    import pytest
    from shop import Till, other, total

    @pytest.mark.parametrize("n", [200, 300])
    def test_total(bench, n):
        assert bench(total, n) > 0

    def test_other(bench, count):
        bench(other, n=count)

    def test_method(bench, count):
        bench(Till(count).total)
"""
LEFT_OUT = """
    import json
    import shop

    def test_lambda(bench):
        assert bench(lambda: shop.total(9)) == 204

    def test_installed(bench):
        bench(json.dumps, [1])

    def test_new_file(bench):
        import added
        bench(added.work)

    def test_setup(bench):
        bench.pedantic(shop.total, (9,), setup=lambda: None)
"""


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def repository(pytester, monkeypatch):
    """Commit a package in a folder src and its tests, of which nothing is loaded yet."""
    (pytester.path / "src").mkdir()
    (pytester.path / "src" / "shop.py").write_text(SHOP)
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef count(): return 200")
    pytester.makeini("[pytest]\npythonpath = src\n")
    pytester.makepyfile(test_shop=TESTS, test_left_out=LEFT_OUT)
    git(pytester.path, "init", "-q")
    git(pytester.path, "add", ".")
    git(pytester.path, "commit", "-qm", "one")
    git(pytester.path, "tag", "one")
    for name in ("shop", "added", "test_shop", "test_left_out", "conftest"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return pytester.path


@pytest.fixture
def simulated(monkeypatch):
    """Simulate what is measured; by name, how many times as long a call takes here."""
    ratios: dict[str, float] = {}
    sides = []

    def measured(there, here, **options):
        sides.append([(side.name, side.source_files[0]) for side in (there, here)])
        clock = FakeClock()
        means = (1e-4, 1e-4 * ratios.get(here.name, 1.0))
        made = (
            SyntheticWorkload(mean=mean, cv=0.02, restarted=True, seed=seed, clock=clock)
            for seed, mean in enumerate(means)
        )
        options |= {"store": None, "budget_s": 1.0}
        return br.measure_pair(*made, clock=clock, seed=1, **options)

    monkeypatch.setattr(revision, "measure_pair", measured)
    ratios["sides"] = sides
    return ratios


def run(pytester, *options):
    return pytester.runpytest(*BARE, "--bench-against", "one", *options)


@pytest.mark.parametrize(
    ("ratio", "fail_on", "code"),
    [(1.15, (), 1), (0.85, (), 0), (1.0, (), 0), (1.15, ("--bench-fail-on", "never"), 0)],
)
@pytest.mark.usefixtures("repository")
def test_what_became_slower_fails_the_run(pytester, simulated, ratio, fail_on, code):
    simulated["shop:other"] = ratio
    result = run(pytester, "test_shop.py", *fail_on)
    assert result.ret == code
    result.assert_outcomes(passed=4)
    slower, faster = ratio > 1.0, ratio < 1.0
    result.stdout.fnmatch_lines(
        [
            "against one",
            "name * visible * verdict",
            f"4 benchmarks: {slower:d} slower, {faster:d} faster, *",
        ]
    )
    assert git(pytester.path, "worktree", "list").count("\n") == 1


def test_both_sides_differ_in_where_they_are_imported_from(pytester, repository, simulated):
    run(pytester, "test_shop.py", "-k", "total and 200", "--bench-json", "all.json")
    [((name, there), (same_name, here))] = simulated["sides"]
    assert name == same_name == "shop:total"
    assert here == repository / "src" / "shop.py"
    assert there.parts[-2:] == ("src", "shop.py")
    assert not there.is_relative_to(repository)
    told = json.loads((repository / "all.json").read_text())
    assert told["revision"] == "one"
    assert list(told["against"]["verdicts"]) == ["test_total[200]"]
    assert told["not_compared"] == {}


def test_what_cannot_be_compared_is_named_with_the_reason(pytester, repository, simulated):
    (repository / "src" / "added.py").write_text("def work():\n    pass\n")
    result = run(pytester, "test_left_out.py", "--bench-fail-on", "never")
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    assert not simulated["sides"]
    shown = " ".join(result.stdout.str().split())
    for name, why in {
        "test_lambda": "test_lambda.<locals>.<lambda>",
        "test_installed": "json:dumps",
        "test_new_file": "src/added.py",
        "test_setup": "setup",
    }.items():
        assert re.search(rf"{name} is not compared with one: [^:]*{why}", shown)
    assert run(pytester, "test_left_out.py", "--bench-fail-on", "undecided").ret == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [(("nine",), "'nine'"), (("one", "--bench-save", "x"), "--bench-save"), (("one", "-n1"), "-n")],
)
def test_what_does_not_go_with_it_is_refused_before_any_test(pytester, repository, options, named):
    result = pytester.runpytest(*BARE, "--bench-against", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{named}*"])


def test_a_slower_working_tree_is_measured_by_fresh_processes_of_both(pytester, repository):
    slower = SHOP.replace("i + i for i in range(n)", "i + i for i in range(5 * n)")
    (repository / "src" / "shop.py").write_text(slower)
    options = ("--bench-against", "one", "--bench-budget", "3", "--bench-json", "all.json")
    result = pytester.runpytest_subprocess(*BARE, *options, "-k", "other or method")
    told = json.loads((repository / "all.json").read_text())["against"]
    ratios = {name: found["ratio"] for name, found in told["comparisons"].items()}
    # A busy machine starts too few processes for a ratio, or for a verdict.
    assert ratios["test_other"] is None or ratios["test_other"]["value"] > 2.0
    assert ratios["test_method"] is None or ratios["test_method"]["value"] < 2.0
    assert result.ret == int("worse" in told["verdicts"].values())
    assert git(repository, "worktree", "list").count("\n") == 1
    assert git(repository, "status", "--porcelain", "--untracked-files=no") == " M src/shop.py\n"


def test_a_signal_leaves_no_worktree(pytester, repository):
    pytester.makepyfile(
        test_waiting="""
        import pathlib, shop, time

        def test_waiting(bench):
            bench(shop.total, 9)
            pathlib.Path("measured").touch()
            time.sleep(60)
        """
    )
    here = "test_waiting.py"
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *BARE, "--bench-against=one", "--bench-budget=0.5", here],
        cwd=repository,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    until = time.monotonic() + 300.0
    while not (repository / "measured").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert git(repository, "worktree", "list").count("\n") == 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300.0) != 0
    assert git(repository, "worktree", "list").count("\n") == 1
