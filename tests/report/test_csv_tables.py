"""Tables of a run: every reading once, and those kept are those that the number is made of."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.recorded import told

from benchrigor import Session
from benchrigor.model import Delays, Metric, Options, Round, RunRecord
from benchrigor.stats import estimate_mean

Rows = list[dict[str, str]]


@pytest.fixture
def table(cli: Any) -> Callable[[RunRecord, str], Rows]:
    """Return the rows of a table of a run that is exported."""

    def export(record: RunRecord, name: str) -> Rows:
        record.save("record.json")
        assert cli("export", "record.json", "-o", "tables", "--force").exit_code == 0
        return [*csv.DictReader(Path("tables", f"{name}.csv").read_text().splitlines())]

    return export


def column(rows: Rows, name: str, **where: str) -> list[str]:
    return [row[name] for row in rows if all(row[key] == cell for key, cell in where.items())]


def test_what_is_kept_is_what_the_number_is_made_of(table) -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(900) < 90, 2.0, 1.0) + rng.normal(0.0, 0.05, 900)
    record = told(*np.split(series, 3), trim=(0.1, 0.2))
    rows = table(record, "readings")
    assert [*map(float, column(rows, "value"))] == series.tolist()
    places = zip(column(rows, "round"), column(rows, "index"), strict=True)
    assert [(int(a), int(b)) for a, b in places] == [divmod(n, 300) for n in range(900)]
    kept = [*map(float, column(rows, "value", kept="yes"))]
    estimate = record.estimate()
    assert estimate is not None
    assert (len(kept), estimate.value) == (630, estimate_mean(kept).value)
    assert {*column(rows, "phase", kept="yes")} == {"stable"}


def test_margins_and_a_cold_first_reading_are_not_kept(table) -> None:
    rng = np.random.default_rng(1)
    record = told(np.where(np.arange(1000) < 100, 2.0, 1.0) + rng.normal(0.0, 0.05, 1000))
    rows = table(record, "readings")
    assert column(rows, "phase") == ["warm-up"] * 100 + ["stable"] * 900
    assert len(column(rows, "kept", kept="yes")) == record.analyses[0].n_kept == 850
    rows = table(told(np.append(9.0, rng.normal(1.0, 0.01, 14))), "readings")
    assert column(rows, "kept") == ["no"] + ["yes"] * 14


def test_restarted_rounds_have_phases_of_their_own_and_red_rounds_have_none(table) -> None:
    rng = np.random.default_rng(2)
    units = [rng.normal(1.0, 0.1, n) for n in (40, 40, 60)]
    delays = Delays(stops=[40], seconds={"run queue": [30.0]})
    options = {"rounds": "restarted", "trim": 0.1, "red_rounds": "repeat", "max_rounds": 2}
    record = told(*units, delays={1: delays}, **options)
    assert record.red_rounds == (1,)
    rows = table(record, "readings")
    assert [column(rows, "round").count(each) for each in "012"] == [40, 40, 60]
    assert [column(rows, "round", kept="yes").count(each) for each in "012"] == [32, 0, 48]
    assert {*column(rows, "phase", round="1")} == {"red round"}
    found = table(record, "rounds")
    assert column(found, "counts") == ["yes", "no", "yes"]
    assert column(found, "delay_s") == ["", "30.0", ""]


def test_rounds_of_various_work_say_whether_they_count(table) -> None:
    session = Session(Options(work=(1, 10_000), target=1e-9, max_rounds=30), seed=3)
    while (plan := session.ask()) is not None:
        seconds = 0.05 + (plan.work or 0.0) / 500
        session.tell(Round(plan=plan, elapsed_ns=10**9, readings={"time": seconds}))
    record = session.result()
    rows = table(record, "rounds")
    assert [*map(float, column(rows, "work"))] == [each.plan.work for each in record.rounds]
    left_out = tuple(map(int, column(rows, "round", counts="no")))
    assert left_out == record.analyses[0].left_out != ()


def test_each_metric_has_its_number_or_says_why_it_has_none(table) -> None:
    metrics = [Metric(name="time", unit="s"), Metric(name="rate", unit="1/s", must_satisfy=False)]
    values = np.random.default_rng(4).normal(1.0, 0.1, 12).tolist()
    record = told(*values, metrics=metrics, statistic="median")
    time, rate = table(record, "summary")
    estimate = record.estimate("time")
    assert estimate is not None
    assert [float(time[each]) for each in ("value", "low", "high", "n", "confidence")] == [
        estimate.value, estimate.low, estimate.high, 12, 0.95,
    ]  # fmt: skip
    assert (time["unit"], time["statistic"], time["kind"]) == ("s", "median", "readings")
    assert "not-converged" in time["notices"].split()
    assert (rate["value"], rate["notices"]) == ("", "no-data")
