"""A page has the answer, at most eight rows, and what a reader should do; nothing contradicts."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.texts.causes.report import RECORDS, ended
from tests.texts.causes.report_work import compared

import benchrigor as br
from benchrigor.model import Analysis, Code, Notice, Options, RunRecord, StopReason, Verdict
from benchrigor.model.analysis import Kind
from benchrigor.report import explain, render
from benchrigor.report.fact import page_of, page_of_facts
from benchrigor.report.tables import facts_of_runs

HOUSE_WORDS = ("full pace", "light", "floor", "pieces", "half-width", "stable phase", "invocation")


@pytest.fixture(scope="module", params=RECORDS)
def run(request: pytest.FixtureRequest) -> RunRecord:
    return RECORDS[request.param]()


def fits(text: str, columns: int = 79) -> bool:
    lines = text.splitlines()
    return max(map(len, lines)) <= columns and not any(line != line.rstrip() for line in lines)


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"  [a-z]", line)]


def test_a_page_begins_with_the_line_and_has_at_most_eight_rows(run: RunRecord) -> None:
    text = page_of(run)
    line = " ".join(str(run).partition("no number: ")[0].split())  # the reason has a row
    assert " ".join(text.split()).startswith(line)
    assert len(str(run)) <= 100
    assert len(rows_of(text)) <= 8
    assert fits(text.at(40), 40)
    assert not [word for word in HOUSE_WORDS if word in text]
    assert text.count("\n  ! ") <= len(run.notices)
    assert not re.search(r"\[[a-z]+-[a-z-]+\]", text)


@pytest.mark.parametrize("statistic", ["mean", "min"])
def test_the_line_of_a_run_without_readings_fits_whatever_was_asked(statistic: str) -> None:
    why = Notice.of(Code.NO_DATA, "picture", name_="a workload of a long name " * 4)
    analysis = Analysis(
        metric=br.Metric(name="time", unit="s"), kind=Kind.UNIT_READINGS, n=0, notices=(why,)
    )
    run = RunRecord(
        name="n" * 50,
        seed=1,
        options=Options(statistic=statistic),
        metrics=(analysis.metric,),
        rounds=(),
        analyses=(analysis,),
    )
    assert len(str(run)) <= 100


def test_reports_fit_a_terminal_and_tell_every_notice_once(run: RunRecord) -> None:
    assert fits(explain(run))
    assert fits(render(run))
    flat = " ".join(render(run).split())
    for notice in run.notices:
        assert flat.count(f"[{notice.code}]") == sum(
            each.code is notice.code for each in run.notices
        )


@pytest.mark.parametrize("name", ["latency_ms", "n" * 90])
@pytest.mark.parametrize("size", [1, 400])
def test_a_name_of_any_length_is_apart_from_its_number(name: str, size: int) -> None:
    session = br.Session(br.Options(budget_readings=size), seed=1)
    values = np.random.default_rng(3).normal(5.0, 0.1, size)
    session.tell(
        br.Round(plan=session.ask(), elapsed_ns=10**9, unit_readings={name: values, "m2": values})
    )
    assert all(map(fits, (render(session.result()), explain(session.result()))))
    assert re.search(rf"{name[-10:]}\s+(5\.\d|4\.\d|no number: )", render(session.result()))


@pytest.mark.parametrize("name", ["satisfied", "restarted", "full pace"])
def test_after_the_target_is_reached_no_more_readings_are_needed(name: str) -> None:
    """However many a forecast asks for: it is one of another time."""
    record = RECORDS[name]()
    (analysis, *_), required = record.analyses, 10**7
    estimate = analysis.estimate
    assert estimate is not None
    narrow = replace(estimate, low=0.9999 * estimate.value, high=1.0001 * estimate.value)
    record = replace(record, analyses=(replace(analysis, required=required, estimate=narrow),))
    assert "needed" not in render(record) + page_of(record)


@pytest.mark.parametrize("reason", StopReason)
def test_whatever_the_name_and_the_ending_a_table_fits(reason: StopReason) -> None:
    for name in ("f", "test_of_many_words[and-some-more]", "x" * 200):
        text = page_of_facts(
            facts_of_runs([ended(StopReason.SATISFIED, name="other"), ended(reason, name=name)])
        )
        assert fits(text)
        assert name in "".join(text.splitlines())


@pytest.mark.parametrize("verdict", Verdict)
def test_the_page_of_a_comparison_is_one_page(verdict: Verdict) -> None:
    notices = (
        Notice(code=code, severity=severity, sentence="x")
        for code in Code
        for severity, _ in code.sentences.values()
        if severity != "refusal"
    )
    found = compared(verdict, *notices, names=("old" * 40, "new" * 40))
    text = page_of(found)
    assert text.startswith(("newnewnew", "oldoldold"))  # of two lines
    assert len(rows_of(text)) <= 8
    assert str(verdict) in text


@pytest.mark.parametrize("code", [code for code in Code if code.advice])
def test_an_advice_says_what_to_do_in_everyday_words(code: Code) -> None:
    for sentence in code.advice.values():
        assert sentence.endswith(".")
        assert not [word for word in HOUSE_WORDS if word in sentence]


def test_the_sentences_of_pages_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "codes.md").read_text(encoding="utf-8")
    section = text.partition("## What a page says of a Notice")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(.+) \| (.+) \|$", section, re.MULTILINE))
    where = {"": "", "refused": ", as a refusal", "pairs": ", of two sides in turn"}
    told = {f"{code}`{where[case]}": text for code in Code for case, text in code.advice.items()}
    assert documented == told
