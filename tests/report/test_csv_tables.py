"""Tables of a run: every reading once, and those kept are those that the number is made of."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.model import Delays, Metric, Options, Round, RunRecord
from benchrigor.session import Engine
from benchrigor.stats import estimate_mean

Rows = list[dict[str, str]]


def told(
    options: Options, *readings: Any, delays: Delays | None = None, metrics: Any = None
) -> RunRecord:
    """Return the record of rounds with these readings, of which the second one waited so long."""
    engine = Engine(options, metrics, recorded=True)
    for index, each in enumerate(readings):
        plan = engine.ask()
        assert plan is not None
        of = {"unit_readings": {"time": each}} if np.ndim(each) else {"readings": {"time": each}}
        found = delays if index == 1 else None
        engine.tell(Round(plan=plan, elapsed_ns=1_500_000_000, delays=found, **of))  # type: ignore[arg-type]
    return engine.result()


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
    record = told(Options(trim=(0.1, 0.2), target=1e-9, max_rounds=3), *np.split(series, 3))
    rows = table(record, "readings")
    assert [*map(float, column(rows, "value"))] == series.tolist()
    places = zip(column(rows, "round"), column(rows, "index"), strict=True)
    assert [(int(a), int(b)) for a, b in places] == [divmod(n, 300) for n in range(900)]
    kept = [*map(float, column(rows, "value", kept="yes"))]
    estimate = record.estimate()
    assert estimate is not None
    assert (len(kept), estimate.value) == (630, estimate_mean(kept).value)
    assert {*column(rows, "phase", kept="yes")} == {"stable"}


def test_detected_phases_are_named_and_margins_are_not_kept(table) -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(1000) < 100, 2.0, 1.0) + rng.normal(0.0, 0.05, 1000)
    record = told(Options(max_rounds=1, target=1e-9), series)
    rows = table(record, "readings")
    assert column(rows, "phase") == ["warm-up"] * 100 + ["stable"] * 900
    assert len(column(rows, "kept", kept="yes")) == record.analyses[0].n_kept == 850


def test_a_cold_first_reading_is_not_kept_although_nothing_was_searched(table) -> None:
    series = np.append(9.0, np.random.default_rng(1).normal(1.0, 0.01, 14))
    record = told(Options(max_rounds=1, target=1e-9), series)
    assert column(table(record, "readings"), "kept") == ["no"] + ["yes"] * 14
    assert record.analyses[0].n_kept == 14


def test_restarted_rounds_have_phases_of_their_own_and_red_rounds_have_none(table) -> None:
    rng = np.random.default_rng(2)
    units = [rng.normal(1.0, 0.1, n) for n in (40, 40, 60)]
    delays = Delays(stops=[40], seconds={"run queue": [30.0]})
    options = Options(rounds="restarted", trim=0.1, red_rounds="repeat", max_rounds=2, target=1e-9)
    record = told(options, *units, delays=delays)
    assert record.red_rounds == (1,)
    rows = table(record, "readings")
    assert [column(rows, "round").count(each) for each in "012"] == [40, 40, 60]
    assert [column(rows, "round", kept="yes").count(each) for each in "012"] == [32, 0, 48]
    assert {*column(rows, "phase", round="1")} == {"red round"}
    found = table(record, "rounds")
    assert column(found, "counts") == ["yes", "no", "yes"]
    assert column(found, "delay_s") == ["", "30.0", ""]


def test_rounds_of_various_work_say_whether_they_count(table) -> None:
    engine = Engine(Options(work=(1, 10_000), target=1e-9, max_rounds=30), seed=3)
    while (plan := engine.ask()) is not None:
        seconds = 0.05 + float(plan.work or 0.0) / 500
        engine.tell(Round(plan=plan, elapsed_ns=10**9, readings={"time": seconds}))
    record = engine.result()
    (analysis,), rows = record.analyses, table(record, "rounds")
    assert table(record, "readings") == []
    assert [*map(float, column(rows, "work"))] == [each.plan.work for each in record.rounds]
    assert [*map(float, column(rows, "duration_s"))] == [e.duration_s for e in record.rounds]
    assert tuple(map(int, column(rows, "round", counts="no"))) == analysis.left_out != ()
    (summed,) = table(record, "summary")
    of = [summed[name] for name in ("metric", "kind", "statistic")]
    assert of == ["speed", "work amounts", "mean"]


def test_each_metric_has_its_number_or_says_why_it_has_none(table) -> None:
    metrics = [Metric(name="time", unit="s"), Metric(name="rate", unit="1/s", must_satisfy=False)]
    options = Options(max_rounds=12, target=1e-9, statistic="median", budget_s=60.0)
    rng = np.random.default_rng(4)
    record = told(options, *rng.normal(1.0, 0.1, 12).tolist(), metrics=metrics)
    time, rate = table(record, "summary")
    estimate = record.estimate("time")
    assert estimate is not None
    assert [float(time[each]) for each in ("value", "low", "high", "n", "confidence")] == [
        estimate.value, estimate.low, estimate.high, 12, 0.95,
    ]  # fmt: skip
    assert (time["unit"], time["statistic"], time["kind"]) == ("s", "median", "readings")
    assert "not-converged" in time["notices"].split()
    assert (rate["value"], rate["notices"]) == ("", "no-data")


def test_few_readings_without_a_cut_have_no_phase(table) -> None:
    rows = table(told(Options(max_rounds=1), [1.0, 2.0, 3.0, 4.0, 5.0]), "readings")
    assert [(row["phase"], row["kept"]) for row in rows] == [("", "yes")] * 5
