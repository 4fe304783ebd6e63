"""A page has the answer, at most eight rows, and what a reader should do; nothing contradicts."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated.estimates import estimated
from simulated.paced import paced

import benchrigor as br
from benchrigor.model import Code, Comparison, Decision, Notice, RunRecord, StopReason, Verdict
from benchrigor.model.notice import Severity
from benchrigor.report import render
from benchrigor.report.notice_lines import OF_PAIRS, PAGE, REFUSED, chosen, chosen_of_run
from benchrigor.report.short_page import MOST_ROWS, comparison_page, run_page
from benchrigor.testing import FakeClock, SyntheticWorkload
from benchrigor.units import Direction

HOUSE_WORDS = ("full pace", "light", "floor", "pieces", "half-width", "stable phase", "invocation")


def measured(**given: object) -> RunRecord:
    clock = FakeClock()
    options = br.Options(**{"target": 0.01, "budget_s": 30.0, **given})  # type: ignore[arg-type]
    restarted = options.rounds == "restarted"
    workload = SyntheticWorkload(mean=0.001, cv=0.1, restarted=restarted, seed=1, clock=clock)
    return br.Session(options, seed=1, clock=clock, name="json.dumps").run(workload)


RUNS: dict[str, Callable[[], RunRecord]] = {
    "quiet": lambda: paced(slow=1.003),
    "slow": paced,
    "busy": lambda: paced(delay=0.2),
    "in pieces": lambda: paced(pieces=4, budget_readings=None, budget_s=0.8),
    "without references": lambda: paced(references=False),
    "satisfied": measured,
    "missed": lambda: measured(target=1e-5, budget_readings=2000),
    "restarted": lambda: measured(rounds="restarted"),
    "of the median": lambda: measured(statistic="median"),
    "one reading": lambda: measured(max_rounds=1),
    "nothing": lambda: br.Session(name="empty", seed=1).result(),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> RunRecord:
    return RUNS[request.param]()


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"  [a-z]", line)]


def test_a_page_begins_with_the_line_and_has_at_most_eight_rows(run: RunRecord) -> None:
    text = run_page(run)
    assert " ".join(text.split()).startswith(" ".join(str(run).split()))
    assert len(str(run)) <= 100
    assert len(rows_of(text)) <= MOST_ROWS
    assert max(map(len, text.at(40).splitlines())) <= 40
    assert not [word for word in HOUSE_WORDS if word in text]


def test_a_page_tells_what_to_do_and_no_code(run: RunRecord) -> None:
    told = [line for line in run_page(run).splitlines() if line.startswith("  ! ")]
    assert len(told) == len(chosen_of_run(run)) <= len(run.notices)
    assert not re.search(r"\[[a-z]+-[a-z-]+\]", run_page(run))


def test_the_page_says_how_fast_the_machine_ran() -> None:
    record = paced(slow=1.003, delay=0.005)
    disturbed = Notice.warning(Code.HARDLY_UNDISTURBED, "3 of 30 readings are undisturbed.")
    record = replace(record, session_notices=(*record.session_notices, disturbed))
    assert re.search(r"machine +at (99|100)% of its full speed", run_page(record))
    assert "disturbed nearly all" not in run_page(record)
    assert re.search(r"machine +at 79% of its full speed", run_page(paced()))
    assert "of its full speed" not in run_page(paced(references=False))


@pytest.mark.parametrize(("first_s", "kind"), [(0.001, "the first call"), (0.002, "a call")])
def test_a_page_says_of_which_calls_fresh_processes_tell(first_s: float, kind: str) -> None:
    record = RUNS["one reading"]()
    (finished,) = record.rounds
    facts = {"startup_s": 0.1, "first_call_s": first_s}
    readings = {"time": np.array([0.001])}
    rounds = (replace(finished, facts=facts, unit_readings=readings),)
    record = replace(record, rounds=rounds)
    assert f"1 reading, each {kind} in a fresh process" in run_page(record)


@pytest.mark.parametrize("name", ["satisfied", "restarted", "quiet"])
def test_after_the_target_is_reached_no_more_readings_are_needed(name: str) -> None:
    """However many a forecast asks for: it is one of another time."""
    record = RUNS[name]()
    (analysis, *_), required = record.analyses, 10**7
    estimate = analysis.estimate
    assert estimate is not None
    narrow = replace(estimate, low=0.9999 * estimate.value, high=1.0001 * estimate.value)
    record = replace(record, analyses=(replace(analysis, required=required, estimate=narrow),))
    assert record.decision is not None
    assert "needed" not in render(record) + run_page(record)
    if name == "satisfied":
        assert "reached" in run_page(record)


@pytest.mark.slow
def test_the_target_of_undisturbed_readings_says_so() -> None:
    """Else its time would be a third one, beside the headline and that just now."""
    page = " ".join(run_page(RUNS["busy"]()).split())
    assert re.search(r"target ±0.1 %: missed, with .* µs without disturbed readings", page)
    assert " measured" not in page
    assert re.search(r" of the [\d.]+ µs measured", " ".join(run_page(RUNS["slow"]()).split()))


def test_a_missed_target_says_what_to_do() -> None:
    text = " ".join(run_page(RUNS["missed"]()).split())
    assert "±0.001 %: missed, with ±" in text
    assert "The number is less sure than asked for. Measure longer (--budget)." in text


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (StopReason.TIME_BUDGET, "Measure longer (--budget)."),
        (StopReason.SATISFIED, "Ask for a narrower interval (--target)."),
        (StopReason.EXHAUSTED, "It ended by itself: let it give more readings."),
        (StopReason.OUT_OF_REACH, "More readings would not narrow this"),
    ],
)
def test_a_run_that_ended_before_its_budget_is_not_to_be_given_more(
    reason: StopReason, said: str
) -> None:
    few = Notice.warning(Code.FEW_INVOCATIONS, "6 invocations differ.")
    missed = Notice.warning(Code.NOT_CONVERGED, "The half-width is 9% of the value.")
    record = RUNS["missed"]()
    record = replace(
        record,
        decision=Decision(stop=True, reason=reason),
        session_notices=(few, missed),
        analyses=tuple(replace(each, notices=()) for each in record.analyses),
    )
    text = " ".join(run_page(record).split())
    assert said in text
    assert (reason is StopReason.OUT_OF_REACH) == ("would not narrow this" in text)


def test_the_headline_says_that_it_is_at_full_speed() -> None:
    assert "at the full speed of this machine" in " ".join(run_page(RUNS["slow"]()).split())
    assert "at the full speed" not in " ".join(run_page(paced(references=False)).split())


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


def drifting_pairs() -> Comparison:
    """Return two sides that slow down alike, so that their ratio alone is stable."""
    rng = np.random.default_rng(12)
    drift = 1.0 + np.arange(3000) / 6_000 + np.abs(np.cumsum(rng.normal(0.0, 0.002, 3000)))
    old, new = (level * drift * rng.normal(1.0, 0.05, 3000) for level in (1e-5, 1.2e-5))
    found = br.compare_runs(old, new, paired=True, direction="lower")
    return replace(found, readings_in="s", names=("json", "orjson"))


def test_times_with_intervals_are_not_called_unknown() -> None:
    found = drifting_pairs()
    assert Code.NO_STABLE_PHASE in {each.code for each in found.notices}
    assert found.baseline is not None
    text = comparison_page(found)
    assert re.search(r"baseline +json: .* \[", text)
    assert "not known" not in " ".join([text, *map(str, found.notices)])
    assert "the ratio is not affected" in " ".join(text.split())


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
    assert len(rows_of(text)) <= MOST_ROWS
    assert str(verdict) in text
    is_open = verdict is Verdict.UNDECIDED
    assert ("less sure than asked for" in text) == is_open
    assert ("would decide" in " ".join(text.split())) == is_open


def test_the_sentences_of_pages_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "codes.md").read_text(encoding="utf-8")
    section = text.partition("## What a page says of a Notice")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(.+) \| (.+) \|$", section, re.MULTILINE))
    assert documented == {
        **{f"{code}`": PAGE.get(code, "-") for code in Code},
        **{f"{code}`, as a refusal": text for code, text in REFUSED.items()},
        **{f"{code}`, of two sides in turn": text for code, text in OF_PAIRS.items()},
    }
