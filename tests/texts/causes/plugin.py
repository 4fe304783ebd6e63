"""What pytest says of suites that it measures, and of options that it cannot work with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.pytest_plugin.simulated_suites import compared, configured, measured, suite_of

from benchrigor.pytest_plugin import pytest_configure


def refused(*options: str) -> Iterator[str]:
    """Yield the texts about each of several lines of options."""
    for words in options:
        try:
            pytest_configure(configured(*words.split()))
        except pytest.UsageError as error:
            yield str(error).partition("error: ")[2].partition("\n  inifile")[0] or str(error)
        else:
            raise AssertionError(f"not refused: {words}")


def a_group() -> list[str]:
    """Return the texts about a group with a baseline."""
    suite = suite_of()
    for name, mean, seed in (("few", 1e-3, 1), ("same", 1e-3, 2), ("many", 1.1e-3, 3)):
        measured(suite, f"test_{name}", mean, seed=seed, group="sums", baseline=name == "few")
    suite.finish()
    return suite.lines()


def slower(**settings: float) -> list[str]:
    """Return the texts about a test that may be slower, and others that only one side has."""
    suite = compared("--bench-fail-on=undecided", mean=1.1e-3)
    measured(suite, "test_new", seed=3)
    vars(suite.records[0][0]).update(settings)
    suite.finish()
    return suite.lines()


def cut_short() -> list[str]:
    """Return the texts about a run without a number."""
    suite = compared("--bench-fail-on=undecided")
    bench, record = suite.records.pop()
    suite.records.append((bench, replace(record, rounds=record.rounds[:1], analyses=())))
    suite.finish()
    return suite.lines()


def saved() -> list[str]:
    """Return the texts about a suite that is saved, of which nothing was measured in parallel."""
    suite = suite_of("--bench-save=here")
    for seed in (1, 2):
        measured(suite, f"test_work{' #2' * (seed - 1)}", seed=seed)
    suite.unmeasured.append("test_alone")
    return suite.lines()


CAUSES: dict[str, Callable[[], object]] = {
    "a group": a_group,
    "tests that are slower, new and missing": slower,
    "a margin below which nothing is seen": lambda: slower(margin=0.1)[-4:],
    "a run without a number": cut_short,
    "a suite that is saved": saved,
    "options": lambda: refused(
        *("--bench-target=x", "--bench-target=0", "--bench-target=2", "--bench-budget=-1"),
        *("--bench-batch=0", "--bench-statistic=p100", "--bench-compare=nix"),
        *("--bench-save=a --bench-store=b", "--bench-json=no/where.json"),
        *("--bench-fail-on=worse", "--bench-compare=a --bench-fail-on=worse --bench-skip"),
        "--bench-take-benchmark --benchmark-compare-fail=min:5%",
    ),
}
