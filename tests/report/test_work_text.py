"""Report and explanation of a speed by work amounts and durations."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchrigor.model import Code, Estimate, Notice, RunRecord, StopReason, WpsFit
from benchrigor.report import explain, render
from benchrigor.report.run_table import tabulate

WORK = np.array([1e3, 2e3, 4e3, *np.linspace(3e6, 60e6, 37)])
DURATION_S = np.full(40, 1.5)
SHORT = Notice.note(Code.SHORT_ROUNDS, "2 rounds were short.", rounds=2)
SMALL = Notice.note(Code.SMALL_WORK, "1 round had less work than the overhead is worth.", rounds=1)
NO_SPEED = Notice.refusal(Code.NO_SPEED, "No speed: amounts are too much alike.")


@pytest.fixture
def fit(estimated: Callable[..., Estimate]) -> WpsFit:
    return WpsFit(
        speed=estimated(23.41e6, 23.12e6, 23.70e6),
        overhead=estimated(0.0121, 0.0110, 0.0132),
        slope=estimated(1 / 23.41e6, 1 / 23.70e6, 1 / 23.12e6),
        n=37,
        naive_speed=20.1e6,
        prediction_error=0.012,
        bend=estimated(0.02, -0.01, 0.05),
        growth=estimated(1.012, 0.981, 1.043),
        shape="linear",
        outliers=(0, 14),
        inflation=1.8,
    )


@pytest.fixture
def record(of_pairs: Callable[..., RunRecord], fit: WpsFit) -> Callable[..., RunRecord]:
    def compose(**given: object) -> RunRecord:
        return of_pairs(WORK, DURATION_S, **{"left_out": (0, 1, 2), "fit": fit, **given})

    return compose


def rows(record: RunRecord) -> list[str]:
    """Return the lines of a report below its title, without their indent."""
    lines = render(record).splitlines()[2:]
    assert max(map(len, lines)) <= 79
    return [line.strip() for line in lines]


def steps(record: RunRecord) -> list[str]:
    """Return the numbered steps of an explanation, each on one line."""
    lines = explain(record).splitlines()[2:]
    assert max(map(len, lines)) <= 79
    return " ".join(" ".join(lines).split()).split(". ")


def test_the_report_goes_from_the_speed_over_what_it_stands_on_to_its_checks(record) -> None:
    assert rows(record(notices=(SHORT, SMALL))) == [
        "speed     23.41 MB/s [23.12, 23.70] 95%",
        "half-width 1.24% of the value, wanted 2%",
        "40 rounds, 37 counted (2 under 100 ms, 1 with too little work)",
        "autocorrelation inflates the variance 1.8-fold",
        "overhead  12.1 ms [11.0, 13.2] 95% in each round",
        "all work over all time: 20.1 MB/s, 14% lower",
        "line      through amounts of 3 MB to 60 MB",
        "each round predicted from the others to 1.2% of the mean duration",
        "duration grows as work^1.01 [0.98, 1.04]: linear",
        "outlying: rounds 3, 17",
        "rounds    40 in 60 s, satisfied",
        "· 2 rounds were short. [short-rounds]",
        "· 1 round had less work than the overhead is worth. [small-work]",
    ]


def test_nothing_is_said_of_what_is_not_known(record) -> None:
    quiet = record(bend=None, growth=None, shape=None, outliers=(), inflation=1.0)
    text = render(quiet) + explain(quiet)
    assert "40 rounds, 37 counted\n" in text
    for word in ("grows", "outlying", "variance", "None", "changes by", "far from the line"):
        assert word not in text
    assert "successive rounds are not autocorrelated: each counts in full." in flat(quiet)


def flat(record: RunRecord) -> str:
    return " ".join(" ".join(explain(record).splitlines()[2:]).split())


def test_what_rounding_leaves_counts_as_nothing(record, estimated) -> None:
    exact = record(prediction_error=2e-16, bend=estimated(-2e-16, -3e-16, -1e-16))
    assert "predicted from the others to 0% of the mean duration" in render(exact)
    assert "changes by 0% [0%, 0%]" in flat(exact)


@pytest.mark.parametrize("word", ["median", "p10", "p90", "cut", "spread", "modes"])
def test_rows_about_readings_do_not_apply(record, word: str) -> None:
    assert not any(line.startswith(word) for line in rows(record()))


@pytest.mark.parametrize(
    ("naive", "said"),
    [(23.41e6, "23.4 MB/s, the same"), (27.5e6, "27.5 MB/s, 17% higher"), (2e6, "91% lower")],
)
def test_the_naive_speed_stands_beside_with_its_distance(record, naive: float, said: str) -> None:
    assert f"{said}\n" in render(record(naive_speed=naive))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("n log n", ": n log n"),
        ("other", ": no law with a name"),
        (None, ": too vague to name"),
    ],
)
def test_the_growth_of_duration_is_named(record, shape: str | None, said: str) -> None:
    assert f"duration grows as work^1.01 [0.98, 1.04]{said}" in render(record(shape=shape))


def test_many_outlying_rounds_are_not_all_named(record) -> None:
    text = render(record(outliers=tuple(range(9))))
    assert "outlying: rounds 3, 4, 5, 6, 7, 8 and 3 more\n" in text


def wider(record: RunRecord) -> RunRecord:
    (analysis,) = record.analyses
    assert analysis.estimate is not None
    estimate = replace(analysis.estimate, low=0.9 * analysis.estimate.value)
    return replace(record, analyses=(replace(analysis, estimate=estimate),))


def test_what_would_do_is_said_in_rounds_of_all_kinds(record) -> None:
    assert "wanted 2%: about 49 rounds in all are needed" in " ".join(
        render(wider(record(required=49))).split()
    )
    assert "are needed" not in render(wider(record(required=40)))
    assert "are needed" not in render(record(required=49))  # it is narrow enough


def test_without_a_speed_the_report_says_why_and_shows_what_there_is(record) -> None:
    found = rows(record(speed=None, notices=(SHORT, NO_SPEED)))
    assert found[0] == "speed     no number: No speed: amounts are too much alike. [no-speed]"
    assert "all work over all time: 20.1 MB/s" in found
    assert "overhead  12.1 ms [11.0, 13.2] 95% in each round" in found


def test_without_a_line_the_report_says_why_and_counts_rounds(of_pairs) -> None:
    few = of_pairs(WORK[:2], DURATION_S[:2], notices=(NO_SPEED,))
    assert rows(few)[:3] == [
        "speed     no number: No speed: amounts are too much alike. [no-speed]",
        "1 kB to 2 kB of work took 1.5 s to 1.5 s",
        "2 rounds, 2 counted",
    ]
    assert "No line can be drawn, so there is no interval." in flat(few)


def test_the_explanation_retraces_the_speed(record) -> None:
    assert explain(record(notices=(SHORT, SMALL))).splitlines()[0] == (
        "How the speed of gzip came about"
    )
    assert flat(record(notices=(SHORT, SMALL))) == (
        "1. 40 rounds of 1 kB to 60 MB of work took 1.5 s to 1.5 s. Amounts are planned in "
        "bisecting order: if they only rose, a drift in time would look like work. "
        "2. 3 rounds do not count (2 under 100 ms, 1 with too little work). Their amount or "
        "their place decides that; of their own duration only an early end counts, or noise would "
        "choose the rounds. "
        "3. The line through 37 rounds: duration = overhead + work / speed. Overhead 12.1 ms "
        "[11.0, 13.2] 95%, time 42.7 ms per MB. "
        "4. Noise may differ from round to round (standard errors of type HC3); autocorrelation "
        "of successive rounds inflates the variance 1.8-fold. "
        "5. Student t with 17.2 degrees of freedom gives 42.72 ms [42.19, 43.25] 95% per MB. "
        "6. The reciprocals are the speed: 23.41 MB/s [23.12, 23.70] 95%, an asymmetric interval. "
        "7. Checks of the line: each round is predicted from the others to 1.2% of the mean "
        "duration; from the smallest to the largest amount the time per unit of work changes by "
        "2% [-1%, 5%]; duration grows as work^1.01 [0.98, 1.04]: linear; rounds 3, 17 lie far "
        "from the line. "
        "8. The session ended: satisfied; half-width 1.24% of the value, wanted 2%. "
        "9. Notice: 2 rounds were short. [short-rounds] "
        "10. Notice: 1 round had less work than the overhead is worth. [small-work]"
    )


def test_the_explanation_of_no_speed_ends_where_the_slope_does(record) -> None:
    said = steps(record(speed=None, notices=(NO_SPEED,), left_out=()))
    assert "All rounds count" in said
    assert "This interval holds 0 or less, so the speed has no interval" in said


def test_work_without_bytes_is_told_per_unit_of_work(record) -> None:
    text = flat(record(unit="lines/s"))
    assert "40 rounds of 1,000 lines to 60,000,000 lines of work" in text
    assert "time 42.7 ns per unit of work." in text


def test_a_run_that_measured_nothing_is_explained_as_such(of_pairs) -> None:
    empty = of_pairs(WORK[:0], DURATION_S[:0], notices=(NO_SPEED,))
    assert "No round has a work amount and a duration yet." in explain(empty)


def test_the_table_shows_a_speed_as_any_other_number(record) -> None:
    line = tabulate([record(reason=StopReason.TIME_BUDGET)]).splitlines()[1]
    assert line.split("  ")[:2] == ["gzip", "23.41 MB/s ±1.2 %"]


def test_an_overhead_that_no_clock_has_seen_is_none(record, estimated) -> None:
    text = render(record(overhead=estimated(1e-17, -1e-16, 1e-16)))
    assert "  overhead  none in each round\n" in text
