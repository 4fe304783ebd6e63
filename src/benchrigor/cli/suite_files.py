"""Files of several benchmarks, which ``compare`` matches by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchrigor.cli.exits import ExitCode, code_of_family
from benchrigor.errors import InvalidInput
from benchrigor.model import Code, RunRecord
from benchrigor.model.comparison import SuiteComparison
from benchrigor.session.pairs.run_comparison import compare_suites
from benchrigor.units import first_few

_SOME = 10  # names that an error lists


def compared_files(
    files: Sequence[tuple[str, Sequence[RunRecord]]],
    pattern: re.Pattern[str] | None,
    **options: Any,
) -> SuiteComparison:
    """Compare files with the first one; ``pattern`` is searched for in the names."""
    suites = dict(
        zip(
            _short([file for file, _ in files]),
            ({run.name: run for run in runs} for _, runs in files),
            strict=True,
        )
    )
    if pattern is not None:
        suites = _filter_suites(suites, pattern)
    return compare_suites(suites, **options)


def compile_filter(pattern: str | None) -> re.Pattern[str] | None:
    """Compile what --filter says."""
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise InvalidInput(
            f"--filter is {pattern!r}, expected a regular expression: {error}"
        ) from error


def _filter_suites(
    suites: Mapping[str, Mapping[str, RunRecord]], pattern: re.Pattern[str]
) -> dict[str, dict[str, RunRecord]]:
    kept = {
        file: {name: run for name, run in suite.items() if pattern.search(name)}
        for file, suite in suites.items()
    }
    if not any(kept.values()):
        every = dict.fromkeys(repr(name) for suite in suites.values() for name in suite)
        names = first_few([*every], _SOME)
        raise InvalidInput(
            f"--filter is {pattern.pattern!r}, which is in none of the names: {names}"
        )
    return kept


def _short(sources: Sequence[str]) -> Sequence[str]:
    """Return the names of files, without their folders if these names differ."""
    names = [Path(source).name or source for source in sources]
    return names if len(set(names)) == len(names) else sources


def code_of_suites(suites: SuiteComparison, fail_on: str | None) -> ExitCode:
    """Return the exit code of all verdicts: worse if any is, else the greatest.

    Benchmarks that a file lacks are undecided: a change in them would go unseen.
    """
    codes = [code_of_family(family, fail_on) for family in suites.families.values()]
    codes += [
        ExitCode.NOT_COMPARABLE if why.code is Code.NOT_COMPARED else ExitCode.NOTHING_MEASURED
        for refused in suites.refused.values()
        for why in refused.values()
    ]
    if any(suites.missing.values()) and fail_on == "undecided":
        codes.append(ExitCode.TARGET_MISSED)
    return ExitCode.WORSE if ExitCode.WORSE in codes else max(codes, default=ExitCode.RESULT)
