"""What the tests of the plugin share."""

import pytest
from tests.pytest_plugin.simulated_suites import measured, suite_of

from benchrigor import measure
from benchrigor.pytest_plugin import Bench


@pytest.fixture(autouse=True, scope="session")
def loaded():
    """Load all that a suite loads: pytester would load it again for each of its runs."""
    assert Bench
    measure(lambda: None, budget_s=0.01)
    suite = suite_of()
    for seed in (1, 2):
        measured(suite, f"test_{seed}", seed=seed, group="same", baseline=seed == 1)
    suite.finish()
    assert suite.lines()


@pytest.fixture(autouse=True)
def screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
