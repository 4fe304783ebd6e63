"""Numbers as text, and the headline of a speed by work amounts and durations."""

import re

import pytest
from simulated.estimates import estimated

from benchrigor.layout import page
from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Estimate,
    Metric,
    Notice,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
    WpsFit,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.text import (
    many,
    percent,
    say_end,
    shortened,
    show_amount,
    show_chance,
    show_estimate,
    show_value,
    show_values,
)
from benchrigor.report.notice_lines import marked

SATISFIED = Decision(stop=True, reason=StopReason.SATISFIED)


def analysed(overhead: Estimate, *notices: Notice, speed: bool = True) -> Analysis:
    found = estimated(23.41e6, 23.12e6, 23.74e6, n=40) if speed else None
    fit = WpsFit(
        speed=found,
        overhead=overhead,
        slope=estimated(4.3e-8, 4.2e-8, 4.4e-8),
        n=40,
        naive_speed=20e6,
        prediction_error=0.01,
    )
    metric = Metric(name="speed", unit="B/s", direction="higher")  # type: ignore[arg-type]
    return Analysis(metric=metric, kind=Kind.WORK, n=48, estimate=found, wps=fit, notices=notices)


def line(analysis: Analysis, decision: Decision | None = None) -> str:
    """Return the headline of a run of 43 seconds."""
    return str(
        RunRecord(
            name="gzip",
            options=Options(),
            metrics=(analysis.metric,),
            seed=1,
            rounds=(Round(plan=RoundPlan(index=0), elapsed_ns=43_000_000_000),),
            analyses=(analysis,),
            decision=decision,
        )
    )


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.0121, 0.011, 0.013), "12.1 ms overhead each"),
        ((-0.0121, -0.013, -0.011), "12.1 ms head start each"),
        ((0.001, -0.002, 0.004), "at most 4 ms overhead each"),
        ((-0.001, -0.004, 0.002), "at most 2 ms overhead each"),
        ((1e-17, 1e-17, 1e-17), "no overhead"),
    ],
)
def test_the_headline_says_what_a_round_adds(ends: tuple[float, float, float], said: str) -> None:
    assert line(analysed(estimated(*ends)), SATISFIED) == (f"gzip  23.41 MB/s ±1.3 %  ({said})")


def test_without_a_speed_the_refusal_is_told_before_other_notices() -> None:
    note = Notice.note(Code.SHORT_ROUNDS, "2 were short.")
    refusal = Notice.refusal(Code.NO_SPEED, "All are alike.")
    overhead = estimated(1.0, 0.9, 1.1)
    assert line(analysed(overhead, note, refusal, speed=False)) == (
        "gzip  no number: still running: all are alike"
    )
    assert "no number: still running: 2 were short" in line(analysed(overhead, note, speed=False))
    assert "no number: still running: nothing was measured" in line(analysed(overhead, speed=False))


def test_an_interval_around_0_is_shown_in_the_scale_of_its_ends() -> None:
    assert show_estimate(estimated(0.0005, -0.0084, 0.0094), "s") == "0.5 ms [-8.4, 9.4] 95%"
    assert show_estimate(estimated(0.0, -2.0, 2.0), "s") == "0.0 s [-2.0, 2.0] 95%"
    assert show_estimate(estimated(0.002, 0.0, float("inf")), "s").startswith("2")


def test_numbers_of_any_size_stay_readable() -> None:
    assert show_estimate(estimated(3e300, 2.9e300, 3.1e300), "/s") == (
        "3.000e+291 G/s [2.900e+291, 3.100e+291] 95%"
    )
    assert show_value(3e300, "B/s") == "3e+291 GB/s"
    assert show_value(9e11, "") == "900,000,000,000"


@pytest.mark.parametrize(
    ("work", "unit", "shown"),
    [
        (1e12, "B/s", "1,000 GB"),
        (512.0, "B/s", "512 B"),
        (1234567, "/s", "1,234,567"),
        (0.125, "/s", "0.125"),
        (2.5, "lines/s", "2.5 lines"),
        (1e300, "/s", "1e+300"),
    ],
)
def test_amounts_are_shown_in_the_unit_of_the_speed(work: float, unit: str, shown: str) -> None:
    assert show_amount(work, unit) == shown


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (many(1, "round"), "1 round"),
        (many(1200, "reading"), "1,200 readings"),
        (percent(0.0123), "1.23%"),
        (percent(0.9999, digits=10), "99.99%"),
        (percent(12.4), "1,240%"),
        (show_value(0.001234, "s"), "1.23 ms"),
        (show_value(250.0, ""), "250"),
        (show_chance(0.0312), "=0.031"),
        (show_chance(1e-9), "<0.0001"),
        (shortened("parts of the product.head", 15), "parts o…ct.head"),
        (
            say_end(Decision(stop=True, reason=StopReason.TIME_BUDGET)),
            "time budget spent",
        ),
        (say_end(Decision(stop=True, reason=StopReason.EXHAUSTED)), "workload exhausted"),
        (say_end(Decision(stop=True, reason=StopReason.INTERRUPTED)), "not converged: interrupted"),
    ],
)
def test_numbers_and_names_are_short(shown: str, expected: str) -> None:
    assert shown == expected


def test_a_notice_stands_behind_its_mark() -> None:
    notice = Notice.warning(Code.FEW_EFFECTIVE, "Too few. " * 9)
    first, second = page(marked(notice, "time: ")).splitlines()
    assert first.startswith("  ! time: Too few.")
    assert second.startswith("    ")
    assert second.endswith("[few-effective-readings]")


@pytest.mark.parametrize(
    ("value", "half_width", "unit", "shown"),
    [
        (10**9 + 52.0, 5.9, "B", "1.0000000520 GB [1.0000000461, 1.0000000579]"),
        (10**9 + 52.0, 5.9, "points", "1,000,000,052.0 points [1,000,000,046.1, 1,000,000,057.9]"),
        (1e13 + 52.0, 59.0, "", "1.0000000000052e+13 [9.9999999999930e+12, 1.0000000000111e+13]"),
        (1e13, 1e12, "", "1.000e+13 [9.000e+12, 1.100e+13]"),
        (1.5e-12, 1.1e-16, "points", "1.50000e-12 points [1.49989e-12, 1.50011e-12]"),
        (1.5e-12, 0.0, "points", "1.500e-12 points [1.500e-12, 1.500e-12]"),
        (1.0, 3e-16, "points", "1.000 points [1.000, 1.000]"),
        (2.0, 0.5, "1", "2.00 [1.50, 2.50]"),
    ],
)
def test_an_estimate_has_the_digits_that_its_interval_needs(
    value: float, half_width: float, unit: str, shown: str
) -> None:
    found = estimated(value, value - half_width, value + half_width)
    assert show_estimate(found, unit) == f"{shown} 95%"


def test_plain_numbers_have_no_unit() -> None:
    assert show_values((0.0, 1.0), "1") == ["0", "1"]
    assert show_amount(1000.0, "1") == "1,000"


@pytest.mark.parametrize("unit", ["s", "req/s", "B", "points"])
@pytest.mark.parametrize("value", [1e13 / 3, 1e11 / 3, 10 / 3, -10 / 3, 1 / 3e6, 1 / 3e12])
@pytest.mark.parametrize("share", [0.0, 1e-17, 1e-16, 1e-15, 1e-12, 1e-3, 1.0, 10.0])
def test_no_estimate_is_shown_with_more_digits_than_a_number_holds(
    value: float, share: float, unit: str
) -> None:
    width = share * abs(value)
    shown = show_estimate(
        Estimate(
            value=value,
            low=value - width,
            high=value + width,
            confidence=0.95,
            n=9,
            n_effective=9.0,
            method="mean",
        ),
        unit,
    )
    largest = max(
        len(re.sub(r"e.*|[,.]", "", number).lstrip("0"))
        for number in re.findall(r"[0-9][0-9,.]*(?:e[-+]?[0-9]+)?", shown)
    )
    assert largest <= 16
    assert share > 1e-15 or largest <= 13
