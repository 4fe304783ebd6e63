from collections.abc import Sequence
from dataclasses import replace

import pytest
from simulated.estimates import estimated

from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Metric,
    Notice,
    Options,
    RunRecord,
    StopReason,
)
from benchrigor.model.analysis import Kind
from benchrigor.report.run_table import tabulate
from benchrigor.stats import observe

FOOTNOTE = "±: half of the 95% confidence interval"
TIME = Metric(name="time", unit="s")
WIDE = estimated(
    0.001234567, 0.001234445, 0.001234689, n=1_234_567, n_effective=1e6, method="long-run-variance"
)


def ended(reason: StopReason | None, name: str = "sort", **given: object) -> RunRecord:
    record = RunRecord(
        name=name,
        options=Options(),
        metrics=(TIME,),
        seed=1,
        rounds=(),
        analyses=(Analysis(metric=TIME, kind=Kind.UNIT_READINGS, n=WIDE.n, estimate=WIDE),),
        decision=None if reason is None else Decision(stop=True, reason=reason),
    )
    return replace(record, **given)  # type: ignore[arg-type]


def words(records: Sequence[RunRecord]) -> str:
    return " ".join(tabulate(records).split()).removesuffix(f" {FOOTNOTE}")


def test_what_is_no_result_never_looks_like_one() -> None:
    assert words([ended(StopReason.SATISFIED)]).endswith("1,234,567 satisfied")
    assert words([ended(StopReason.TIME_BUDGET)]).endswith("1,234,567 time budget spent")
    assert words([ended(None)]).endswith("1,234,567 still running")
    assert words([ended(StopReason.INTERRUPTED, analyses=())]).endswith(
        "no number not converged: interrupted"
    )


@pytest.mark.parametrize("name", ["f", "sort", "test_of_many_words[and-some-more]", "x" * 200])
@pytest.mark.parametrize("reason", StopReason)
def test_whatever_the_name_and_the_ending_the_table_fits(reason: StopReason, name: str) -> None:
    records = [ended(StopReason.SATISFIED, "other"), ended(reason, name)]
    lines = tabulate(records).splitlines()
    assert max(map(len, lines)) <= 79
    assert not any(line != line.rstrip() for line in lines)
    assert name in "".join(lines)
    assert str(reason).replace("-", " ") in words(records)


def test_an_observed_median_is_marked_as_such() -> None:
    analysis = Analysis(metric=TIME, kind=Kind.READINGS, n=3, observed=observe([0.001, 0.002, 0.3]))
    _, row, *_, footnote = tabulate(
        [ended(StopReason.TIME_BUDGET, analyses=(analysis,)), ended(StopReason.SATISFIED)]
    ).splitlines()
    assert row.split()[:4] == ["sort", "~2", "ms", "3"]
    assert footnote == "~ observed median, no interval"


def test_a_row_without_an_interval_says_why_whatever_else_is_told() -> None:
    notices = (
        Notice.warning(Code.NOT_CONVERGED, "Short of the target."),
        Notice.warning(Code.DISTURBED, "Busy."),
        Notice.refusal(Code.FEW_IN_TAIL, "No tail."),
        Notice.refusal(Code.NO_STABLE_PHASE, "No phase."),
    )
    analysis = Analysis(
        metric=TIME,
        kind=Kind.READINGS,
        n=3,
        observed=observe([0.001, 0.002, 0.3]),
        notices=notices,
    )
    shown = words([ended(StopReason.TIME_BUDGET, analyses=(analysis,))])
    assert "! Few readings are that slow" in shown
    assert "! The readings do not settle" in shown


def test_options_are_worded_as_the_reader_gives_them() -> None:
    analysis = Analysis(
        metric=TIME,
        kind=Kind.READINGS,
        n=3,
        observed=observe([0.001, 0.002, 0.3]),
        notices=(Notice.refusal(Code.TOO_FEW_READINGS, "Too few."),),
    )
    records = [ended(StopReason.TIME_BUDGET, analyses=(analysis,))]
    assert "(--budget)" in tabulate(records)
    assert "(--bench-budget)" in tabulate(
        records, worded=lambda text: text.replace("--", "--bench-")
    )


def test_endings_are_broken_for_short_names_and_long_names_give_way() -> None:
    short, long = "test_sorting", "test_sorting_many_words_of_one_language"
    one, two = (
        tabulate([ended(StopReason.SATISFIED, "f"), ended(StopReason.STOP_REQUESTED, name)]).at(63)
        for name in (short, long)
    )
    wide = tabulate([ended(StopReason.STOP_REQUESTED, short)]).at(100)
    assert wide.splitlines()[1].endswith("not converged: stop requested")
    row, more = one.splitlines()[2:4]
    assert row.startswith(f"{short}  1.2")
    assert row.endswith("1,234,567  not converged:")
    assert more.strip() == "stop requested"
    assert more.index("stop") == row.index("not")
    assert two.splitlines()[2] == long
