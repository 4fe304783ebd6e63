"""Without a target that somebody gave there is nothing to miss: a run says its width, no more."""

import json
import re

import pytest

import benchrigor as br
from benchrigor.model import Code, Options
from benchrigor.report import explain, render
from benchrigor.report.run_table import tabulate
from benchrigor.report.short_page import run_page
from benchrigor.testing import FakeClock, SyntheticWorkload

OFTEN_SAID = r"target|missed|reached|wanted|less sure|not-converged|cannot be reached"


def run(**options):
    """Measure noisy work that ends with its budget, far from 2%."""
    clock = FakeClock()
    session = br.Session(Options(budget_s=0.5, **options), seed=1, clock=clock)
    return session.run(SyntheticWorkload(mean=0.01, cv=0.15, seed=1, clock=clock))


def pages(record):
    return [run_page(record), render(record), explain(record), tabulate([record]), str(record)]


def test_a_default_that_is_missed_is_not_mentioned():
    record = run()
    assert record.decision.reason is br.StopReason.TIME_BUDGET
    assert record.estimate().relative_half_width > 0.02
    for shown in pages(record):
        assert not re.search(OFTEN_SAID, str(shown)), shown
    assert Code.NOT_CONVERGED not in {notice.code for notice in record.notices}


@pytest.mark.parametrize("target", [0.02, "2%", 0.03])
def test_a_target_that_is_given_is_missed_even_if_it_is_the_default(target):
    record = run(target=target)
    assert "missed" in str(run_page(record))
    assert "wanted" in str(render(record))
    assert Code.NOT_CONVERGED in {notice.code for notice in record.notices}


def test_what_was_asked_for_is_kept_with_the_record():
    for options in (Options(), Options(target=0.02), Options(target=0.05), Options(target=None)):
        kept = br.Session(options).result().to_dict()
        again = br.RunRecord.from_dict(json.loads(json.dumps(kept))).options
        assert (again, again.asked) == (options, options.asked)
    assert Options().asked is None
    assert Options(target="2%").asked == 0.02


@pytest.mark.parametrize("options", [{}, {"target": 0.02}], ids=["default", "given"])
def test_a_narrow_interval_of_few_readings_is_never_nearly_reached(options):
    """Calls of three seconds that hardly differ."""
    clock = FakeClock()
    session = br.Session(Options(**options), seed=1, clock=clock)
    record = session.run(SyntheticWorkload(mean=3.0, cv=5e-6, seed=1, clock=clock))
    page = " ".join(str(run_page(record)).split())
    assert record.estimate().relative_half_width < 1e-3
    assert "nearly" not in page
    assert ("target ±2 %: reached" in page) == bool(options)
