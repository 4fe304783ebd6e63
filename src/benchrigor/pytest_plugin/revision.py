"""``--bench-against``: the calls of tests, measured in turn with calls of another revision."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Comparison
from benchrigor.pytest_plugin.marks import unmeasured
from benchrigor.safe_text import escaped
from benchrigor.session import measure_pair
from benchrigor.workloads import InterpreterWorkload
from benchrigor.workloads.processes.own_signals import ended_by_signals
from benchrigor.workloads.worktrees import commit_of, worktrees

_ALONE = ("save", "compare", "fresh", "skip")


class Revision:
    """Compares calls with a revision, which is checked out until pytest ends.

    Attributes
    ----------
    name
        As the option gives it.
    left_out
        Why a call was not compared, by name.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.name: str = config.getoption("bench_against")
        self.left_out: dict[str, str] = {}
        cleanup = ExitStack()
        config.add_cleanup(cleanup.close)
        # From here on a signal ends pytest as an interrupt does, so that the folder is removed.
        cleanup.enter_context(ended_by_signals())
        try:
            checkouts = worktrees([self.name], folder=config.invocation_params.dir)
            self._checkout = cleanup.enter_context(checkouts)[0]
        except InvalidInput as error:
            pytest.exit(escaped(f"--bench-against: {error}"), pytest.ExitCode.USAGE_ERROR)

    def compare(
        self, name: str, call: partial[Any], timing: Mapping[str, Any], **options: Any
    ) -> Comparison | None:
        """Measure a call in turn in both revisions; None if it cannot be, see ``left_out``.

        ``timing`` is for `InterpreterWorkload`, ``options`` are for `measure_pair`.
        """
        try:
            there, here = self._sides(call, timing)
            # Both have the same name: only the revision distinguishes them.
            there.facts["revision"] = self.name
            return measure_pair(there, here, **options)
        except (InvalidInput, WorkloadFailed) as error:
            self.left_out[name] = " ".join(map(str, error.args)).rstrip(".")
            return None

    def _sides(
        self, call: partial[Any], timing: Mapping[str, Any]
    ) -> tuple[InterpreterWorkload, InterpreterWorkload]:
        """Return a call as it is in the revision, and as it is here."""
        here = InterpreterWorkload(call, **timing)
        checkout = self._checkout
        file = Path(here.source_files[0]).resolve() if here.source_files else None
        if file is None:
            raise InvalidInput(f"{here.name} has no source file, as built-in functions have none")
        if not file.is_relative_to(checkout.original):
            raise InvalidInput(
                f"{here.name} is imported from {file}, expected a file in {checkout.original}: "
                "install the tested package in editable mode (pip install -e .)"
            )
        relative = file.relative_to(checkout.original)
        if not (checkout.top / relative).exists():
            raise InvalidInput(f"revision {self.name} has no {relative}")
        loaded = [name for name in sys.modules if "." not in name]
        there = InterpreterWorkload(
            call,
            path=[*checkout.path(loaded), *filter(None, sys.path)],
            cwd=checkout.folder,
            inside=checkout.top,
            **timing,
        )
        return there, here


def wrong_revision(config: pytest.Config) -> list[str]:
    """Return the problems of a revision that is not there, or with options next to it."""
    problems = unmeasured(config, "against", _ALONE)
    if not problems:
        try:
            commit_of(config.getoption("bench_against"), config.invocation_params.dir)
        except InvalidInput as error:
            problems = [f"--bench-against: {error}"]
    return problems
