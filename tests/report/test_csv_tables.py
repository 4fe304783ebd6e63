"""Tables of a run: every reading once, and those kept are those that the number is made of."""

from typing import Any

import numpy as np
import pytest

from benchrigor.model import Delays, Metric, Options, Round, RunRecord
from benchrigor.report.csv_tables import reading_rows, round_rows, summary_rows
from benchrigor.session import Engine
from benchrigor.stats import estimate_mean


def told(options: Options, *rounds: dict[str, Any], metrics: Any = None) -> RunRecord:
    engine = Engine(options, metrics, recorded=True)
    for each in rounds:
        plan = engine.ask()
        assert plan is not None
        engine.tell(Round(plan=plan, elapsed_ns=1_500_000_000, **each))
    return engine.result()


def dicts(rows: Any) -> list[dict[str, Any]]:
    head, *rest = rows
    return [dict(zip(head, row, strict=True)) for row in rest]


def test_what_is_kept_is_what_the_number_is_made_of() -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(900) < 90, 2.0, 1.0) + rng.normal(0.0, 0.05, 900)
    units = [{"unit_readings": {"time": part}} for part in np.split(series, 3)]
    record = told(Options(trim=(0.1, 0.2), target=1e-9, max_rounds=3), *units)
    rows = dicts(reading_rows(record))
    assert [row["value"] for row in rows] == series.tolist()
    assert [(row["round"], row["index"]) for row in rows] == [divmod(n, 300) for n in range(900)]
    kept = [row["value"] for row in rows if row["kept"] == "yes"]
    estimate = record.estimate()
    assert estimate is not None
    assert (len(kept), estimate.value) == (630, estimate_mean(kept).value)
    assert {row["phase"] for row in rows if row["kept"] == "yes"} == {"stable"}


def test_detected_phases_are_named_and_margins_are_not_kept() -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(1000) < 100, 2.0, 1.0) + rng.normal(0.0, 0.05, 1000)
    record = told(Options(max_rounds=1, target=1e-9), {"unit_readings": {"time": series}})
    rows = dicts(reading_rows(record))
    assert [row["phase"] for row in rows] == ["warm-up"] * 100 + ["stable"] * 900
    assert sum(row["kept"] == "yes" for row in rows) == record.analyses[0].n_kept == 850


def test_a_cold_first_reading_is_not_kept_although_nothing_was_searched() -> None:
    series = np.append(9.0, np.random.default_rng(1).normal(1.0, 0.01, 14))
    record = told(Options(max_rounds=1, target=1e-9), {"unit_readings": {"time": series}})
    rows = dicts(reading_rows(record))
    assert [row["kept"] for row in rows] == ["no"] + ["yes"] * 14
    assert record.analyses[0].n_kept == 14


def test_restarted_rounds_have_phases_of_their_own_and_red_rounds_have_none() -> None:
    rng = np.random.default_rng(2)
    units = [{"unit_readings": {"time": rng.normal(1.0, 0.1, n)}} for n in (40, 50, 60)]
    delayed = Delays(stops=[40], seconds={"run queue": [30.0]})
    units[1] |= {"unit_readings": {"time": rng.normal(1.0, 0.1, 40)}, "delays": delayed}
    options = Options(rounds="restarted", trim=0.1, red_rounds="repeat", max_rounds=2, target=1e-9)
    record = told(options, *units)
    assert record.red_rounds == (1,)
    rows = dicts(reading_rows(record))
    assert [sum(row["round"] == each for row in rows) for each in range(3)] == [40, 40, 60]
    kept = [row for row in rows if row["kept"] == "yes"]
    assert [sum(row["round"] == each for row in kept) for each in range(3)] == [32, 0, 48]
    assert {row["phase"] for row in rows if row["round"] == 1} == {"red round"}
    found = dicts(round_rows(record))
    assert [row["counts"] for row in found] == ["yes", "no", "yes"]
    assert [row["delay_s"] for row in found] == [None, 30.0, None]


def test_rounds_of_various_work_say_whether_they_count() -> None:
    engine = Engine(Options(work=(1, 10_000), target=1e-9, max_rounds=30), seed=3)
    while (plan := engine.ask()) is not None:
        seconds = 0.05 + float(plan.work or 0.0) / 500
        engine.tell(Round(plan=plan, elapsed_ns=10**9, readings={"time": seconds}))
    record = engine.result()
    (analysis,), rows = record.analyses, dicts(round_rows(record))
    assert list(reading_rows(record))[1:] == []
    assert [row["work"] for row in rows] == [each.plan.work for each in record.rounds]
    assert [row["duration_s"] for row in rows] == [each.duration_s for each in record.rounds]
    left_out = tuple(row["round"] for row in rows if row["counts"] == "no")
    assert left_out == analysis.left_out != ()
    (summed,) = dicts(summary_rows(record))
    assert (summed["metric"], summed["kind"], summed["statistic"]) == (
        "speed",
        "work amounts",
        "mean",
    )


def test_each_metric_has_its_number_or_says_why_it_has_none() -> None:
    rng = np.random.default_rng(4)
    metrics = [Metric(name="time", unit="s"), Metric(name="rate", unit="1/s", must_satisfy=False)]
    rounds = [{"readings": {"time": each}} for each in rng.normal(1.0, 0.1, 12).tolist()]
    options = Options(max_rounds=12, target=1e-9, statistic="median", budget_s=60.0)
    record = told(options, *rounds, metrics=metrics)
    time, rate = dicts(summary_rows(record))
    estimate = record.estimate("time")
    assert estimate is not None
    assert [time[each] for each in ("value", "low", "high", "n", "confidence")] == [
        estimate.value, estimate.low, estimate.high, 12, 0.95,
    ]  # fmt: skip
    assert (time["unit"], time["statistic"], time["kind"]) == ("s", "median", "readings")
    assert "not-converged" in time["notices"].split()
    assert (rate["value"], rate["notices"]) == (None, "no-data")


@pytest.mark.parametrize("n", [1, 5])
def test_few_readings_without_a_cut_have_no_phase(n: int) -> None:
    record = told(Options(max_rounds=1), {"unit_readings": {"time": [1.0 + i for i in range(n)]}})
    rows = dicts(reading_rows(record))
    assert [(row["phase"], row["kept"]) for row in rows] == [("", "yes")] * n
