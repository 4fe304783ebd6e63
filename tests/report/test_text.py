import pytest

import benchrigor as br
from benchrigor.model import RunRecord
from benchrigor.report import explain, render, tabulate
from benchrigor.testing import FakeClock, StepWarmUp, SyntheticWorkload


def run(**given: object) -> RunRecord:
    clock = FakeClock()
    options = br.Options(**{"target": 0.01, "budget_s": 30.0, **given})  # type: ignore[arg-type]
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.1,
        warm_up=StepWarmUp(amplitude=2.0, length=80),
        restarted=options.rounds == "restarted",
        seed=1,
        clock=clock,
    )
    return br.Session(options, seed=1, clock=clock, name="synthetic").run(workload)


RECORDS = {
    "satisfied": run(),
    "out of budget": run(target=1e-5, budget_readings=2000),
    "restarted": run(rounds="restarted"),
    "nothing measured": br.Session(name="empty", seed=1).result(),
    "single reading": run(max_rounds=1, readings_per_round=1),
}


@pytest.mark.parametrize("name", RECORDS)
def test_reports_fit_a_terminal_of_80_columns(name: str) -> None:
    for text in (render(RECORDS[name]), explain(RECORDS[name])):
        assert max(map(len, text.splitlines())) <= 80
        assert not any(line != line.rstrip() for line in text.splitlines())


def test_the_report_shows_number_interval_cut_worth_and_ending() -> None:
    text = render(RECORDS["satisfied"])
    assert "] 95%" in text
    assert "ms [" in text or "µs [" in text
    assert "warm-up 0–79 (median 2.9" in text
    assert "independent ones" in text
    assert "stopped: satisfied" in text


@pytest.mark.parametrize("name", ["out of budget", "single reading", "restarted"])
def test_the_report_shows_every_notice(name: str) -> None:
    flat = " ".join(render(RECORDS[name]).split())
    for notice in RECORDS[name].notices:
        assert notice.sentence in flat
        assert f"[{notice.code}]" in flat


def test_a_report_without_a_number_says_why() -> None:
    assert "no number" in str(RECORDS["single reading"])
    assert "no number: 1 reading, expected at least 2." in render(RECORDS["single reading"])


def test_no_plus_minus_is_printed_for_an_interval() -> None:
    assert not any("±" in render(record) + str(record) for record in RECORDS.values())


def test_the_explanation_retraces_the_number() -> None:
    record = RECORDS["satisfied"]
    analysis, estimate = record.analysis(), record.estimate()
    assert analysis is not None
    assert estimate is not None
    text = explain(record)
    for figure in (
        f"{analysis.n:,} readings were taken in {len(record.rounds)} rounds",
        "Change points at 80",
        f"{analysis.n_kept:,} of {analysis.n:,} readings are kept",
        "time constants of",
        "Standard error",
        "degrees of freedom",
        "ended: satisfied",
    ):
        assert figure in " ".join(text.split())


def test_the_table_has_a_line_per_run() -> None:
    lines = tabulate([RECORDS["satisfied"], RECORDS["restarted"]]).splitlines()
    assert sum(line.startswith("synthetic") for line in lines) == 2
