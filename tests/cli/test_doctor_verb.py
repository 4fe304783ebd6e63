from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchrigor.cli import fitness_verbs
from benchrigor.model import Code
from benchrigor.session import examine

TURBO = {"name": "turbo", "found": "on", "advice": "turn it off", "code": Code.CHANGING_PACE}


@pytest.fixture(scope="module")
def findings() -> tuple[Any, ...]:
    return examine(seconds=0.02)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, findings: tuple[Any, ...]) -> Any:
    """Let the machine be of a verdict."""

    def be(verdict: str) -> None:
        finding = replace(findings[0], verdict=type(findings[0].verdict)(verdict), **TURBO)
        monkeypatch.setattr(fitness_verbs, "examine", lambda: (finding,))

    return be


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("doubtful", 3), ("unfit", 4)])
def test_the_exit_code_is_the_verdict(cli, found, verdict, code, strict) -> None:
    found(verdict)
    assert cli("doctor").exit_code == code
    done = cli("doctor", "--json")
    assert done.exit_code == code
    assert strict(done.stdout) == {
        "schema": 1,
        "method_version": strict(done.stdout)["method_version"],
        "verdict": verdict,
        "findings": [{**TURBO, "verdict": verdict}],
    }


def test_what_is_unknown_is_fit_and_it_takes_nothing_else(cli, found) -> None:
    found("unknown")
    assert cli("doctor").exit_code == 0
    for word in ("now", "--fix", "--json=yes"):
        assert cli("doctor", word).exit_code == 2


def test_each_finding_is_explained_on_its_page(findings) -> None:
    page = Path(__file__).parents[2] / "docs" / "doctor.md"
    rows = [row for row in page.read_text().splitlines() if row.startswith("| `")]
    told = {name for row in rows for name in re.findall("`([^`]+)`", row.split("|")[1])}
    assert {finding.name for finding in findings} == told


def test_this_machine_is_examined_end_to_end(alone) -> None:
    done = alone("doctor", "--details")
    head, _, *rows = done.stdout.splitlines()
    assert {"fit": 0, "doubtful": 3, "unfit": 4}[head.partition(":")[0]] == done.returncode
    assert {"clock", "noise", "others"} <= {row.split()[1] for row in rows if row[2:3].strip()}
    assert max(map(len, rows)) <= 80
    assert done.stderr == ""
