"""Tables of a run: every reading once, and those kept are those that the number is made of."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.recorded import told

from benchrigor.model import Delays, RunRecord
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
