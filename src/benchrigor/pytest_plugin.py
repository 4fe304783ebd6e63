"""The pytest fixture ``bench``: measures a function where a test uses it, and only there.

pytest loads an installed plugin in every run, so nothing but pytest is imported before a test
asks for the fixture.
"""

from __future__ import annotations

import argparse
import inspect
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from benchrigor.model import RunRecord

T = TypeVar("T")

_RECORDS = pytest.StashKey[list["RunRecord"]]()
_UNMEASURED = pytest.StashKey[list[str]]()
_SHIPPED = "benchrigor_unmeasured"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture."""
    add = parser.getgroup("benchrigor", "benchmarks with the bench fixture").addoption
    add(
        "--bench-target",
        type=_share,
        metavar="SHARE",
        help="half-width wanted, relative to the value, such as 0.05 or 5%% (default: that of "
        "time in [tool.benchrigor.metrics] of pyproject.toml, else 2%%)",
    )
    add(
        "--bench-statistic",
        type=_statistic,
        default="mean",
        metavar="NAME",
        help="mean, median, or a percentile such as p10 (default: mean)",
    )
    add(
        "--bench-batch",
        type=lambda text: _positive(text, int, "whole number from 1 on"),
        metavar="N",
        help="calls per reading (default: as many as the clock needs)",
    )
    add(
        "--bench-budget",
        type=_positive,
        default=2.0,
        metavar="SECONDS",
        help="measure each function no longer than this (default: 2)",
    )
    add("--bench-store", metavar="FILE", help="keep the runs in this file (default: keep nothing)")
    add("--bench-skip", action="store_true", help="call the functions once, measure nothing")


def _positive(
    text: str, kind: Callable[[str], float] = float, expected: str = "number above 0"
) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = 0.0
    if not number > 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no {expected}")
    return number


def _share(text: str) -> float:
    """Read a share above 0, given as 0.02 or as 2%."""
    from benchrigor.units import share_of  # noqa: PLC0415  # only when the option is given

    try:
        share = share_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not share > 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no share above 0")
    return share


def _statistic(text: str) -> str:
    if text != "mean":  # the default passes here in every run: nothing is loaded for it
        from benchrigor.errors import InvalidInput  # noqa: PLC0415  # only when the option is given
        from benchrigor.model.metric import quantile_named  # noqa: PLC0415  # likewise

        try:
            quantile_named(text)
        except InvalidInput as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return text


class Bench:
    """Measures functions for one test."""

    def __init__(self, name: str, config: pytest.Config) -> None:
        self.record: RunRecord | None = None  # of the last measurement
        self._name = name
        self._config = config
        self._calls = 0

    def __call__(self, func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Measure calls of ``func(*args, **kwargs)``, and return what the first one returned."""
        __tracebackhide__ = True
        if inspect.iscoroutinefunction(func):
            pytest.fail(
                f"{func!r} is a coroutine function: calling it only makes an object; measure "
                "lambda: asyncio.run(f())",
                pytrace=False,
            )
        name = self._name if not self._calls else f"{self._name} #{self._calls + 1}"
        # With pytest-xdist, the workers call it once.
        if self._config.getoption("bench_skip") or hasattr(self._config, "workerinput"):
            result = func(*args, **kwargs)
            if not self._config.getoption("bench_skip"):
                self._config.stash.setdefault(_UNMEASURED, []).append(name)
        else:
            call, first = _first_kept(func, args, kwargs)
            self.record = _measured(call, name, self._config)
            self._config.stash.setdefault(_RECORDS, []).append(self.record)
            (result,) = first
        self._calls += 1
        return result


def _first_kept(
    func: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[[], T], list[T]]:
    """Return a call of a function, and where its first result will be.

    Later calls pay nothing for that: the first one puts the function in its own place.
    """
    kept: list[T] = []
    called = func

    def first(*args: Any, **kwargs: Any) -> T:
        nonlocal called
        called = func
        kept.append(func(*args, **kwargs))
        return kept[0]

    called = first
    return lambda: called(*args, **kwargs), kept


def _measured(func: Callable[[], object], name: str, config: pytest.Config) -> RunRecord:
    from benchrigor.errors import (  # noqa: PLC0415  # only when a test measures
        WorkloadFailed,
        without_our_frames,
    )
    from benchrigor.session import measure  # noqa: PLC0415  # likewise
    from benchrigor.storage.project_settings import time_metric  # noqa: PLC0415  # likewise

    __tracebackhide__ = True
    options = ("statistic", "batch", "store")
    chosen = {option: config.getoption(f"bench_{option}") for option in options}
    metric = time_metric(config.rootpath)
    target = config.getoption("bench_target")
    if target is not None:
        chosen["target"], metric = target, replace(metric, relative_half_width=None)
    budget_s = config.getoption("bench_budget")
    try:
        return measure(func, name=name, budget_s=budget_s, metric=metric, **chosen)
    except WorkloadFailed as error:
        if error.__cause__ is None:
            raise
        raise without_our_frames(error.__cause__) from None


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Bench:
    """Measure a function: ``bench(func, *args, **kwargs)`` returns what func returns.

    The function is called many times; ``bench.record`` is the record of its readings.
    """
    return Bench(request.node.name, request.config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the names of what a worker did not measure to the controlling process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_SHIPPED] = session.config.stash.get(_UNMEASURED, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what the workers did not measure."""
    names = getattr(node, "workeroutput", {}).get(_SHIPPED, [])
    if names:
        node.config.stash.setdefault(_UNMEASURED, []).extend(names)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show what was measured; print nothing when no test used the fixture."""
    records = config.stash.get(_RECORDS, [])
    unmeasured = len(config.stash.get(_UNMEASURED, []))
    if records:
        from benchrigor.report import tabulate  # noqa: PLC0415  # only when something was measured

        terminalreporter.write_sep("=", "benchrigor")
        width = shutil.get_terminal_size().columns - 1
        terminalreporter.write_line(tabulate(records, width=width))
    if unmeasured:
        terminalreporter.write_sep("=", "benchrigor")
        ran = "1 benchmark was" if unmeasured == 1 else f"{unmeasured} benchmarks were"
        terminalreporter.write_line(
            f"{ran} run once and not measured: tests that run in parallel disturb each other.\n"
            "To measure, run without parallel workers: -n 0."
        )
