"""A page has the answer, at most eight rows, and what a reader should do; nothing contradicts."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from simulated.estimates import estimated
from tests.texts.causes.report import RECORDS

from benchrigor.model import Code, Comparison, Notice, RunRecord, Verdict
from benchrigor.model.notice import Severity
from benchrigor.report import render
from benchrigor.report.notice_lines import OF_PAIRS, PAGE, REFUSED, chosen
from benchrigor.report.short_page import comparison_page, run_page
from benchrigor.units import Direction

HOUSE_WORDS = ("full pace", "light", "floor", "pieces", "half-width", "stable phase", "invocation")


@pytest.fixture(scope="module", params=RECORDS)
def run(request: pytest.FixtureRequest) -> RunRecord:
    return RECORDS[request.param]()


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"  [a-z]", line)]


def test_a_page_begins_with_the_line_and_has_at_most_eight_rows(run: RunRecord) -> None:
    text = run_page(run)
    assert " ".join(text.split()).startswith(" ".join(str(run).split()))
    assert len(str(run)) <= 100
    assert len(rows_of(text)) <= 8
    assert max(map(len, text.at(40).splitlines())) <= 40
    assert not [word for word in HOUSE_WORDS if word in text]


def test_a_page_tells_what_to_do_and_no_code(run: RunRecord) -> None:
    told = [line for line in run_page(run).splitlines() if line.startswith("  ! ")]
    assert len(told) <= len(run.notices)
    assert not re.search(r"\[[a-z]+-[a-z-]+\]", run_page(run))


@pytest.mark.parametrize("name", ["satisfied", "restarted", "full pace"])
def test_after_the_target_is_reached_no_more_readings_are_needed(name: str) -> None:
    """However many a forecast asks for: it is one of another time."""
    record = RECORDS[name]()
    (analysis, *_), required = record.analyses, 10**7
    estimate = analysis.estimate
    assert estimate is not None
    narrow = replace(estimate, low=0.9999 * estimate.value, high=1.0001 * estimate.value)
    record = replace(record, analyses=(replace(analysis, required=required, estimate=narrow),))
    assert record.decision is not None
    assert "needed" not in render(record) + run_page(record)
    if name == "satisfied":
        assert "reached" in run_page(record)


def test_one_cause_is_told_once() -> None:
    notices = [
        Notice.warning(code, "x")
        for code in (
            Code.FEW_EFFECTIVE,
            Code.HARDLY_UNDISTURBED,
            Code.NOT_CONVERGED,
            Code.DISTURBED,
        )
    ]
    assert {each.code for each in chosen(notices)} == {Code.NOT_CONVERGED, Code.DISTURBED}
    assert chosen([replace(each, severity=Severity.NOTE) for each in notices]) == []


@pytest.mark.parametrize("code", PAGE)
def test_a_sentence_says_what_to_do_in_everyday_words(code: Code) -> None:
    sentence = PAGE[code]
    assert sentence.endswith(".")
    assert ". " in sentence or ", or " in sentence or ": " in sentence
    assert not [word for word in HOUSE_WORDS if word in sentence]


# --- comparisons


@pytest.mark.parametrize("verdict", Verdict)
def test_the_page_of_a_comparison_is_one_page(verdict: Verdict) -> None:
    side = estimated(1.0e-3, 0.9e-3, 1.1e-3)
    notices = tuple(Notice.warning(code, "x") for code in Code)
    found = Comparison(
        statistic="mean",
        direction=Direction.LOWER,
        margin=0.01,
        confidence=0.95,
        paired=True,
        unit="pair",
        baseline=side,
        candidate=side,
        ratio=estimated(1.2, 1.1, 1.3),
        difference=side,
        p_value=0.01,
        p_beyond=0.01,
        verdict=verdict,
        required=20,
        notices=notices,
        elapsed_s=3.0,
        readings_in="s",
        names=("old" * 40, "new" * 40),
    )
    text = comparison_page(found)
    assert " ".join(text.split()).startswith(str(found))
    assert len(rows_of(text)) <= 8
    assert str(verdict) in text


def test_the_sentences_of_pages_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "codes.md").read_text(encoding="utf-8")
    section = text.partition("## What a page says of a Notice")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(.+) \| (.+) \|$", section, re.MULTILINE))
    told = {
        **{f"{code}`": PAGE.get(code, "-") for code in Code},
        **{f"{code}`, as a refusal": text for code, text in REFUSED.items()},
        **{f"{code}`, of two sides in turn": text for code, text in OF_PAIRS.items()},
    }
    assert documented == told
