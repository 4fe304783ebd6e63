"""Texts of a gate: each verdict, benchmarks left out, and refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.gate.suites import SimulatedSuite, gate_of
from tests.gate.test_ratios import passed, told
from tests.texts.rendering import run, tried

from benchrigor.gate import Sources
from benchrigor.report.fact import facts_of
from benchrigor.report.figures import markdown_of

QUIET = {f"tests/test_shop.py::test_{index}": 0.005 for index in range(4)}
FIRST, SECOND, *_ = QUIET


def gate(changes: dict[str, float], copy: dict[str, float] | None = None) -> str:
    suite = SimulatedSuite(QUIET, changes=changes, of_copy=copy)
    return str(gate_of(suite, seed=1, budget_s=30.0))


def markdown() -> str:
    suite = SimulatedSuite(QUIET, changes={FIRST: 0.1})
    return markdown_of(facts_of(gate_of(suite, seed=1, budget_s=30.0)))


def broken() -> str:
    old = passed(both=1.0, gone=1.0, breaks=1.0)
    new = replace(passed(both=1.0, added=1.0), failed={"breaks": "boom", "always": "bad"})
    return str(told(replace(old, failed={"always": "bad"}), new).result())


CAUSES = {
    "one is worse": partial(gate, {FIRST: 0.1, SECOND: -0.1}),
    "copies differ": partial(gate, {FIRST: 0.1}, {SECOND: 0.1}),
    "all copies differ a little": partial(gate, {}, dict.fromkeys(QUIET, 0.009)),
    "in Markdown": markdown,
    "benchmarks that one side lacks or breaks": broken,
    "no time above 0": lambda: str(told(passed(a=0.0), passed(a=0.0)).result()),
    "nothing in common": lambda: str(told(passed(a=1.0), passed(b=1.0)).result()),
    "nothing to compare": partial(tried, Sources, {"words": ("pytest",)}),
    "an interpreter without a place": partial(
        run, "gate", "--python", "python3", "--python", "python4", "--", "make"
    ),
    "no program": partial(
        run, "gate", "--seed", "1", "--old", ".", "--new", ".", "--", "no-such-program"
    ),
    "nothing printed": partial(
        run, "gate", "--seed", "1", "--old", ".", "--new", ".", "--", "true"
    ),
}
