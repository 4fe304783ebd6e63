"""What people see of the pace of the machine: headline, page, explanation, table, JSON."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from simulated.estimates import estimated
from simulated.paced import TRUE_S, paced

import benchrigor as br
from benchrigor.cli.output import summary
from benchrigor.model import Code, RunRecord
from benchrigor.model.text import percent, show_estimate, show_modes, show_short, show_value
from benchrigor.report import explain, render
from benchrigor.report.pace_text import show_pace
from benchrigor.report.run_table import tabulate


@pytest.fixture(scope="module")
def slow() -> RunRecord:
    return paced()


def full_pace(record: RunRecord) -> br.Estimate:
    found = record.at_full_pace()
    assert found is not None
    return found


def headline(record: RunRecord) -> br.Estimate:
    found = record.headline()
    assert found is not None
    return found


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_line_leads_with_full_speed_and_tells_what_was_measured(slow: RunRecord) -> None:
    measured = slow.estimate()
    assert measured is not None
    now = show_value(measured.value, "s")
    found = slow.analysis()
    assert found is not None
    modes = show_modes(found.modes, "s")  # the paces of the machine
    assert str(slow) == f"json  {show_short(headline(slow), 's')}  ({modes}; {now} just now)"
    low, high = headline(slow).low, headline(slow).high
    assert low <= TRUE_S <= high < measured.low


def test_beside_waiting_the_line_tells_what_all_readings_give() -> None:
    record = paced(delay=0.2)
    analysis = record.analysis()
    assert analysis is not None
    assert analysis.disturbed is not None
    assert analysis.disturbed.estimate is not None
    waiting = show_value(analysis.disturbed.estimate.value, "s")
    assert str(record).endswith(f"; {waiting} just now)")


def test_at_full_speed_the_line_has_one_number() -> None:
    record = paced(slow=1.003)
    assert str(record) == f"json  {show_short(headline(record), 's')}"
    shown = f"headline {show_estimate(full_pace(record), 's')}; the machine ran at 100% of its"
    assert shown in words(render(record))


def test_a_number_beyond_the_interval_of_the_other_is_told() -> None:
    """The moments at full pace may tell another level than a run whose mean pace is full."""
    record = paced(slow=1.003)
    analysis = record.analysis()
    assert analysis is not None
    found = headline(record)
    ends = {name: 0.5 * getattr(found, name) for name in ("value", "low", "high")}
    other = replace(analysis, at_full_pace=replace(found, **ends))
    assert " µs just now)" in str(replace(record, analyses=(other,)))


def test_without_a_reference_nobody_speaks_of_full_pace() -> None:
    record = paced(references=False)
    assert record.at_full_pace() is None
    for text in (str(record), render(record), explain(record), tabulate([record])):
        assert "full speed" not in text


def test_the_page_tells_the_pace_over_the_run(slow: RunRecord) -> None:
    analysis = slow.analysis()
    assert analysis is not None
    assert analysis.pace is not None
    shown = f"  headline {show_estimate(full_pace(slow), 's')}; {show_pace(analysis.pace)}"
    assert words(shown) in words(render(slow))
    assert "the machine ran at 79% of its full speed, 78 to 80%" in words(render(slow))
    assert math.exp(-math.log(1.6) / 2.0) == pytest.approx(analysis.pace.mean, rel=0.01)


@pytest.mark.slow
def test_how_the_figure_came_to_be_is_explained(slow: RunRecord) -> None:
    analysis, told = slow.analysis(), words(explain(slow))
    assert analysis is not None
    pace = analysis.pace
    assert pace is not None
    assert f"It takes {show_value(pace.full_s['interpreter'], 's')} at full speed" in told
    assert "full_speed.json" in told
    assert show_pace(pace) in told
    assert f"{pace.sensitivity:.2f}% ± {pace.sensitivity_sd:.2f}% longer" in told
    assert "from segments between fast and between slow references" in told
    measured = slow.estimate()
    assert measured is not None
    assert f"{full_pace(slow).value / measured.value:.3g} of what was measured" in told
    assert f"At full speed: {show_estimate(full_pace(slow), 's')}." in told
    distance = percent(pace.away * pace.sensitivity_sd, digits=2)
    assert f"{pace.at_full:,} segments of readings lie between two references within 10%" in told
    assert "At the fastest level of this run the reference takes as long as at full speed." in told
    own = percent(pace.error, digits=2)
    assert f"{own} from blocks of time; {distance} from the sensitivity" in told
    assert "2% between runs" in told
    assert "since the pace moved too little to tell more" in words(explain(paced(slow=1.003)))
    assert "or that of the median where it is greater" in words(explain(paced(statistic="median")))


def test_where_the_reference_does_not_fit_a_notice_says_so_in_each_place() -> None:
    record = paced(sensitivity=0.1)
    assert [each.code for each in record.notices].count(Code.REFERENCE_UNLIKE) == 1
    for text in (render(record), explain(record)):
        assert text.count("[reference-unlike]") == 1
    assert "4% between runs" in words(explain(record))


def test_a_figure_that_is_hardly_known_is_shown_although_it_is_the_same() -> None:
    record = paced(sensitivity=0.0)
    analysis = record.analysis()
    assert analysis is not None
    assert analysis.pace is not None
    assert analysis.pace.factor == pytest.approx(1.0, abs=0.009)
    assert f"headline {show_estimate(full_pace(record), 's')}" in words(render(record))


def test_of_a_run_in_pieces_the_levels_at_full_pace_are_shown() -> None:
    record = paced(pieces=4, budget_readings=None, budget_s=0.8)
    assert str(record).startswith(f"json  {show_short(headline(record), 's')}")
    told = words(explain(record))
    shown = told.split("Levels of the pieces at full speed: ")[1].split(". ")[0]
    levels = [float(each.removesuffix(" µs")) for each in shown.split(", ")]
    assert levels == pytest.approx([1e6 * TRUE_S] * 4, rel=0.03)
    assert "that of the mean of 4 levels;" in told
    assert "1.5% between processes" in told


def test_a_speed_is_shown_at_full_pace_on_the_page_and_in_the_headline(
    slow: RunRecord, of_pairs: Callable[..., RunRecord]
) -> None:
    work = 1e6 * np.arange(1.0, 31.0)
    record = of_pairs(work, 0.1 + work / 2e7 * np.random.default_rng(1).normal(1.0, 0.02, 30))
    (analysis,), own = record.analyses, slow.analysis()
    assert own is not None
    speed = estimated(26e6, 24e6, 28e6)
    record = replace(record, analyses=(replace(analysis, pace=own.pace, at_full_pace=speed),))
    assert str(record).split("  ")[1] == "26.0 MB/s ±7.7 %"
    assert "headline 26.0 MB/s [24.0, 28.0] 95%; the machine ran at 79%" in words(render(record))
    assert "At full speed: 26.0 MB/s [24.0, 28.0] 95%." in words(explain(record))


@pytest.mark.slow
def test_the_table_leads_with_it_too(slow: RunRecord) -> None:
    head, first, second, *_ = tabulate([slow, paced(references=False)]).splitlines()
    assert head.split() == ["name", "mean", "just", "now", "readings", "ended"]
    measured = slow.estimate()
    assert measured is not None
    figures = f"{show_short(headline(slow), 's')} {show_value(measured.value, 's')}"
    assert figures in words(first)
    explained = "mean: at the full speed of this machine; just now: as it ran"
    assert explained in tabulate([slow]).splitlines()
    assert "just now" not in tabulate([paced(references=False)])
    assert second.count("µs") == 1


def test_programs_find_it_in_each_analysis(slow: RunRecord) -> None:
    document = json.loads(json.dumps(summary(slow)))
    (analysis,) = document["analyses"]
    found = full_pace(slow)
    assert analysis["at_full_pace"]["value"] == found.value
    assert (analysis["at_full_pace"]["low"], analysis["at_full_pace"]["high"]) == (
        found.low,
        found.high,
    )
    assert analysis["pace"]["full_s"] == {"interpreter": pytest.approx(4e-6, rel=0.02)}
    again = br.RunRecord.from_dict(slow.to_dict())
    assert full_pace(again).value == found.value
    assert str(again) == str(slow)
    assert summary(paced(references=False))["analyses"][0]["at_full_pace"] is None
