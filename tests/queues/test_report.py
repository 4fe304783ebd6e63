"""The text of service rates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated.estimates import within

from benchrigor.model import Code, Notice
from benchrigor.queues.data.service import RateReason, ServiceMoments, ServiceProcess, ServiceRate
from benchrigor.queues.report import phases_of, render_rates

RATE = ServiceRate(
    estimate=within(1234.0),
    converged=True,
    reason=None,
    method="busy-time",
    start_s=0.0,
    stop_s=12.3,
    periods=246,
    unblocked=30,
    used=246,
    period_s=0.05,
    items=11_070,
    cpu_rate=within(1300.0),
    delay_share=0.041,
    moments=ServiceMoments(
        n=246,
        mean_s=810e-6,
        variance_s2=0.98 * 810e-6**2,
        third_s3=0.0,
        process=ServiceProcess.EXPONENTIAL,
    ),
)
WIDE = replace(
    RATE,
    estimate=within(1234.0, 0.1),
    converged=False,
    reason=RateReason.NOT_CONVERGED,
)
WARNING = Notice.warning(Code.DISTURBED, "Half of the time was lost.")


def said(*rates: ServiceRate, **given: object) -> str:
    """Return the report on one line."""
    text = render_rates(rates, **given)  # type: ignore[arg-type]
    assert max(map(len, text.splitlines())) <= 79
    return " ".join(text.split())


def test_the_whole_report_reads_like_this() -> None:
    assert render_rates(
        [RATE], name="parse", unit="lines", served_per_s=900.0, item_bytes=1024.0
    ).splitlines() == [
        "parse",
        "─────",
        "  rate      1.234 k lines/s [1.209, 1.259] 95%, converged",
        "            busy time, 0 to 12 s: 246 periods of 50 ms, 12.2% unblocked",
        "  service   810 µs each; squared coefficient of variation 0.98: like",
        "            exponential service, or steadier: it waited for a processor",
        "  processor 1.300 k lines/s [1.274, 1.326] 95% of processor time; waited 4.1%",
        "            of the busy time for a processor",
        "  bytes     1.26 MB/s at 1.02 kB each",
        "  served    900 lines/s: utilisation 72.9%",
    ]


def test_what_is_not_known_is_not_said_but_for_why_the_variance_is_not() -> None:
    bare = replace(RATE, cpu_rate=None, delay_share=None, moments=None)
    *lines, service = render_rates([bare]).splitlines()
    assert [line.split()[0] for line in lines] == ["rate", "busy"]
    assert service == "  service   variance not known: it needs 30 counts"
    assert "service" not in render_rates([replace(bare, estimate=None)])


def test_of_nothing_there_is_no_number() -> None:
    assert render_rates([]) == "  rate      no number: there is no period"


def test_a_rate_that_has_not_converged_is_the_best_so_far() -> None:
    text = said(WIDE, target=0.05)
    assert "[1.11, 1.36] 95%, the best so far" in text
    assert "not converged: the half-width is 10%, wanted 5%. Record about 49.2 s in all" in text
    assert "246 periods are too few. Record for longer" in said(WIDE, target=0.2)
    none = replace(WIDE, estimate=None)
    assert "rate no number busy time" in said(none)
    assert "there is too little data for an interval. Record for longer" in said(none)


@pytest.mark.parametrize("reason", RateReason)
def test_every_reason_is_said_in_words_with_what_to_do(reason: RateReason) -> None:
    text = said(replace(WIDE, reason=reason, method="quantile"))
    sentence = text.split("not converged: ", 1)[1].split(" service 810", 1)[0]
    assert any(word in sentence for word in (". Record ", ". Give "))
    assert str(reason) not in sentence


@pytest.mark.parametrize(
    ("process", "variation", "words"),
    [
        (ServiceProcess.DETERMINISTIC, 0.01, "0.01: nearly constant, like deterministic service"),
        (ServiceProcess.EXPONENTIAL, 1.1, "1.1: like exponential service"),
        (ServiceProcess.OTHER, 0.5, "0.5: less variable than exponential service"),
        (ServiceProcess.OTHER, 4.0, "4: more variable than exponential service"),
    ],
)
def test_the_process_is_hinted_at(process: ServiceProcess, variation: float, words: str) -> None:
    moments = ServiceMoments(
        n=99, mean_s=0.001, variance_s2=variation * 1e-6, third_s3=0.0, process=process
    )
    text = said(replace(RATE, moments=moments, delay_share=0.0))
    assert f"1 ms each; squared coefficient of variation {words} processor" in text
    is_sure = process is ServiceProcess.DETERMINISTIC
    unknown = said(replace(RATE, moments=moments, delay_share=None))
    assert (f"{words}, if it never waited for a processor" in unknown) is not is_sure
    delayed = said(replace(RATE, moments=moments, delay_share=0.2))
    assert (f"{words}, or steadier: it waited for a processor" in delayed) is not is_sure


def test_what_waiting_cannot_make_vary_is_no_doubt() -> None:
    """Waits of some milliseconds do not show in work of a second."""
    moments = ServiceMoments(
        n=99, mean_s=1.0, variance_s2=1.0, third_s3=0.0, process=ServiceProcess.EXPONENTIAL
    )
    assert "steadier" not in said(replace(RATE, moments=moments, delay_share=0.2))


def test_a_stage_in_full_use_may_have_more_to_do_than_it_can() -> None:
    assert "utilisation 99.7%; more may arrive than it can serve" in said(RATE, served_per_s=1230.0)
    assert "more may arrive" not in said(RATE, served_per_s=1200.0)


def test_what_passed_is_said_also_where_there_is_no_rate() -> None:
    assert said(replace(WIDE, estimate=None), served_per_s=0.0).endswith("served 0 items/s")


def test_phases_stand_in_a_table_with_the_last_one_above() -> None:
    late = replace(RATE, estimate=within(640.0), start_s=12.3, stop_s=240.0)
    text = render_rates([RATE, replace(WIDE, start_s=11.0, stop_s=12.3), late])
    assert "rate      640 items/s [627, 653] 95%, converged" in text
    assert text.splitlines()[-5:] == [
        "    phase            k items/s [95% interval]  unblocked",
        "  ● 0.0 to 12.3 s    1.234 [1.209, 1.259]          12.2%",
        "  ○ 11.0 to 12.3 s   1.23 [1.11, 1.36]             12.2%",
        "                     not converged",
        "  ● 12.3 to 240.0 s  0.640 [0.627, 0.653]          12.2%",
    ]


def test_only_the_last_of_many_phases_are_shown() -> None:
    text = render_rates(
        [replace(RATE, start_s=k * 10.0, stop_s=k * 10.0 + 10.0) for k in range(30)]
    )
    assert "\n    … 18 before\n" in text
    assert text.count("●") == 12
    assert text.endswith("12.2%")


def test_what_the_quantile_finds_again_is_one_phase() -> None:
    again = replace(RATE, method="quantile")
    slower = replace(again, estimate=within(600.0), start_s=24.6, stop_s=36.9)
    rates = [again, replace(again, start_s=12.3, stop_s=24.6), slower]
    assert [len(each) for each in phases_of(rates)] == [2, 1]
    assert [len(each) for each in phases_of([RATE, RATE])] == [1, 1]
    text = said(*rates)
    assert "● 0 to 25 s 1.234 [1.209, 1.259] 12.2% 2 estimates" in text
    assert "● 25 to 37 s 0.600 [0.588, 0.612] 12.2%" in text


def test_a_phase_without_a_number_says_so() -> None:
    nothing = replace(WIDE, estimate=None, reason=RateReason.NEVER_BUSY)
    text = said(nothing, RATE)
    assert "○ 0 to 12 s no number 12.2% not converged: never busy" in text
    assert "phase items/s unblocked" in said(nothing, nothing)


def test_every_notice_is_shown_once() -> None:
    noticed = replace(RATE, notices=(WARNING,))
    few = Notice.note(Code.FEW_READINGS, "Only 9 readings.")
    last = replace(noticed, estimate=replace(within(900.0), notices=(few,)))
    text = render_rates([noticed, last])
    assert text.splitlines()[-2:] == [
        "  ! Half of the time was lost. [disturbed-run]",
        "  · Only 9 readings. [few-readings]",
    ]


def test_a_long_unit_is_cut() -> None:
    text = said(RATE, RATE, unit="requests of customers of all kinds", served_per_s=900.0)
    assert "1.234 k requests of…of all kinds/s [1.209, 1.259] 95%" in text
