import re
from functools import cache

import numpy as np
import pytest
from tests.texts.causes.report import RECORDS

import benchrigor as br
from benchrigor.model import Code, RunRecord
from benchrigor.model.text import percent
from benchrigor.report import explain, render


@cache
def record_of(name: str) -> RunRecord:
    return RECORDS[name]()


@pytest.mark.parametrize("name", RECORDS)
def test_reports_fit_a_terminal_of_80_columns(name: str) -> None:
    for text in (render(record_of(name)), explain(record_of(name))):
        assert max(map(len, text.splitlines())) <= 79
        assert not any(line != line.rstrip() for line in text.splitlines())


LONG = [
    "latency_ms",
    "requests_that_were_answered_in_time",
    "a_metric_with_a_name_of_forty_characters_",
    "n" * 90,
]


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("size", [1, 400])
def test_a_name_of_any_length_is_apart_from_its_number(name: str, size: int) -> None:
    session = br.Session(br.Options(budget_readings=size), seed=1)
    values = np.random.default_rng(3).normal(5.0, 0.1, size)
    session.tell(
        br.Round(plan=session.ask(), elapsed_ns=10**9, unit_readings={name: values, "m2": values})
    )
    for text in (render(session.result()), explain(session.result())):
        assert max(map(len, text.splitlines())) <= 79
    assert re.search(rf"{name[-10:]}\s+(5\.\d|4\.\d|no number: )", render(session.result()))


@pytest.mark.parametrize("name", ["out of budget", "one reading", "restarted"])
def test_the_report_tells_every_notice_once(name: str) -> None:
    flat = " ".join(render(record_of(name)).split())
    for notice in record_of(name).notices:
        assert flat.count(f"[{notice.code}]") == 1
        assert (notice.sentence in flat) == (notice.code is not Code.NOT_CONVERGED)


@pytest.mark.parametrize(
    ("share", "shown"), [(12.4, "1,240%"), (9.99, "999%"), (9.996, "1,000%"), (0.0124, "1.24%")]
)
def test_shares_are_never_shown_with_an_exponent(share: float, shown: str) -> None:
    assert percent(share) == shown
