"""Suites of simulated runs, by the options that pytest was given."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from benchrigor.model import Options, RunRecord
from benchrigor.pytest_plugin.suite import Suite
from benchrigor.session import Session
from benchrigor.testing import FakeClock, MemoryStore, SyntheticWorkload

BARE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark")


@cache
def simulated(name: str, mean: float, seed: int) -> RunRecord:
    """Simulate a run of a test; many tests want the same one."""
    clock = FakeClock()
    session = Session(
        Options(target=0.01),
        name=name,
        subject={"test": f"a.py::{name}"},
        seed=seed,
        store=MemoryStore(),  # what is stored says where it is from
        clock=clock,
    )
    return session.run(SyntheticWorkload(mean=mean, cv=0.05, seed=seed, clock=clock))


def measured(suite: Suite, name: str, mean: float = 1e-3, *, seed: int, **settings: object) -> None:
    """Add a simulated run of a test to a suite."""
    record = simulated(name, mean, seed)
    if suite.store is not None:
        run_id = suite.store.begin(replace(record, rounds=(), run_id=None))
        for each in record.rounds:
            suite.store.append(run_id, each)
        record = replace(record, run_id=run_id)
        suite.store.finish(run_id, record)
    usual: dict[str, Any] = {"group": None, "baseline": False, "margin": 0.01, "param": None}
    told = {**usual, "extra_info": {}, **settings}
    bench = SimpleNamespace(name=name, fullname=f"a.py::{name}", **told)
    suite.records.append((bench, record))  # type: ignore[arg-type]  # all that is asked of it


def configured(*options: str) -> pytest.Config:
    """Return pytest as it is configured by options, without a run."""
    # What is captured would be kept in files, which nobody closes without a run.
    return pytest.Config.fromdictargs({}, [*BARE, "-p", "no:xdist", "--capture=no", *options])


def suite_of(*options: str) -> Suite:
    """Return what a run of pytest with these options measures."""
    return Suite(configured(*options))


def compared(*options: str, mean: float = 1e-3) -> Suite:
    """Return a suite with a test that was saved before with a mean of a millisecond."""
    before = suite_of("--bench-save=before")
    measured(before, "test_work", seed=1)
    after = suite_of("--bench-compare=before", *options)
    measured(after, "test_work", mean, seed=2)
    return after
