"""A plugin for the pytest of one side: it needs nothing but pytest, and runs by its file.

It keeps the tests that are asked for, of those that use a benchmark's fixture, and writes what they
imported, and why some failed.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

_FIXTURES = {"bench", "benchmark"}
_failed: dict[str, str] = {}
_durations: dict[str, float] = {}


def _asked() -> Any:
    """Return the tests to run, and where to write the findings."""
    return json.loads(Path(os.environ["BENCHRIGOR_GATE"]).read_text())


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Undo additions of the suite's own options: coverage slows tests down."""
    option = config.option
    for name, value in (("no_cov", True), ("cov_source", []), ("benchmark_skip", False)):
        if hasattr(option, name):
            setattr(option, name, value)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that are asked for, or all that measure."""
    tests = _asked()["tests"]
    kept = [
        item
        for item in items
        if _FIXTURES & {*getattr(item, "fixturenames", ())}
        and (tests is None or item.nodeid in tests)
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test takes, and if it failed."""
    _durations[report.nodeid] = _durations.get(report.nodeid, 0.0) + report.duration
    if report.failed and report.nodeid not in _failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        unknown = getattr(report.longrepr, "errorstring", "")  # of a fixture
        why = str(getattr(crash, "message", "") or unknown or report.longrepr).strip()
        _failed[report.nodeid] = why.splitlines()[0][:200] if why else f"{report.when} failed"


def pytest_sessionfinish() -> None:
    """Write the imported modules with their folders, and the tests that failed."""
    modules = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            modules[name] = os.path.realpath(file)
    told = {"modules": modules, "failed": _failed, "durations": _durations}
    Path(_asked()["told"]).write_text(json.dumps(told))
