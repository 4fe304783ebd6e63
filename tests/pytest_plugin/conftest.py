"""What the tests of the plugin share."""

import pytest

from benchrigor.pytest_plugin import Bench
from benchrigor.report.run_table import tabulate
from benchrigor.session import measure
from benchrigor.stats import compare
from benchrigor.stats.comparison.multiple_testing import family_of


@pytest.fixture(autouse=True, scope="module")
def loaded():
    """Load all that a suite loads: pytester would load it again for each of its runs."""
    tabulate([measure(lambda: None, budget_s=0.01)])
    family_of({"same": compare([1.0, 1.1] * 50, [1.0, 1.1] * 50)})
    assert Bench


@pytest.fixture(autouse=True)
def screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
