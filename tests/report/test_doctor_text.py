from __future__ import annotations

from benchrigor.model import Code
from benchrigor.model.finding import Finding, Fitness
from benchrigor.report.doctor_text import render_findings

FOUND = [
    Finding(name="clock", found="tsc", verdict=Fitness.OK),
    Finding(name="hot", found="no sensor", verdict=Fitness.UNKNOWN),
    Finding(
        name="turbo",
        found="on",
        verdict=Fitness.DOUBTFUL,
        advice="turn it off, " * 9,
        code=Code.CHANGING_PACE,
    ),
    Finding(name="waiting", found="run delay 50%", verdict=Fitness.UNFIT, advice="wait"),
]


def test_the_worst_comes_first_and_what_is_unknown_last() -> None:
    lines = render_findings(FOUND).splitlines()
    assert lines[0] == "unfit: what is measured here says little"
    assert [line[2:4].strip() for line in lines[2:] if line[2] != " "] == ["✗", "!", "✓", "?"]
    assert lines[3] == "             → wait"
    assert max(map(len, lines)) <= 79
    assert "[changing-pace]" in render_findings(FOUND)


def test_what_is_unknown_makes_no_machine_doubtful() -> None:
    assert render_findings(FOUND[:2]).startswith("fit: measure here\n")
    assert render_findings(FOUND[:3]).startswith("doubtful: ")


def test_a_long_name_is_apart_from_what_was_found() -> None:
    long = Finding(name="n" * 90, found="on", verdict=Fitness.OK)
    lines = render_findings([*FOUND, long]).splitlines()
    assert max(map(len, lines)) <= 79
    assert any(line.endswith("n  on") for line in lines)
